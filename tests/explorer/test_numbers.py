"""What the browser computes is what Python computes: rows of every form and number type, statistics, rollout."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.core.axes import Frames, Grid, Text, Volume
from regard.core.bias import OffsetBias
from regard.core.grouped import GroupedRelation
from regard.core.masks import Allow
from regard.core.relations import DenseRelation, DotRelation, SparseRelation
from regard.recording import Recording

from .conftest import labelled, translation

ROWS = """async (number) => {
  const { Recording } = await import("/browser/recording.js");
  const bytes = new Uint8Array(await (await fetch(`/api/recordings/${number}`)).arrayBuffer());
  const recording = new Recording(bytes);
  const found = {};
  for (const [address, tap] of recording.taps) {
    found[address] = [];
    for (let example = 0; example < recording.examples; example++) {
      const heads = [];
      for (const head of [...Array(tap.heads).keys(), "mean"]) {
        const rows = [];
        for (let query = 0; query < tap.numQueries(example); query++) rows.push([...tap.row(example, head, query)]);
        heads.push(rows);
      }
      found[address].push(heads);
    }
  }
  return found;
}"""


def dot(dtype: torch.dtype = torch.float32, heads: int = 4, groups: int = 2, **more: object) -> DotRelation:
    queries = torch.randn(2, heads, 5, 3).to(dtype)
    return DotRelation(queries, torch.randn(2, groups, 7, 3).to(dtype), 0.7, **more)  # type: ignore[arg-type]


def forms() -> dict[str, Recording]:
    """Every form, each with all that it may carry; the second example is shorter than the first."""
    present = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    nothing = torch.rand(2, 1, 5, 7) < 0.6
    nothing[0, 0, 2] = False
    indices = torch.randint(-1, 7, (2, 3, 5, 4))
    places = torch.tensor([[4, 0], [1, -1], [3, 2]])
    inner = DotRelation(
        torch.randn(6, 2, 2, 3), torch.randn(6, 2, 3, 3), 0.9, Allow(pairs=torch.rand(6, 1, 2, 3) < 0.8)
    )
    grouped = GroupedRelation(inner, places, torch.tensor([[0, 6, 2], [1, -1, 5], [3, 4, 4]]), 5, 7)
    relations = {
        "plain": dot(),
        "bfloat16": dot(torch.bfloat16),
        "float16": dot(torch.float16),
        "float64": dot(torch.float64),
        "causal": dot(allow=Allow(causal=True)),
        "padded": dot(allow=Allow(keys=present)),
        "window": dot(allow=Allow(window=2, causal=True, keys=present)),
        "pairs": dot(allow=Allow(pairs=nothing)),
        "pairs_of_two": dot(allow=Allow(pairs=nothing[0, 0])),
        "pairs_of_three": dot(allow=Allow(pairs=nothing[:, 0])),
        "bias": dot(bias=torch.randn(1, 4, 5, 7)),
        "offsets": dot(bias=OffsetBias(torch.randn(4, 11))),
        "large": dot(heads=1, groups=1, bias=OffsetBias(300 * torch.randn(1, 11))),
        "dense": DenseRelation(torch.randn(2, 3, 5, 7).softmax(dim=-1)),
        "dense16": DenseRelation(torch.randn(2, 3, 5, 7).softmax(dim=-1).half()),
        "sparse": SparseRelation(indices, torch.rand(2, 3, 5, 4), 7),
        "sparse32": SparseRelation(indices.int(), torch.rand(2, 3, 5, 4).bfloat16(), 7),
        "grouped": grouped,
    }
    letters = "abcdefg"
    axes = {
        "target": [Text(tuple(letters[:5])), Text(tuple(letters[:3]))],
        "source": [Text(tuple(letters)), Text(tuple(letters[:4]))],
    }
    roles = dict.fromkeys(relations, ("target", "source"))
    # Without axes, nothing is cut off: padded rows are as Python has them.
    return {"labelled": labelled(relations, roles, **axes), "plain": labelled(relations, roles)}


def test_rows_are_those_of_python(open_site, open_page):
    recordings = forms()
    page = open_page(open_site(recordings))
    for number, recording in enumerate(recordings.values()):
        found = page.evaluate(ROWS, number)
        assert set(found) == set(recording)
        for address in recording:
            for example in range(2):
                expected = recording[address].weights(example=example)
                expected = torch.cat([expected, expected.mean(dim=0, keepdim=True)]).numpy()
                given = np.array(found[address][example])
                assert given.shape == expected.shape, address
                np.testing.assert_allclose(given, expected, atol=3e-6, err_msg=address)


STATISTICS = """async (number) => {
  const { Recording } = await import("/browser/recording.js");
  const { Statistics } = await import("/browser/statistics.js");
  const bytes = new Uint8Array(await (await fetch(`/api/recordings/${number}`)).arrayBuffer());
  const recording = new Recording(bytes);
  const statistics = new Statistics(recording, 0);
  for (const _ of statistics.compute());
  return { heads: Object.fromEntries(statistics.heads), sampled: statistics.sampled };
}"""

AXES = {
    "tokens": (Text(tuple("abcde")), [[0], [1], [2], [3], [4]]),
    "patches": (Grid(1, 3, 8, 30, ("class", "other")), [None, None, [5, 4], [15, 4], [25, 4]]),
    "frames": (Frames(5, 0.25), [[0], [0.25], [0.5], [0.75], [1.0]]),
    "voxels": (Volume(1, 5, 1), [[0, 0, 0], [0, 1, 0], [0, 2, 0], [0, 3, 0], [0, 4, 0]]),
}


@pytest.mark.parametrize("kind", AXES)
def test_statistics_are_those_of_a_dense_map(open_site, open_page, kind):
    axis, places = AXES[kind]
    relation = DotRelation(torch.randn(1, 3, 5, 7), torch.randn(1, 3, 5, 7), 1.0)
    recording = labelled({"a": relation}, {"a": ("one", "one")}, one=[axis])
    found = open_page(open_site({"r": recording})).evaluate(STATISTICS, 0)
    assert not found["sampled"]
    weights = relation.weights()[0].double()
    for head in range(3):
        here = found["heads"][f"a/{head}"]
        rows = weights[head]
        assert here["entropy"] == pytest.approx(float(recording["a"].entropy()[0, head].mean()), abs=1e-6)
        assert here["largest"] == pytest.approx(float(rows.amax(dim=1).mean()), abs=1e-6)
        distances = []
        for query, start in enumerate(places):
            if start is None:
                continue
            known = [key for key, place in enumerate(places) if place is not None]
            between = [np.linalg.norm(np.subtract(places[key], start)) for key in known]
            share = rows[query, known]
            distances.append(float((share * torch.tensor(between)).sum() / share.sum()))
        assert here["distance"] == pytest.approx(np.mean(distances), abs=1e-5)
        assert here["distance"] == pytest.approx(float(recording["a"].distance(0)[head].nanmean()), rel=1e-5)


def test_there_is_no_distance_between_words_and_patches(open_site, open_page):
    relation = DenseRelation(torch.rand(1, 1, 2, 6).softmax(dim=-1))
    recording = labelled(
        {"a": relation}, {"a": ("words", "patches")}, words=[Text(("a", "b"))], patches=[Grid(2, 3, 4, 6)]
    )
    found = open_page(open_site({"r": recording})).evaluate(STATISTICS, 0)
    assert found["heads"]["a/0"]["distance"] is None


ROLLOUT = """async ([tap, query]) => {
  const { Recording } = await import("/browser/recording.js");
  const { rollout } = await import("/browser/rollout.js");
  const bytes = new Uint8Array(await (await fetch("/api/recordings/0")).arrayBuffer());
  const recording = new Recording(bytes);
  const work = rollout(recording, recording.taps.get(tap), 0, query);
  for (;;) {
    const { done, value } = work.next();
    if (done) return { row: [...value.row], layers: value.layers.map((layer) => layer.address) };
  }
}"""


def test_rollout_is_the_product_of_layers(open_site, open_page):
    recording = translation(layers=3)
    page = open_page(open_site({"r": recording}))
    through = {}
    for address in recording:
        own = recording[address].weights(example=0).double().mean(dim=0)
        through[address] = own / 2
    same = torch.eye(6, dtype=torch.float64) / 2
    encoder = [same + through[f"encoder.{layer}.self"] for layer in range(3)]
    found = page.evaluate(ROLLOUT, ["encoder.2.self", 4])
    expected = encoder[2] @ encoder[1] @ encoder[0]
    np.testing.assert_allclose(found["row"], expected[4].numpy(), atol=1e-6)
    # The taps alternate, so the second cross attention reads what two layers of the encoder made.
    found = page.evaluate(ROLLOUT, ["decoder.1.cross", 2])
    assert found["layers"] == ["decoder.1.cross", "encoder.1.self", "decoder.0.cross", "encoder.0.self"]
    expected = (through["decoder.1.cross"] @ encoder[1] + through["decoder.0.cross"] / 2) @ encoder[0]
    np.testing.assert_allclose(found["row"], expected[2].numpy(), atol=1e-6)
    assert sum(found["row"]) == pytest.approx(0.75, abs=1e-5)


@pytest.mark.parametrize(("onto", "tap"), [("source", "decoder.2.cross"), ("source", "encoder.2.self")])
def test_rollout_is_that_of_python(open_site, open_page, onto, tap):
    recording = translation(layers=3)
    if tap.startswith("encoder"):
        for layer in range(3):
            del recording.relations[f"decoder.{layer}.cross"], recording.roles[f"decoder.{layer}.cross"]
        del recording.axes["target"]
    page = open_page(open_site({"r": recording}))
    expected = recording.rollout(rows=3, onto=onto).weights
    np.testing.assert_allclose(page.evaluate(ROLLOUT, [tap, 3])["row"], expected.numpy(), atol=2e-6)


def test_a_position_that_looks_at_nothing_stays_what_it_is(open_site, open_page):
    weights = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])[None, None]
    recording = labelled({"a": DenseRelation(weights)}, {"a": ("q", "q")}, q=[Text(("x", "y", "z"))])
    page = open_page(open_site({"r": recording}))
    assert page.evaluate(ROLLOUT, ["a", 1])["row"] == [0, 1, 0]
    assert page.evaluate(ROLLOUT, ["a", 0])["row"] == [0.75, 0.25, 0]
