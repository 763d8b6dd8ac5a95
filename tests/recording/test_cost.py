"""Cost before it is made, a budget that is kept, and a file that takes the rest."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import torch
from torch import nn

import regard
from regard.attention import build_mechanism
from regard.core.errors import ConfigError, RecordingError
from regard.core.masks import Allow
from regard.core.models import models, sizes
from regard.core.relations import DenseRelation, DotRelation, SparseRelation
from regard.models.swin import Swin, SwinConfig
from regard.models.transformer import Transformer, TransformerConfig
from regard.models.vit import ViT, ViTConfig
from regard.recording import Recording, recording_cost
from regard.recording.cost import DECK_CASES, binary, dense_cost, memory_free, parse_bytes, readable
from regard.recording.spill import Store, compact, on_disk


@pytest.mark.parametrize(
    ("case", "matrix", "all_of_them"),
    [
        ("a transformer on 128 x 128 pixels", "1 GiB", "768 GiB"),
        ("ViT, 14 x 14 patches", "150 KiB", "112 MiB"),
        ("ViT, 16 x 16 patches", "256 KiB", "192 MiB"),
    ],
)
def test_the_decks_numbers(case: str, matrix: str, all_of_them: str) -> None:
    """They imply four bytes a number and units of 1,024."""
    cost = dense_cost(*DECK_CASES[case])
    assert (binary(cost.taps[0].matrix), binary(cost.maps)) == (matrix, all_of_them)
    assert cost.recorded == cost.maps
    assert DECK_CASES["ViT, 14 x 14 patches"][0] ** 2 == 14**4 == 38_416


def test_a_transformer_on_pixels_is_rehearsed_without_numbers() -> None:
    """The deck's own case, 16,384 tokens in 48 layers of 16 heads: what is recorded is less than a hundredth."""
    config = ViTConfig(image_size=128, patch_size=1, width=64, num_heads=16, num_blocks=48, feed_forward_width=64)
    with torch.device("meta"):
        model = ViT(config.model_copy(update={"pooling": "mean"}), 10, 3).eval()
    cost = recording_cost(model, torch.empty(1, 3, 128, 128, device="meta"))
    assert cost.maps == 768 * 2**30
    assert len(cost.taps) == 48
    assert cost.recorded < cost.maps / 100


def small_swin() -> nn.Module:
    config = SwinConfig(image_size=28, patch_size=2, window_size=4, width=6, num_heads=(2, 3), num_blocks=(2, 2))
    return Swin(config, 5, 3).eval()


def test_a_rehearsal_is_what_a_recording_takes() -> None:
    text = Transformer(TransformerConfig(width=12, num_heads=3), 19, 19).eval()
    words = (torch.randint(4, 19, (2, 7)), torch.randint(4, 19, (2, 5)))
    words[0][1, 4:] = 0  # without any padding no mask is kept
    rnn = models["rnnsearch"].build(models["rnnsearch"].config(width=10), 19, 19).eval()
    for model, inputs in ((text, words), (rnn, words), (small_swin(), (torch.randn(2, 3, 26, 38),))):
        expected = recording_cost(model, *inputs)
        with torch.no_grad(), regard.record(model) as recording:
            model(*inputs)
        assert recording.cost == expected
        assert recording.cost.recorded == recording.nbytes
    assert recording_cost(text, *words, taps="encoder.*").maps == 3 * 3 * 2 * 7 * 7 * 4


def test_a_rehearsal_of_a_published_size_needs_no_memory() -> None:
    config = sizes["vit_huge_patch14_224"]()
    with torch.device("meta"):
        model = models["vit"].build(config, 1000, 3).eval()
    cost = recording_cost(model, torch.empty(1, 3, 224, 224, device="meta"))
    assert {tap.shape for tap in cost.taps} == {(1, 16, 257, 257)}
    assert cost.maps == 32 * 16 * 257**2 * 4


def test_what_cannot_be_rehearsed_says_so() -> None:
    class Deciding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = build_mechanism("dot", 3, 3, 3, queries="a", keys="a")

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return self.attention(*(inputs,) * 3) if inputs.sum().item() > 0 else inputs

    with pytest.raises(RecordingError, match="Deciding cannot be rehearsed without numbers"):
        recording_cost(Deciding(), torch.ones(1, 5, 3))


@pytest.mark.parametrize(
    ("text", "number"), [("2GB", 2 * 10**9), (" 1.5 MiB ", 3 * 2**19), ("700", 700), ("3kb", 3000), (12, 12)]
)
def test_amounts_of_memory(text: str | int, number: int) -> None:
    assert parse_bytes(text) == number


@pytest.mark.parametrize("text", ["", "many", "2 GBs", "-1", "GB", "0MB", 0, -5])
def test_what_is_no_amount_of_memory(text: str | int) -> None:
    with pytest.raises(ConfigError):
        parse_bytes(text)


def test_bytes_for_people() -> None:
    assert [readable(n) for n in (7, 1500, 2e6, 3e9, 4e12)] == ["7 bytes", "1.5 KB", "2.0 MB", "3.0 GB", "4.0 TB"]
    assert binary(1023) == "1023 bytes"
    free = memory_free()
    assert free is None or free > 0


def record_both(model: nn.Module, inputs: torch.Tensor, budget: str) -> tuple[Recording, Recording]:
    with torch.no_grad(), regard.record(model) as plain:
        model(inputs)
    with torch.no_grad(), regard.record(model, budget=budget) as spilled:
        model(inputs)
    return plain, spilled


def test_beyond_the_budget_it_is_on_disk_and_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made: list[Path] = []
    monkeypatch.setattr(
        "regard.recording.spill.on_disk", lambda tensor, folder: (made.append(folder), on_disk(tensor, folder))[1]
    )
    plain, spilled = record_both(small_swin(), torch.randn(1, 3, 28, 28), "10KB")
    assert made
    assert set(made) == {tmp_path}
    assert list(tmp_path.iterdir()) == [], "the files have no names"
    for address in plain:
        assert torch.equal(plain[address].weights(), spilled.relations[address].weights())
        assert torch.equal(plain[address].relation.value_norms, spilled[address].relation.value_norms)
    again = Recording.load(spilled.save(tmp_path / "it.regard"))
    assert torch.equal(again["stages.0.1.attention"].weights(), plain["stages.0.1.attention"].weights())


def test_views_keep_the_budget_or_ask_for_less() -> None:
    config = ViTConfig(image_size=24, patch_size=2, width=12, num_heads=3, num_blocks=1)
    _, recording = record_both(ViT(config, 5, 3).eval(), torch.randn(1, 3, 24, 24), "100KB")
    shown = recording[recording.addresses[0]]
    with pytest.raises(
        RecordingError, match=r"145 rows of encoder.0.attention would take 504.6 KB of memory, more than"
    ):
        shown.weights()
    assert shown.weights(rows=7).shape == (1, 3, 145)
    assert shown.entropy().shape == (1, 3, 145)


def test_what_is_larger_than_memory_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = torch.zeros(1, 1, 1, 2).expand(1, 1, 10**7, 2)
    shown = regard.recording.RecordedMap("huge", "a", "a", DotRelation(queries, queries, 1.0))
    monkeypatch.setattr("regard.recording.cost.memory_free", lambda: 10**10)
    with pytest.raises(RecordingError, match=r"would take 800\.0 TB of memory, more than what is free \(10\.0 GB\)"):
        shown.weights()


def test_no_room_on_the_disk_either(monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 3

    monkeypatch.setattr("shutil.disk_usage", lambda folder: Usage())
    with pytest.raises(RecordingError, match="has no room for the rest"):
        record_both(small_swin(), torch.randn(1, 3, 28, 28), "1B")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool])
def test_every_dtype_goes_to_disk(dtype: torch.dtype, tmp_path: Path) -> None:
    tensor = (torch.randn(3, 5, 7) * 4).to(dtype).transpose(0, 2)
    again = on_disk(tensor, tmp_path)
    assert again.dtype == dtype
    assert torch.equal(again, tensor)
    assert on_disk(tensor[:0], tmp_path).shape == (0, 5, 3)
    assert list(tmp_path.iterdir()) == []


def test_a_view_of_something_larger_is_copied() -> None:
    projection = torch.randn(2, 5, 33)
    third = projection[..., :11]
    assert compact(third).untyped_storage().nbytes() == third.nbytes
    assert compact(projection) is not projection
    assert compact(projection).data_ptr() == projection.data_ptr()


def test_every_form_is_kept_and_others_are_left_alone() -> None:
    store = Store(1)
    queries = torch.randn(1, 2, 3, 5)
    allow = Allow(pairs=torch.rand(1, 1, 3, 3) < 0.7)
    for relation in (
        DotRelation(queries, queries, 0.5, allow, torch.randn(1, 2, 3, 3)),
        DenseRelation(torch.rand(1, 2, 3, 3)),
        SparseRelation(torch.zeros(1, 2, 3, 1, dtype=torch.int64), torch.ones(1, 2, 3, 1), 3),
    ):
        assert torch.equal(store.keep(relation).weights(), relation.weights())
    assert store.on_disk > 0
    assert store.in_memory == 0


def test_value_norms_are_recorded() -> None:
    attention = build_mechanism("additive", 11, 11, 11, queries="a", keys="b")
    queries, keys = torch.randn(2, 5, 11), torch.randn(2, 7, 11)
    with regard.record(attention) as recording:
        attention(queries, keys, keys)
    shown = recording["attention"]
    torch.testing.assert_close(shown.norm_weighted()[:, 0], shown.weights()[:, 0] * keys.norm(dim=-1)[:, None])


def test_steps_of_a_decoder_do_not_keep_every_steps_keys() -> None:
    """Keys of all steps would take a square of the length; the map is that of all positions at once."""
    attention = build_mechanism("dot", 11, 11, 11, queries="a", keys="a")
    words, room = torch.randn(1, 40, 11), torch.zeros(1, 64, 11)
    with regard.record(attention, budget="1MB") as recording:
        for step in range(40):
            room[:, step] = words[:, step]
            attention(words[:, step : step + 1], room[:, : step + 1], room[:, : step + 1])
    relation = recording["attention"].relation
    assert isinstance(relation, DotRelation)
    assert torch.equal(relation.keys, words[:, None])
    assert relation.value_norms.shape == (1, 1, 40)
    store = Store(None)
    for step in range(1, 41):
        kept = store.keep(DotRelation(words[:, None, :1], room[:, None, :step], 1.0))
        before = store.in_memory
        assert store.without_keys(kept).num_keys == step
        assert store.in_memory == before - step * 11 * 4
