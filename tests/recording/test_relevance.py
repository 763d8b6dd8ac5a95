"""Relevance: hand-worked on three tokens, equal to the paper's rules on whole matrices and to autograd's gradients."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.attention import build_mechanism
from regard.core import relations
from regard.core.axes import Text
from regard.core.errors import RecordingError
from regard.core.relations import DenseRelation
from regard.models.lrnet import LRNet, LRNetConfig
from regard.models.swin import Swin, SwinConfig
from regard.models.transformer import Transformer, TransformerConfig
from regard.models.vit import ViT, ViTConfig
from regard.recording import Recording
from regard.recording.composing import one_hot, streams
from regard.recording.relevance import relevance, relevance_rows
from regard.recording.resampling import resampling

FIRST = torch.tensor([[0.5, 0.0, 0.0], [0.25, 0.25, 0.0], [0.0, 0.0, 1.0]])
SECOND = torch.tensor([[0.0, 0.5, 0.0], [0.0, 0.0, 0.0], [0.5, 0.0, 0.0]])


def rows_of(maps: dict[str, tuple[str, str, torch.Tensor]], start: str, row: int) -> dict[str, torch.Tensor]:
    recording = Recording()
    for address, (queries, keys, weights) in maps.items():
        recording.relations[address] = DenseRelation(weights[None, None])
        recording.roles[address] = (queries, keys)
    found = streams(recording.maps)
    return dict(relevance_rows(found, one_hot(range(row, row + 1), found.sizes[start]), start))


def test_self_attention_of_three_tokens_by_hand() -> None:
    """First row of (I + B)(I + A): (1, 1/2, 0) (I + A) = (3/2, 0, 0) + 1/2 (1/4, 5/4, 0) = (13/8, 5/8, 0)."""
    found = rows_of({"a": ("s", "s", FIRST), "b": ("s", "s", SECOND)}, "s", 0)
    assert found["s"].tolist() == [[1.625, 0.625, 0.0]]


def test_cross_attention_of_three_tokens_by_hand() -> None:
    """Encoder R - I = A, whose rows sum to 1/2, 1/2, 1: N(R) = [[2, 0, 0], [1/2, 3/2, 0], [0, 0, 2]].

    The decoder's first token looks at its second with 1/2: R_tt = I + B, N(R_tt) = [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
    (a row that looks at nothing stays), transposed [[1, 0, 1], [1, 1, 0], [0, 0, 1]]. Cross C = diag(1/2, 1/4, 0). The
    second row is (1, 1, 0) C N(R) = (1/2, 1/4, 0) N(R) = (1 + 1/8, 3/8, 0).
    """
    cross = torch.diag(torch.tensor([0.5, 0.25, 0.0]))
    maps = {"e": ("s", "s", FIRST), "d": ("t", "t", SECOND), "c": ("t", "s", cross)}
    found = rows_of(maps, "t", 1)
    assert found["s"].tolist() == [[1.125, 0.375, 0.0]]
    assert found["t"].tolist() == [[0.0, 1.0, 0.0]]


def test_a_stream_that_looks_on_is_refused() -> None:
    maps = {"e": ("m", "s", FIRST), "d": ("t", "m", SECOND)}
    with pytest.raises(RecordingError, match="'m' is looked at and itself looks at 's'"):
        rows_of(maps, "t", 0)


class Whole(nn.Module):
    """Attention with its weights at hand, as the reference for gradients."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.attention = build_mechanism(kind, 11, 11, 11, queries="words", keys="words")
        self.readout = nn.Linear(11, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.readout(self.attention(inputs, inputs, inputs)).sin().sum()


@pytest.mark.parametrize("kind", ["scaled_dot", "dot", "bilinear", "additive"])
def test_gradients_of_weights_are_those_of_autograd(kind: str) -> None:
    model, inputs = Whole(kind).eval(), torch.randn(2, 5, 11)
    found = relevance(model, lambda: model(inputs), lambda said: said)
    assert all(part.grad is None for part in model.parameters())
    weights = found.recording["attention"].weights()[:, 0].requires_grad_()
    model.readout(weights @ inputs).sin().sum().backward()
    wanted = (weights.grad * weights).clamp(min=0).detach()
    assert wanted.any()
    torch.testing.assert_close(found.weighted["attention"].weights()[:, 0], wanted, rtol=1e-4, atol=1e-6)


def weighted(found, address: str, example: int = 0) -> torch.Tensor:
    return found.weighted[address].relation.weights()[example].double().mean(0)


@pytest.mark.parametrize("block", [1 << 18, 1])
def test_of_a_vision_transformer_with_frozen_parameters(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "_BLOCK_WEIGHTS", block)
    config = ViTConfig(image_size=10, patch_size=2, width=12, num_heads=3, num_blocks=3)
    model = ViT(config, 5, 3).eval().requires_grad_(False)
    images = torch.randn(2, 3, 10, 14)
    with torch.no_grad():
        found = relevance(model, lambda: model(images), lambda output: output.logits[:, 1].sum())
    found.label(patches=[model.axes(10, 14)["patches"]] * 2)
    whole = torch.eye(36, dtype=torch.float64)
    for address in found.recording.addresses:
        whole = whole + weighted(found, address, 1) @ whole
    row = found.onto(example=1, rows=0)
    torch.testing.assert_close(row.weights.double(), whole[0], rtol=1e-5, atol=1e-8)
    assert row.labelled()[:2] == ["class", "0,0"]
    assert (row.weights[1:] > 0).any()
    torch.testing.assert_close(found.onto(example=1).weights.double(), whole, rtol=1e-5, atol=1e-8)
    assert not any(part.requires_grad for part in model.parameters())


def normalised(whole: torch.Tensor) -> torch.Tensor:
    added = whole - torch.eye(len(whole), dtype=whole.dtype)
    sums = added.sum(-1, keepdim=True)
    return added / torch.where(sums > 0, sums, 1.0) + torch.eye(len(whole), dtype=whole.dtype)


def test_of_an_encoder_and_decoder_by_the_papers_rules() -> None:
    model = Transformer(TransformerConfig(width=12, num_heads=3, num_encoder_blocks=2, num_decoder_blocks=2), 19, 19)
    source, target = torch.randint(4, 19, (1, 7)), torch.randint(4, 19, (1, 5))
    model = model.eval()
    found = relevance(model, lambda: model(source, target), lambda output: output.logits[0, 3, 6])
    found.label(source=[Text(tuple("abcdefg"))], target=[Text(tuple("vwxyz"))])
    encoder = torch.eye(7, dtype=torch.float64)
    for block in range(2):
        encoder = encoder + weighted(found, f"encoder.{block}.attention") @ encoder
    own, across = torch.eye(5, dtype=torch.float64), torch.zeros(5, 7, dtype=torch.float64)
    for block in range(2):
        mine = weighted(found, f"decoder.{block}.attention")
        own, across = own + mine @ own, across + mine @ across
        across = across + normalised(own).T @ weighted(found, f"decoder.{block}.cross") @ normalised(encoder)
    torch.testing.assert_close(found.onto(rows=3).weights.double(), across[3], rtol=1e-4, atol=1e-8)
    torch.testing.assert_close(found.onto("target").weights.double(), own, rtol=1e-4, atol=1e-8)
    assert across[3].any()


def test_through_shifted_windows_and_merging() -> None:
    config = SwinConfig(image_size=28, patch_size=2, window_size=4, width=6, num_heads=(2, 3), num_blocks=(2, 2))
    model = Swin(config, 5, 3).eval()
    images = torch.randn(1, 3, 26, 38)
    found = relevance(model, lambda: model(images), lambda output: output.logits[0, 2])
    axes = model.axes(26, 38)
    found.label(**{role: [axis] for role, axis in axes.items()})
    merged = resampling(axes["stage2"], axes["stage1"])
    assert merged is not None
    whole = torch.eye(len(axes["stage1"]), dtype=torch.float64)
    for place, address in enumerate(found.recording.addresses):
        whole = merged.matrix().double() @ whole if place == 2 else whole
        whole = whole + weighted(found, address) @ whole
    torch.testing.assert_close(found.onto().weights.double(), whole, rtol=1e-4, atol=1e-8)


def test_of_local_attention() -> None:
    model = LRNet(LRNetConfig(num_blocks=(1,), window_size=3, width=4, inner_width=8), 5, 3).eval()
    images = torch.randn(1, 3, 8, 12)
    found = relevance(model, lambda: model(images), lambda output: output.logits[0, 2])
    assert any(found.weighted[address].weights().any() for address in found.weighted)


def test_what_has_no_relevance() -> None:
    model = Whole("dot")
    inputs = torch.randn(1, 5, 11)
    with pytest.raises(RecordingError, match=r"eval\(\)"):
        relevance(model, lambda: model(inputs), lambda said: said)
    model.eval()
    with pytest.raises(RecordingError, match=r"one number that depends on the model.*without a gradient"):
        relevance(model, lambda: model(inputs), lambda said: torch.zeros(()))
    with pytest.raises(RecordingError, match="called twice"):
        relevance(model, lambda: model(inputs) + model(inputs), lambda said: said)
    with pytest.raises(RecordingError, match="has no taps and no attention that Regard knows"):
        relevance(nn.Linear(3, 5).eval(), lambda: None, lambda said: torch.zeros((), requires_grad=True))
    with pytest.raises(RecordingError, match="stayed silent: attention"):
        relevance(model, lambda: model.readout(inputs), lambda said: said.sum())
