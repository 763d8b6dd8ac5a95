"""`edit`: numbers of the definition for every edit, nesting and threads, steps, and sentences for mistakes."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.attention import MultiHeadSelfAttention, build_mechanism
from regard.core.bias import OffsetBias
from regard.core.errors import EditError
from regard.core.masks import Allow, allow_causal, allow_padding
from regard.core.relations import DenseRelation
from regard.core.tap import open_editing
from regard.recording import edits

BATCH, HEADS, LENGTH, WIDTH = 2, 3, 7, 15


@pytest.fixture
def inputs() -> Tensor:
    return torch.randn(BATCH, LENGTH, WIDTH)


def attention(mechanism: str = "scaled_dot") -> MultiHeadSelfAttention:
    return MultiHeadSelfAttention(WIDTH, HEADS, axis="positions", mechanism=mechanism).eval()


def by_hand(model: MultiHeadSelfAttention, inputs: Tensor, weights: Tensor) -> Tensor:
    """The layer's output from weights that are written out."""
    _, _, values = model.project(inputs)
    return model.output((weights @ values).transpose(1, 2).flatten(2))


def own_weights(model: nn.Module, inputs: Tensor, **options) -> Tensor:
    with regard.record(model) as recording:
        model(inputs, **options)
    return recording["attention"].weights()


def masks() -> dict[str, Allow]:
    present = torch.arange(LENGTH) < torch.tensor([LENGTH, 4])[:, None]
    pairs = torch.rand(BATCH, HEADS, LENGTH, LENGTH, generator=torch.Generator().manual_seed(0)) < 0.7
    return {
        "all": Allow(),
        "causal": allow_causal(),
        "padded": allow_padding(present),
        "pairs": Allow(pairs=pairs) & allow_causal(),
    }


def expected_weights(name: str, weights: Tensor, allow: Allow) -> Tensor:
    """What each edit below is to make of the weights, from its definition."""
    changed = weights.clone()
    mask = allow.matrix(LENGTH, LENGTH)
    allowed = torch.ones_like(weights) if mask is None else mask.expand(weights.shape).float()
    even = allowed / allowed.sum(dim=-1, keepdim=True).clamp(min=1)
    if name == "mute":
        changed[:, 1] = 0
    elif name == "keep":
        changed[:, [0, 2]] = 0
    elif name == "uniform":
        changed[:, [0, 2]] = even[:, [0, 2]]
    elif name == "swap":
        changed[:, [0, 2]] = weights[:, [2, 0]]
    elif name == "replace":
        changed[:, 1, 3] = torch.tensor([0.25, 0.5, 0, 0, 0, 0, 0])
    elif name == "freeze":
        changed[:, 1] = weights[:, 0]
    elif name == "several":  # muted, then exchanged, then the silent one made uniform
        changed[:, 0], changed[:, 2] = even[:, 2], weights[:, 0]
    return changed


def edit_called(name: str, weights: Tensor) -> edits.Edit | list[edits.Edit]:
    return {
        "mute": edits.mute(1),
        "keep": edits.keep(1),
        "uniform": edits.uniform(0, 2),
        "swap": edits.swap(0, 2),
        "replace": edits.replace(3, [0.25, 0.5], head=1),
        "freeze": edits.freeze(DenseRelation(weights[:, [0, 0, 0]]), 1),
        "several": [edits.mute(2), edits.swap(0, 2), edits.uniform(0)],
    }[name]


@pytest.mark.parametrize("mechanism", ["scaled_dot", "additive"])
@pytest.mark.parametrize("mask", masks())
@pytest.mark.parametrize("name", ["mute", "keep", "uniform", "swap", "replace", "freeze", "several"])
def test_context_and_recording_are_those_of_the_edited_weights(
    name: str, mask: str, mechanism: str, inputs: Tensor
) -> None:
    model, allow = attention(mechanism), masks()[mask]
    if mask == "pairs" and name in ("replace", "freeze", "several", "swap"):
        allow = Allow(pairs=allow.pairs[:, :1] | torch.eye(LENGTH, dtype=torch.bool)) & allow_causal()
        allow = Allow(pairs=allow.pairs.index_fill(3, torch.tensor([0, 1]), True)) & allow_causal()
    weights = own_weights(model, inputs, allow=allow)
    wanted = expected_weights(name, weights, allow)
    with regard.edit(model, {"attention": edit_called(name, weights)}), regard.record(model) as recording:
        output = model(inputs, allow=allow)
    torch.testing.assert_close(recording["attention"].weights(), wanted, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(output, by_hand(model, inputs, wanted), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("offsets", [True, False])
def test_a_bias_goes_with_its_head(offsets: bool, inputs: Tensor) -> None:
    model = attention()
    by_distance = OffsetBias(3 * torch.randn(HEADS, 2 * LENGTH - 1))
    bias = by_distance if offsets else by_distance.block(0, LENGTH, LENGTH, LENGTH)[None]
    weights = own_weights(model, inputs, bias=bias)
    for name in ("swap", "uniform", "mute", "several"):
        wanted = expected_weights(name, weights, Allow())
        with regard.edit(model, {"*": edit_called(name, weights)}):
            output = model(inputs, bias=bias)
        torch.testing.assert_close(output, by_hand(model, inputs, wanted), rtol=1e-5, atol=1e-6)


def test_other_heads_keep_their_bits_when_one_is_muted() -> None:
    mechanism = build_mechanism("scaled_dot", 5, 5, 5, queries="positions", keys="positions")
    tensors = [torch.randn(BATCH, HEADS, LENGTH, 5) for _ in range(3)]
    before = mechanism(*tensors, allow=allow_causal())
    with regard.edit(mechanism, {"attention": edits.mute(1)}):
        after = mechanism(*tensors, allow=allow_causal())
    assert torch.equal(after[:, [0, 2]], before[:, [0, 2]])
    assert not after[:, 1].any()


def test_heads_that_share_keys_can_be_exchanged() -> None:
    from regard.attention import attend
    from regard.core.tap import Tap

    model = nn.Module()
    model.tap = Tap("positions", "positions")
    queries, keys, values = torch.randn(2, 4, 5, 3), torch.randn(2, 2, 7, 3), torch.randn(2, 2, 7, 11)
    with regard.record(model) as recording:
        attend(queries, keys, values, tap=model.tap)
    weights = recording["attention"].weights()
    with regard.edit(model, {"attention": edits.swap(0, 3)}):
        context = attend(queries, keys, values, tap=model.tap)
    wanted = weights[:, [3, 1, 2, 0]] @ values.repeat_interleave(2, dim=1)
    torch.testing.assert_close(context, wanted, rtol=1e-5, atol=1e-6)


def test_inner_edits_are_over_outer_ones(inputs: Tensor) -> None:
    model = attention()
    weights = own_weights(model, inputs)
    with regard.edit(model, {"*": edits.mute(0)}):
        with regard.edit(model, {"*": edits.uniform(0)}), regard.record(model) as inner:
            model(inputs)
        with regard.record(model) as outer:
            model(inputs)
    wanted = weights.clone()
    wanted[:, 0] = 1 / LENGTH
    torch.testing.assert_close(inner["attention"].weights(), wanted)
    wanted[:, 0] = 0
    torch.testing.assert_close(outer["attention"].weights(), wanted)
    assert open_editing() is None


def test_for_one_call(inputs: Tensor) -> None:
    model = attention()
    before = model(inputs)
    muted = regard.edit(model, {"attention": edits.mute()})(model)
    for _ in range(2):
        assert torch.equal(muted(inputs), model.output.bias.expand(BATCH, LENGTH, WIDTH))
        assert torch.equal(model(inputs), before)


def test_other_threads_are_not_edited(inputs: Tensor) -> None:
    model, heard = attention(), []
    before = model(inputs)
    with regard.edit(model, {"*": edits.mute()}):
        thread = threading.Thread(target=lambda: heard.append(model(inputs)))
        thread.start()
        thread.join()
        assert not torch.equal(model(inputs), before)
    assert torch.equal(heard[0], before)


def test_an_error_ends_the_edit_and_goes_on_as_it_is(inputs: Tensor) -> None:
    model = attention()
    before = model(inputs)

    def fail() -> None:
        with regard.edit(model, {"*": edits.mute()}):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert torch.equal(model(inputs), before)


def test_gradients_flow_through_edits(inputs: Tensor) -> None:
    """A uniform head's queries and keys get none; everything else does."""
    model = attention()
    with regard.edit(model, {"*": edits.uniform()}):
        model(inputs).square().sum().backward()
    queries, keys, values = model.projection.weight.grad.chunk(3)
    assert not queries.any()
    assert not keys.any()
    assert values.any()


@pytest.mark.parametrize("name", ["uniform", "replace", "freeze"])
def test_under_autocast_the_context_has_the_dtype_of_the_model(name: str, inputs: Tensor) -> None:
    model = attention()
    weights = own_weights(model, inputs)
    with torch.autocast("cpu", torch.bfloat16):
        before = model(inputs)
        with regard.edit(model, {"*": edit_called(name, weights)}):
            after = model(inputs)
    assert after.dtype == before.dtype == torch.bfloat16
    wanted = by_hand(model, inputs, expected_weights(name, weights, Allow()))
    torch.testing.assert_close(after.float(), wanted, rtol=0.05, atol=0.05)


COMPILED = """
import torch, regard
from regard.attention import MultiHeadSelfAttention

torch.manual_seed(0)
torch.set_grad_enabled(False)
model = MultiHeadSelfAttention(15, 3, axis="positions").eval()
inputs, counted = torch.randn(2, 7, 15), torch._dynamo.utils.counters["stats"]
changes = regard.edits.mute(0), regard.edits.uniform(), regard.edits.replace(2, [1.0])

compiled = torch.compile(model, backend="eager", fullgraph=True)
before = compiled(inputs)
with regard.record(compiled) as recording:
    assert torch.equal(compiled(inputs), before), "recording changes what a compiled model computes"
with regard.record(model) as expected:
    model(inputs)
assert torch.equal(recording["attention"].weights(), expected["attention"].weights())
graphs = counted["unique_graphs"]
for change in changes:
    with regard.edit(model, {"*": change}):
        wanted = model(inputs)
    with regard.edit(compiled, {"attention": change}):
        assert torch.equal(compiled(inputs), wanted) and not torch.equal(wanted, before)
assert torch.equal(compiled(inputs), before)
assert counted["unique_graphs"] == graphs, "an edit made a graph of its own"

function = torch.compile(lambda tensor: 2 * model(tensor), backend="eager")
for change in changes:
    with regard.edit(model, {"*": change}):
        assert torch.allclose(function(inputs), 2 * model(inputs)), "a function around the model is not edited"
assert torch.allclose(function(inputs), 2 * before)
"""


def test_compiled_models_are_edited_and_stay_compiled() -> None:
    """In a program of its own: what checks shapes while tests run cannot be compiled."""
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_behind_a_cache_rows_are_counted_from_the_start(inputs: Tensor) -> None:
    """A frozen map and a replaced row, one query at a time, as for all at once."""
    model = attention()
    with regard.record(model) as recording:
        model(inputs.flip(2), allow=allow_causal())
    for change in (edits.freeze(recording["attention"], 0, 2), edits.replace(4, [0, 0.5, 0, 0, 0.25])):
        with regard.edit(model, {"*": change}):
            whole = model(inputs, allow=allow_causal())
            longer = model(torch.cat([inputs, inputs], dim=1), allow=allow_causal())
            queries, keys, values = model.project(inputs)
            for step in range(LENGTH):
                past = slice(0, step + 1)
                one = model.attend(
                    queries[:, :, step : step + 1], keys[:, :, past], values[:, :, past], allow=allow_causal()
                )
                torch.testing.assert_close(one, whole[:, step : step + 1], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(longer[:, :LENGTH], whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"atention": edits.mute()}, r"matches 'atention'\. Did you mean 'attention'\? Its taps: attention\."),
        ({"attention": edits.mute(3)}, r"no head 3 in attention; it has 3, 0 to 2\."),
        ({"attention": edits.replace(7, [1.0])}, r"no query 7 in attention; it has 7"),
        ({"attention": edits.replace(0, [0.0] * 8 + [1.0])}, r"replace has 9 weights, but attention has 7 keys"),
        ({"attention": edits.freeze(DenseRelation(torch.ones(2, 3, 5, 5)))}, r"has 7 queries and 7 keys so far"),
        ({"attention": edits.freeze(DenseRelation(torch.ones(2, 2, 7, 7)))}, r"has 3 heads, .* has 2\."),
        ({"attention": edits.freeze(DenseRelation(torch.ones(5, 3, 7, 7)))}, r"for 2 examples, .* there has 5\."),
        ({"attention": "mute"}, r"is no edit of `regard.edits`: 'mute'"),
    ],
)
def test_what_does_not_fit_is_said(given: dict, message: str, inputs: Tensor) -> None:
    model = attention()
    with pytest.raises(EditError, match=message), regard.edit(model, given):
        model(inputs)


def test_keys_that_may_not_be_attended_to_are_refused(inputs: Tensor) -> None:
    model = attention()
    future = edits.replace(2, [0, 0, 0, 1.0])
    with (
        pytest.raises(EditError, match="query 2 of example 0 attend to key 3, which it may not"),
        regard.edit(model, {"*": future}),
    ):
        model(inputs, allow=allow_causal())


def test_an_edit_that_was_only_looked_at_is_idle(inputs: Tensor) -> None:
    """A mechanism that says what it attends to, but does not ask what was edited."""

    class Stubborn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = build_mechanism("dot", 3, 3, 3, queries="positions", keys="positions")

        def forward(self) -> None:
            self.inner.tap.emit(lambda: DenseRelation(torch.ones(1, 1, 1, 1)))

    model, muted = Stubborn(), {"*": edits.mute()}
    with pytest.raises(EditError, match="mute at inner"), regard.edit(model, muted), regard.record(model):
        model()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: edits.mute(-1), "counted from 0, not -1"),
        (lambda: edits.mute(1, 1), "names a head twice"),
        (lambda: edits.swap(1, 1), "two different heads"),
        (lambda: edits.swap(0, True), "not True"),
        (lambda: edits.replace(0, []), "one weight for each key"),
        (lambda: edits.replace(0, [float("nan")]), "finite"),
        (lambda: edits.replace(0, ["x"]), "'x' is none"),
        (lambda: edits.replace(-1, [1.0]), "the number of a query"),
    ],
)
def test_edits_that_make_no_sense(make, message: str) -> None:
    with pytest.raises(EditError, match=message):
        make()


def test_json_there_and_back(inputs: Tensor, tmp_path: Path) -> None:
    model = attention()
    with regard.record(model) as recording:
        model(inputs)
    path = str(recording.save(tmp_path / "own.regard"))
    given = {
        "encoder.*": edits.uniform(),
        "decoder.2.cross": [edits.mute(3), edits.swap(0, 2), edits.keep(1)],
        "decoder.0": edits.replace(4, [0.5, 0.5], head=1),
    }
    entries = edits.to_json(given)
    assert {"address": "decoder.2.cross", "edit": "mute", "heads": [3]} in entries
    assert edits.from_json(entries) == given
    assert edits.from_json([{"address": "a", "edit": "swap", "one": 0, "other": 1}]) == {"a": edits.swap(0, 1)}
    frozen = edits.freeze_saved(path, "attention", 1)
    (again,) = edits.from_json(edits.to_json({"x": frozen})).values()
    assert torch.equal(again.relation.weights(), recording["attention"].weights())
    assert again.heads == (1,)
    with pytest.raises(EditError, match="save the recording"):
        edits.freeze(recording["attention"]).to_json()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"edit": "mute"}, "an object with an address"),
        ("mute", "an object with an address"),
        ({"address": "a", "edit": "mutee"}, "Did you mean 'mute'"),
        ({"address": "a", "edit": "replace", "query": 1}, "lacks 'weights'"),
        ({"address": "a", "edit": "mute", "heads": 3}, "cannot be read"),
        ({"address": "a", "edit": "mute", "head": [3]}, "'head', which mute does not know"),
        ({"address": "a", "edit": "mute", "heads": ["x"]}, "not 'x'"),
    ],
)
def test_json_that_is_wrong(entry, message: str) -> None:
    with pytest.raises(EditError, match=message):
        edits.from_json([entry])
