"""Every view of every form of relation equals the same made in float64 from the whole map, in blocks or at once."""

from __future__ import annotations

import itertools

import pytest
import torch

from core.test_relations import BATCH, HEADS, KEYS, QUERIES, WIDTH, all_forms
from regard.core import products, relations
from regard.core.axes import Axis, Boxes, Frames, Grid, Series, Slots, Text, Volume
from regard.core.errors import RecordingError
from regard.core.masks import allow_causal, allow_padding
from regard.core.relations import DenseRelation, DotRelation, Relation
from regard.recording import RecordedMap
from regard.recording.fused import fits, fused_entropy, fused_pull, fused_squared_distance
from regard.recording.survey import survey

BLOCKS = [1 << 18, 2 * KEYS + 1, 1]


@pytest.fixture(params=list(all_forms()))
def relation(request: pytest.FixtureRequest) -> Relation:
    return all_forms()[request.param]


@pytest.fixture(params=BLOCKS)
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "_BLOCK_WEIGHTS", request.param)


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found.double(), wanted.double(), rtol=0, atol=2e-6, equal_nan=True)


LENGTHS = [QUERIES, 3]


def seen(relation: Relation) -> RecordedMap:
    """Both axes are one text, so that there are distances; the second example has two queries of padding."""
    long, short = Text(tuple("abcdefg")), Text(tuple("abc"))
    return RecordedMap("here", "words", "words", relation, [Text(tuple("abcde")), short], [long, long])


@pytest.mark.usefixtures("_blocks")
def test_a_survey_is_what_the_whole_map_says(relation: Relation) -> None:
    whole = relation.weights().double()
    vectors = torch.rand(BATCH, 1, 2, QUERIES)
    found = seen(relation).survey(vectors=vectors)
    close(found.entropy, torch.special.entr(whole).sum(-1))
    close(found.largest, whole.amax(-1))
    present = whole.clone()
    present[1, :, 3:] = 0
    close(found.received, present.sum(2))
    close(found.pulled, vectors.double() @ whole)
    away = (torch.arange(QUERIES)[:, None] - torch.arange(KEYS)).abs().double()
    distance = (whole * away).sum(-1) / whole.sum(-1)
    distance[1, :, 3:] = torch.nan
    close(found.distance, distance)


@pytest.mark.usefixtures("_blocks")
def test_products_are_those_with_the_whole_map(relation: Relation) -> None:
    whole = relation.weights().double()
    for heads in (1, HEADS):
        rows, features = torch.rand(BATCH, heads, 3, QUERIES), torch.randn(BATCH, heads, KEYS, 2)
        close(products.pull(relation, rows), rows.double() @ whole)
        close(products.spread_values(relation, features), whole @ features.double())
    close(products.row_sums(relation), whole.sum(-1))


@pytest.mark.usefixtures("_blocks")
def test_agreement_of_heads(relation: Relation) -> None:
    """The mean over the queries that are there of the Bhattacharyya coefficient of two rows."""
    whole = relation.weights().double()
    found = seen(relation).agreement()
    assert found.shape == (BATCH, HEADS, HEADS)
    for example, one, other in itertools.product(range(BATCH), range(HEADS), (0, 4)):
        length = LENGTHS[example]
        rows = (whole[example, one, :length] * whole[example, other, :length]).sqrt().sum(-1)
        close(found[example, one, other], rows.mean())


def test_agreement_by_hand() -> None:
    dense = torch.tensor([[[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [1.0, 0.0]]]])
    shown = RecordedMap("here", "a", "b", DenseRelation(dense))
    close(shown.agreement()[0, 0], torch.tensor([1.0, 1.0, 0.5**0.5 / 2]))
    later = RecordedMap("there", "a", "b", DenseRelation(dense[:, 2:]))
    close(shown.agreement(later)[0], torch.tensor([[0.5**0.5 / 2], [0.5**0.5 / 2], [1.0]]))
    with pytest.raises(RecordingError, match="Heads of here and there cannot be compared: 1 x 2 x 2 and 1 x 2 x 1"):
        shown.agreement(RecordedMap("there", "a", "b", DenseRelation(dense[..., :1])))


@pytest.mark.usefixtures("_blocks")
def test_views_of_an_example_have_no_padding(relation: Relation) -> None:
    shown, whole = seen(relation), relation.weights().double()[1, :, :3]
    close(shown.entropy(1), torch.special.entr(whole).sum(-1))
    close(shown.largest(1), whole.amax(-1))
    close(shown.received(1), whole.sum(1))
    values, keys = shown.top(2, 1)
    assert values.shape == keys.shape == (HEADS, 3, 2)
    close(whole.gather(-1, keys), values)
    close(values, whole.sort(dim=-1, descending=True).values[..., :2])
    assert shown.distance(1).shape == (HEADS, 3)


def test_means_do_not_count_padding_or_queries_without_keys(relation: Relation) -> None:
    found = seen(relation).means()
    assert set(found) == {"entropy", "largest", "distance"}
    whole = relation.weights().double()
    for example, length in enumerate(LENGTHS):
        for head in range(HEADS):
            rows = whole[example, head, :length]
            rows = rows[rows.sum(-1) > 0]
            close(found["entropy"][example, head], torch.special.entr(rows).sum(-1).mean())
            close(found["largest"][example, head], rows.amax(-1).mean())


def test_chosen_heads_and_rows_are_all_that_is_computed(relation: Relation) -> None:
    shown, whole = seen(relation), relation.weights()
    close(shown.weights(head=[4, 1], rows=[2, 0]), whole[:, [4, 1]][:, :, [2, 0]])
    close(shown.weights(head=-1, rows=[-1]), whole[:, -1, -1:])
    close(shown.weights(example=0, head=[3], rows=1), whole[0, [3], 1])
    close(shown.weights(example=0, head=3, rows=slice(0, 5, 2)), whole[0, 3, ::2])
    assert shown.weights(rows=[]).shape == (BATCH, HEADS, 0, KEYS)
    for options in ({"head": [0, 9]}, {"rows": [0, 9]}):
        with pytest.raises(RecordingError, match="There is no"):
            shown.weights(**options)


def test_weights_times_the_norms_of_values() -> None:
    dot = all_forms()["dot, groups"]
    assert isinstance(dot, DotRelation)
    norms = torch.rand(BATCH, 2, KEYS)
    shown = RecordedMap("here", "a", "b", DotRelation(dot.queries, dot.keys, dot.scale, value_norms=norms))
    wanted = dot.weights() * norms.repeat_interleave(HEADS // 2, dim=1)[:, :, None]
    close(shown.norm_weighted(), wanted)
    close(shown.norm_weighted(1, head=2, rows=3), wanted[1, 2, 3])
    with pytest.raises(RecordingError, match="norms of values were not recorded at here"):
        RecordedMap("here", "a", "b", dot).norm_weighted()


MEASURED: list[tuple[Axis, Axis, str, str, list[list[float]]]] = [
    (Text(tuple("ab")), Text(tuple("ab")), "same", "tokens", [[0, 1], [1, 0]]),
    (Series(("x", "y")), Series(("x", "y", "z")), "same", "observations", [[0, 1, 2], [1, 0, 1]]),
    (Frames(2, 0.4), Frames(4, 0.2), "other", "seconds", [[0.1, 0.1, 0.3, 0.5], [0.5, 0.3, 0.1, 0.1]]),
    (Grid(1, 2, 6, 8), Grid(2, 1, 6, 8), "other", "pixels", [[2.5, 2.5], [2.5, 2.5]]),
    (Boxes(("one",), ((0, 0, 4, 6),)), Grid(1, 2, 6, 8), "other", "pixels", [[0, 4]]),
    (Volume(2, 1, 2), Volume(2, 1, 2), "other", "voxels", [[0, 1, 1, 2**0.5]]),
]


@pytest.mark.parametrize(("queries", "keys", "role", "unit", "distances"), MEASURED)
def test_distances_by_hand(queries: Axis, keys: Axis, role: str, unit: str, distances: list[list[float]]) -> None:
    """One key at a time gets all the weight, so that the mean is the distance of that key."""
    roles = ("place", "place") if role == "same" else ("here", "there")
    for key in range(len(keys)):
        weights = torch.zeros(1, 1, len(queries), len(keys))
        weights[..., key] = 1.0
        shown = RecordedMap("it", *roles, DenseRelation(weights), [queries], [keys])
        assert shown.unit == unit
        for query, row in enumerate(distances):
            assert shown.distance()[0, 0, query].item() == pytest.approx(row[key], abs=1e-6)


def test_a_class_token_is_nowhere() -> None:
    """As a query it has no distance; as a key it is left out and the patches share the whole."""
    grid = Grid(1, 2, 6, 8, ("class",))
    weights = torch.tensor([[[[0.2, 0.4, 0.4], [0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]]])
    shown = RecordedMap("it", "patches", "patches", DenseRelation(weights), [grid], [grid])
    close(shown.distance()[0, 0], torch.tensor([torch.nan, 2.0, torch.nan]))
    close(shown.means()["distance"][0], torch.tensor([2.0]))


@pytest.mark.parametrize(
    ("queries", "keys", "roles"),
    [
        (Text(("a",)), Grid(1, 1, 2, 2), ("word", "patch")),
        (Text(("a",)), Text(("a",)), ("target", "source")),
        (Slots(("a",)), Slots(("a",)), ("slot", "slot")),
        (Volume(1, 1, 1), Volume(2, 1, 1), ("fine", "coarse")),
    ],
)
def test_axes_without_a_common_measure(queries: Axis, keys: Axis, roles: tuple[str, str]) -> None:
    relation = DenseRelation(torch.ones(1, 1, len(queries), len(keys)) / len(keys))
    shown = RecordedMap("here", *roles, relation, [queries], [keys])
    with pytest.raises(RecordingError, match=f"here relates '{roles[0]}'.*have no common measure"):
        shown.distance()
    assert shown.survey().distance is None
    assert "distance" not in shown.means()
    with pytest.raises(RecordingError, match=f"Nothing is known of the places of '{roles[0]}'"):
        RecordedMap("here", *roles, relation).distance()


def test_fused_statistics_are_those_of_the_whole_map() -> None:
    for name, relation in all_forms().items():
        if not fits(relation):
            continue
        assert isinstance(relation, DotRelation)
        whole = relation.weights().double()
        close(fused_entropy(relation), torch.special.entr(whole).sum(-1))
        rows = torch.rand(BATCH, HEADS, 3, QUERIES)
        received, pulled = fused_pull(relation, rows)
        close(received, whole.sum(2))
        close(pulled, rows.double() @ whole)
        here, there = torch.rand(QUERIES, 2) * 9, torch.rand(KEYS, 2) * 9
        squared = torch.cdist(here, there).square().double()
        wanted = (whole * squared).sum(-1).masked_fill(whole.sum(-1) == 0, torch.nan)
        found = fused_squared_distance(relation, here, there)
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-4, equal_nan=True, msg=name)


def test_fused_statistics_of_rows_beyond_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.recording.fused.ROWS", 2)
    relation = all_forms()["dot, causal and padded"]
    assert isinstance(relation, DotRelation)
    whole = relation.weights().double()
    close(fused_entropy(relation), torch.special.entr(whole).sum(-1))
    received, _ = fused_pull(relation, torch.rand(BATCH, 1, 1, QUERIES))
    close(received, whole.sum(2))


def test_the_fused_kernel_has_no_statistics_of_a_bias() -> None:
    relation = all_forms()["dot, bias"]
    assert not fits(relation)
    with pytest.raises(RecordingError, match="with a bias"):
        fused_entropy(relation)  # type: ignore[arg-type]


def test_large_scores_and_rows_without_keys_stay_finite() -> None:
    queries, keys = 40 * torch.randn(1, 2, 5, WIDTH), 40 * torch.randn(1, 2, 5, WIDTH)
    hidden = allow_padding(torch.tensor([[False, False, True, True, False]]))
    relation = DotRelation(queries, keys, 1.0, allow_causal() & hidden)
    whole, found = relation.weights().double(), survey(relation)
    torch.testing.assert_close(found.entropy.double(), torch.special.entr(whole).sum(-1), rtol=0, atol=5e-3)
    assert found.entropy.isfinite().all()
    assert (found.largest[:, :, :2] == 0).all()
    received, pulled = fused_pull(relation, torch.ones(1, 1, 1, 5))
    torch.testing.assert_close(received.double(), whole.sum(2), rtol=1e-2, atol=1e-3)
    torch.testing.assert_close(pulled[:, :, 0].double(), whole.sum(2), rtol=1e-2, atol=1e-3)


def test_half_precision_is_read_in_full() -> None:
    exact = all_forms()["dot"]
    assert isinstance(exact, DotRelation)
    half = DotRelation(exact.queries.bfloat16(), exact.keys.bfloat16(), exact.scale)
    full = DotRelation(half.queries.float(), half.keys.float(), exact.scale)
    assert torch.equal(survey(half).entropy, survey(full).entropy)
    assert torch.equal(half.weights(), full.weights())
