"""Rollout and flow: hand-worked on three tokens, equal to products of whole matrices, through every kind of model."""

from __future__ import annotations

import networkx
import pytest
import torch

import regard
from regard.core import relations
from regard.core.axes import Frames, Grid, Text, Volume
from regard.core.errors import RecordingError
from regard.core.models import models, sizes
from regard.core.relations import DenseRelation
from regard.models.lrnet import LRNet, LRNetConfig
from regard.models.swin import Swin, SwinConfig
from regard.models.transformer import Transformer, TransformerConfig
from regard.models.vit import ViT, ViTConfig
from regard.recording import Recording
from regard.recording.resampling import resampling

FIRST = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
SECOND = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])


def of(**maps: tuple[str, str, torch.Tensor]) -> Recording:
    """A recording of dense maps, each (queries, keys, weights) with heads."""
    recording = Recording()
    for address, (queries, keys, weights) in maps.items():
        recording.relations[address] = DenseRelation(weights[None] if weights.dim() == 3 else weights[None, None])
        recording.roles[address] = (queries, keys)
    return recording


@pytest.fixture
def three() -> Recording:
    return of(one=("words", "words", FIRST), two=("words", "words", SECOND))


def test_rollout_of_three_tokens_by_hand(three: Recording) -> None:
    """A'_1 rows: (1,0,0), (1/4,3/4,0), (0,1/4,3/4); A'_2: (1,0,0), (0,1,0), (1/4,0,3/4).

    Third row of the product: 1/4 (1,0,0) + 3/4 (0,1/4,3/4) = (4,3,9) / 16.
    """
    found = three.rollout()
    assert found.weights.tolist() == [[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.25, 0.1875, 0.5625]]
    assert three.rollout(rows=2).weights.tolist() == [0.25, 0.1875, 0.5625]
    assert three.rollout(rows=slice(1, None)).weights.shape == (2, 3)
    assert (found.queries, found.keys) == ("words", "words")
    assert three.rollout(residual=0.0).weights[2].tolist() == [0.5, 0.25, 0.25]
    assert three.rollout(residual=1.0).weights.tolist() == torch.eye(3).tolist()
    assert three.rollout(taps="one").weights[1].tolist() == [0.25, 0.75, 0.0]


def test_flow_of_three_tokens_by_hand(three: Recording) -> None:
    """From the third token: 3/4 goes to itself and 1/4 to the first; of the 3/4, 1/4 may go on to the second.

    Edges below: third lets 1/4 to the second and 3/4 to the third, first all to itself. So the flows are 1/4, then
    min(3/4, 1/4) = 1/4 where the rollout has 3/16, and min(3/4, 3/4) = 3/4 where it has 9/16.
    """
    assert three.flow(rows=2).weights.tolist() == [0.25, 0.25, 0.75]
    assert three.flow().weights.shape == (3, 3)


def test_heads_are_put_together() -> None:
    weights = torch.stack([FIRST, FIRST.flip(1)])
    recording = of(one=("words", "words", weights))
    for heads, fused in (("mean", weights.mean(0)), ("max", weights.amax(0)), ("min", weights.amin(0))):
        wanted = (fused + torch.eye(3)) / (fused.sum(-1, keepdim=True) + 1)
        torch.testing.assert_close(recording.rollout(heads=heads).weights, wanted)
        flows = recording.flow(heads=heads).weights
        torch.testing.assert_close(flows, wanted, rtol=0, atol=1e-7)


def dense_step(shown: regard.recording.RecordedMap, example: int, residual: float = 0.5) -> tuple[torch.Tensor, ...]:
    """A' in float64: its own part and the part taken from the keys."""
    fused = shown.relation.weights()[example].double().mean(0)
    normal = (1 - residual) * fused.sum(-1, keepdim=True) + residual
    return residual * torch.eye(len(fused), dtype=torch.float64) / normal, (1 - residual) * fused / normal


def self_attention(recording: Recording, example: int, addresses: list[str]) -> torch.Tensor:
    rolled = torch.eye(recording[addresses[0]].shape[3], dtype=torch.float64)
    for address in addresses:
        own, taken = dense_step(recording[address], example)
        rolled = (own + taken) @ rolled
    return rolled


@pytest.mark.parametrize("pooling", ["token", "mean"])
@pytest.mark.parametrize("block", [1 << 18, 1])
def test_of_a_vision_transformer(pooling: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a class token and without."""
    config = ViTConfig(image_size=10, patch_size=2, width=12, num_heads=3, num_blocks=3, pooling=pooling)
    model = ViT(config, 5, 3).eval()
    with torch.no_grad(), regard.record(model) as recording:
        model(torch.randn(2, 3, 10, 14))
    grid = model.axes(10, 14)["patches"]
    recording.label(patches=[grid] * 2)
    wanted = self_attention(recording, 1, recording.addresses)
    monkeypatch.setattr(relations, "_BLOCK_WEIGHTS", block)
    monkeypatch.setattr("regard.recording.rollout.CHUNK", 300 if block == 1 else 1 << 24)
    found = recording.rollout(example=1)
    torch.testing.assert_close(found.weights.double(), wanted, rtol=0, atol=1e-6)
    assert found.key_axis == grid
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(len(grid)))


def test_of_an_encoder_and_decoder_with_padding() -> None:
    """Rows of a target position over sources and targets together sum to one, and padding gets nothing."""
    model = Transformer(TransformerConfig(width=12, num_heads=3, num_encoder_blocks=2, num_decoder_blocks=2), 19, 19)
    source, target = torch.randint(4, 19, (2, 7)), torch.randint(4, 19, (2, 5))
    source[1, 4:] = 0
    with torch.no_grad(), regard.record(model.eval()) as recording:
        model(source, target)
    recording.label(source=[Text(tuple("abcdefg")), Text(tuple("abcd"))], target=[Text(tuple("vwxyz"))] * 2)
    for example, sources in ((0, 7), (1, 4)):
        encoder = self_attention(recording, example, ["encoder.0.attention", "encoder.1.attention"])
        on_target, on_source = torch.eye(5, dtype=torch.float64), torch.zeros(5, 7, dtype=torch.float64)
        for block in range(2):
            own, taken = dense_step(recording[f"decoder.{block}.attention"], example)
            on_target, on_source = (own + taken) @ on_target, (own + taken) @ on_source
            cross = recording[f"decoder.{block}.cross"].relation.weights()[example].double().mean(0)
            on_target, on_source = on_target / 2, on_source / 2 + cross @ encoder / 2
        found = recording.rollout(example=example)
        assert (found.queries, found.keys) == ("target", "source")
        torch.testing.assert_close(found.weights.double(), on_source[:, :sources], rtol=0, atol=1e-6)
        own = recording.rollout(example=example, onto="target").weights
        torch.testing.assert_close(own.double(), on_target, rtol=0, atol=1e-6)
        torch.testing.assert_close(found.weights.sum(-1) + own.sum(-1), torch.ones(5))
        inside = recording.rollout(example=example, start="source", onto="source").weights
        torch.testing.assert_close(inside.double(), encoder[:sources, :sources], rtol=0, atol=1e-6)


def test_an_overview_is_the_statistics_and_a_row_of_the_rollout() -> None:
    model = Transformer(TransformerConfig(width=12, num_heads=3, num_encoder_blocks=2, num_decoder_blocks=2), 19, 19)
    source, target = torch.randint(4, 19, (2, 7)), torch.randint(4, 19, (2, 5))
    source[1, 4:] = 0
    with torch.no_grad(), regard.record(model.eval()) as recording:
        model(source, target)
    recording.label(source=[Text(tuple("abcdefg")), Text(tuple("abcd"))], target=[Text(tuple("vwxyz"))] * 2)
    surveys, row = recording.overview(row=3, example=1)
    torch.testing.assert_close(row.weights, recording.rollout(rows=3, example=1).weights)
    assert list(surveys) == recording.addresses
    for address, found in surveys.items():
        shown = recording[address]
        torch.testing.assert_close(found.entropy, shown.entropy(1))
        torch.testing.assert_close(found.received, shown.received(1))
        assert (found.distance is None) == ("cross" in address)
    inner, _ = recording.overview(row=3, example=1, onto="target")
    assert set(inner) == set(recording.addresses), "maps that the row does not reach are looked at too"


def swin() -> tuple[Swin, SwinConfig]:
    config = SwinConfig(image_size=28, patch_size=2, window_size=4, width=6, num_heads=(2, 3), num_blocks=(2, 2))
    return Swin(config, 5, 3).eval(), config


@pytest.mark.parametrize("size", [(32, 32), (26, 38)])
def test_through_shifted_windows_and_merging(size: tuple[int, int]) -> None:
    """The result lands on the finest patches; what windows' filling received is nowhere."""
    model, _ = swin()
    with torch.no_grad(), regard.record(model) as recording:
        model(torch.randn(1, 3, *size))
    axes = model.axes(*size)
    recording.label(**{role: [axis] for role, axis in axes.items()})
    names = recording.addresses
    fine = self_attention(recording, 0, names[:2])
    merged = resampling(axes["stage2"], axes["stage1"])
    assert merged is not None
    wanted = self_attention(recording, 0, names[2:]) @ merged.matrix().double() @ fine
    found = recording.rollout()
    assert (found.queries, found.keys) == ("stage2", "stage1")
    torch.testing.assert_close(found.weights.double(), wanted, rtol=0, atol=1e-6)
    if size == (32, 32):
        torch.testing.assert_close(found.weights.sum(-1), torch.ones(64))
    some = recording.rollout(rows=3).weights
    torch.testing.assert_close(some, found.weights[3])


def test_through_strides_of_local_attention() -> None:
    """The first layer of a stage looks from its own places at those of the stage before."""
    model = LRNet(LRNetConfig(num_blocks=(1, 1), window_size=3, width=4, inner_width=8), 5, 3).eval()
    with torch.no_grad(), regard.record(model) as recording:
        model(torch.randn(1, 3, 8, 12))
    recording.label(**{role: [axis] for role, axis in model.axes(8, 12).items()})
    found = recording.rollout()
    assert found.keys == "pixels"
    assert len(found.key_axis) == 96
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(len(found.weights)))


def test_of_every_kind_of_model_there_is() -> None:
    """Whatever is registered and has attention in one stream can be rolled out; rows are shares."""
    config = sizes["vit_pixels_16"]().model_copy(update={"num_blocks": 1})
    model = models["vit"].build(config, 3, 3).eval()
    with torch.no_grad(), regard.record(model) as recording:
        model(torch.randn(1, 3, 16, 16))
    weights = recording.rollout(rows=0).weights
    assert weights.min() >= 0
    torch.testing.assert_close(weights.sum(), torch.tensor(1.0))


def test_flow_is_that_of_networkx() -> None:
    """An independent solver on an independent graph of a random decoder over two layers."""
    cross = torch.rand(2, 3, 5).softmax(-1)
    inner, outer = torch.rand(2, 5, 5).softmax(-1), torch.rand(2, 3, 3).softmax(-1)
    recording = of(e=("s", "s", inner), d=("t", "t", outer), c=("t", "s", cross))
    graph = networkx.DiGraph()
    for upper, lower, fused, own in (
        (("t", 2), ("s", 1), cross.mean(0), ("t", 1)),
        (("t", 1), ("t", 0), outer.mean(0), ("t", 0)),
        (("s", 1), ("s", 0), inner.mean(0), ("s", 0)),
    ):
        for query in range(len(fused)):
            entries = {(lower, key): float(fused[query, key]) / 2 for key in range(fused.shape[1])}
            entries[own, query] = entries.get((own, query), 0.0) + 0.5
            for node, capacity in entries.items():
                graph.add_edge((upper, query), node, capacity=capacity)
    for onto, count in (("s", 5), ("t", 3)):
        found = recording.flow(rows=1, onto=onto).weights
        wanted = [networkx.maximum_flow_value(graph, (("t", 2), 1), ((onto, 0), place)) for place in range(count)]
        torch.testing.assert_close(found.double(), torch.tensor(wanted, dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 3}, "no position 3 in 'words'; it has 3"),
        ({"onto": "pixels"}, "`onto` is 'pixels'; choose one of: words"),
        ({"start": "pixels"}, "`start` is 'pixels'; choose one of: words"),
        ({"residual": 1.5}, "from 0 to 1"),
        ({"heads": "median"}, "'mean', 'max' or 'min'"),
        ({"taps": "decoder*"}, "No recorded tap matches 'decoder\\*'. Recorded: one, two"),
    ],
)
@pytest.mark.parametrize("view", ["rollout", "flow"])
def test_what_cannot_be_composed(three: Recording, view: str, options: dict, message: str) -> None:
    with pytest.raises(RecordingError, match=message):
        getattr(three, view)(**options)


def test_maps_over_other_positions_are_not_composed() -> None:
    recording = of(one=("words", "words", FIRST), two=("words", "words", torch.eye(5)))
    with pytest.raises(RecordingError, match="two has 5 positions of 'words', maps before it 3"):
        recording.rollout()


def test_a_flow_over_the_budget_is_refused(three: Recording) -> None:
    three.budget = 100
    with pytest.raises(RecordingError, match="A flow would take 864 bytes of memory, more than the budget"):
        three.flow()


def test_resampling_by_hand() -> None:
    """Three columns of 2 pixels from four of 1.5: the first is covered 3/4 by the first and 1/4 by the second."""
    coarse, fine = Grid(1, 3, 2, 6), Grid(2, 4, 2, 6, ("class",))
    between = resampling(coarse, fine)
    assert between is not None
    row = between.matrix()[0]
    torch.testing.assert_close(row, torch.tensor([0, 0.375, 0.125, 0, 0, 0.375, 0.125, 0, 0]))
    vectors = torch.rand(2, 3)
    torch.testing.assert_close(between.pull(vectors), vectors @ between.matrix())
    assert (between.num_new, between.num_old) == (3, 9)


def test_resampling_of_other_axes() -> None:
    assert resampling(Text(("a",)), Text(("a",))) is None
    assert resampling(Grid(1, 1, 2, 2), Frames(3, 0.1)) is None
    frames = resampling(Frames(2, 0.4), Frames(4, 0.2))
    assert frames is not None
    torch.testing.assert_close(frames.matrix(), torch.tensor([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]))
    volume = resampling(Volume(1, 1, 2), Volume(2, 1, 2))
    assert volume is not None
    torch.testing.assert_close(volume.matrix(), torch.tensor([[0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5]]))
    kept = resampling(Grid(1, 1, 2, 2, ("class", "new")), Grid(1, 1, 2, 2, ("old", "class")))
    assert kept is not None
    assert kept.matrix().tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]
    torch.testing.assert_close(kept.pull(torch.rand(1, 3)).shape, torch.Size([1, 3]))
