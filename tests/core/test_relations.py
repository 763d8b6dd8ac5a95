"""All forms of a relation speak one language: rows, examples, steps, files."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from regard.core import relations
from regard.core.bias import OffsetBias
from regard.core.errors import RecordingError
from regard.core.grouped import GroupedRelation
from regard.core.masks import Allow, allow_causal, allow_padding, allow_window
from regard.core.relations import FORMS, DenseRelation, DotRelation, Relation, SparseRelation, masked_softmax

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 6, 5, 7, 11


def dots(allow: Allow | None = None, bias: object = None, groups: int = HEADS) -> DotRelation:
    queries, keys = torch.randn(BATCH, HEADS, QUERIES, WIDTH), torch.randn(BATCH, groups, KEYS, WIDTH)
    return DotRelation(queries, keys, 0.3, allow or Allow(), bias)


def dense() -> DenseRelation:
    return DenseRelation(torch.rand(BATCH, HEADS, QUERIES, KEYS).softmax(dim=-1))


def sparse() -> SparseRelation:
    """Three places a query, one of them unused."""
    indices = torch.rand(BATCH, HEADS, QUERIES, KEYS).argsort(dim=-1)[..., :3]
    indices[..., 2] = -1
    return SparseRelation(indices, torch.rand(BATCH, HEADS, QUERIES, 3), KEYS)


def grouped(inner: str = "dot") -> GroupedRelation:
    """Three groups of two queries and four keys; one query and some keys have no place, two keys share one."""
    query_places = torch.tensor([[4, 0], [-1, 2], [1, 3]])
    key_places = torch.tensor([[0, 3, -1, 6], [1, 1, 5, -1], [6, 4, 2, 0]])
    rows = BATCH * len(query_places)
    if inner == "dense":
        relation: Relation = DenseRelation(torch.rand(rows, HEADS, 2, 4).softmax(dim=-1))
    else:
        allow = Allow(pairs=torch.rand(rows, 1, 2, 4) < 0.7)
        queries, keys = torch.randn(rows, HEADS, 2, WIDTH), torch.randn(rows, HEADS, 4, WIDTH)
        relation = DotRelation(queries, keys, 0.3, allow, torch.randn(1, HEADS, 2, 4))
    return GroupedRelation(relation, query_places, key_places, QUERIES, KEYS)


def all_forms() -> dict[str, Relation]:
    torch.manual_seed(3)
    present = torch.rand(BATCH, KEYS) < 0.7
    pairs = torch.rand(BATCH, HEADS, QUERIES, KEYS) < 0.5
    return {
        "dot": dots(),
        "dot, groups": dots(groups=2),
        "dot, causal and padded": dots(allow_causal() & allow_padding(present)),
        "dot, window": dots(allow_window(1)),
        "dot, pairs": dots(Allow(pairs=pairs)),
        "dot, bias": dots(bias=torch.randn(BATCH, 1, QUERIES, KEYS)),
        "dot, bias by distance": dots(bias=OffsetBias(torch.randn(HEADS, QUERIES + KEYS - 1))),
        "dense": dense(),
        "sparse": sparse(),
        "grouped": grouped(),
        "grouped, dense": grouped("dense"),
    }


@pytest.fixture(params=list(all_forms()))
def relation(request: pytest.FixtureRequest) -> Relation:
    return all_forms()[request.param]


def test_every_form_is_tried_here() -> None:
    assert {relation.form for relation in all_forms().values()} == set(FORMS)


def test_rows_are_cut_from_the_map(relation: Relation) -> None:
    assert relation.shape == (BATCH, HEADS, QUERIES, KEYS)
    whole = relation.weights()
    assert whole.shape == relation.shape
    for start, stop in ((0, 1), (2, 5), (4, 5), (3, 3)):
        torch.testing.assert_close(relation.rows(start, stop), whole[:, :, start:stop])


def test_blocks_are_all_rows(relation: Relation, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = relation.weights()
    monkeypatch.setattr(relations, "_BLOCK_WEIGHTS", 2 * BATCH * HEADS * KEYS + 1)
    blocks = list(relation.blocks())
    assert [start for start, _ in blocks] == [0, 2, 4]
    torch.testing.assert_close(torch.cat([rows for _, rows in blocks], dim=2), whole)
    monkeypatch.setattr(relations, "_BLOCK_WEIGHTS", 1)
    assert len(list(relation.blocks())) == QUERIES


def test_selected_examples(relation: Relation) -> None:
    examples = torch.tensor([1, 0, 1])
    torch.testing.assert_close(relation.select(examples).weights(), relation.weights()[examples])


def test_restored_from_what_is_kept(relation: Relation) -> None:
    again = type(relation).restore(relation.tensors(), relation.fields())
    assert torch.equal(again.weights(), relation.weights())
    assert again.nbytes == relation.nbytes > 0


def test_rows_are_float32_whatever_is_kept() -> None:
    half = DotRelation(torch.randn(1, 1, 2, 3).bfloat16(), torch.randn(1, 1, 5, 3).bfloat16(), 1.0)
    assert half.weights().dtype == torch.float32
    assert DenseRelation(torch.rand(1, 1, 2, 3).bfloat16()).weights().dtype == torch.float32


def test_dot_products_by_hand() -> None:
    relation = dots(bias=torch.randn(1, HEADS, QUERIES, KEYS), groups=2)
    for head in range(HEADS):
        keys = relation.keys[:, head // 3]
        scores = 0.3 * relation.queries[:, head] @ keys.transpose(1, 2) + relation.bias[:, head]
        torch.testing.assert_close(relation.weights()[:, head], scores.softmax(dim=-1))


@pytest.mark.parametrize("inner", ["dot", "dense"])
def test_grouped_places_by_hand(inner: str) -> None:
    relation = grouped(inner)
    whole = torch.zeros(relation.shape)
    inside = relation.inner.weights().unflatten(0, (BATCH, 3))
    for group in range(3):
        for query, row in enumerate(relation.query_places[group].tolist()):
            for key, column in enumerate(relation.key_places[group].tolist()):
                if row >= 0 and column >= 0:
                    whole[:, :, row, column] += inside[:, group, :, query, key]
    torch.testing.assert_close(relation.weights(), whole)
    assert whole.any(dim=-1).all(), "every query is in a group"


def test_a_query_in_no_group_has_no_weights() -> None:
    relation = grouped("dense")
    relation.query_places[0, 1] = -1
    assert not relation.rows(0, 1).any()
    assert relation.rows(1, 2).any()


def test_groups_are_not_joined() -> None:
    with pytest.raises(RecordingError, match="inside groups cannot be joined"):
        grouped().joined([grouped()])


def test_groups_are_kept_small() -> None:
    """4096 positions in windows of 16: what is kept, and what a row needs, is far less than their square."""
    places = torch.arange(4096).reshape(256, 16)
    queries = torch.randn(256, 2, 16, 3)
    relation = GroupedRelation(DotRelation(queries, queries, 1.0), places, places, 4096, 4096)
    assert relation.nbytes < 4096 * 100
    assert relation.rows(7, 9).shape == (1, 2, 2, 4096)


def test_either_file_may_be_imported_first() -> None:
    program = "import regard.core.{}; from regard.core.relations import FORMS; print(*FORMS)"
    for name in ("grouped", "relations"):
        done = subprocess.run([sys.executable, "-c", program.format(name)], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["dot", "dense", "sparse", "grouped"]


def test_sparse_places_by_hand() -> None:
    indices = torch.tensor([[[[2, 0], [-1, -1]]]])
    relation = SparseRelation(indices, torch.tensor([[[[0.75, 0.25], [0.5, 0.5]]]]), 3)
    assert relation.weights()[0, 0].tolist() == [[0.25, 0.0, 0.75], [0.0, 0.0, 0.0]]


def test_steps_of_a_decoder_are_joined() -> None:
    """One query after another, each with one key more, is the causal map of all at once."""
    whole = DotRelation(torch.randn(2, 3, 5, 11), torch.randn(2, 3, 5, 11), 0.3, allow_causal())
    steps = [
        DotRelation(whole.queries[:, :, i : i + 1], whole.keys[:, :, : i + 1], 0.3, allow_causal()) for i in range(5)
    ]
    torch.testing.assert_close(steps[0].joined(steps[1:]).weights(), whole.weights())

    dense_steps = [DenseRelation(step.weights()) for step in steps]
    torch.testing.assert_close(dense_steps[0].joined(dense_steps[1:]).weights(), whole.weights())

    sparse_steps = [SparseRelation(torch.full((2, 3, 1, 1), i), torch.ones(2, 3, 1, 1), keys=i + 1) for i in range(5)]
    assert torch.equal(sparse_steps[0].joined(sparse_steps[1:]).weights(), torch.eye(5).expand(2, 3, 5, 5))


@pytest.mark.parametrize("name", ["dot, pairs", "dot, bias", "dot, bias by distance"])
def test_steps_that_cannot_be_joined_say_so(name: str) -> None:
    relation = all_forms()[name]
    with pytest.raises(RecordingError, match="cannot be joined step by step"):
        relation.joined([relation])


def test_masked_softmax() -> None:
    allow = torch.tensor([[True, False, True], [False, False, False]])
    scores = torch.tensor([[1.0, 1e30, 1.0], [1.0, 2.0, 3.0]], requires_grad=True)
    weights = masked_softmax(scores, allow)
    assert weights.tolist() == [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]
    weights.square().sum().backward()
    assert scores.grad.isfinite().all()
    assert torch.equal(masked_softmax(scores, None), scores.softmax(dim=-1))
