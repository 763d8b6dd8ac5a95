"""Who may attend to whom: every condition against the table it stands for, and errors that draw the mask."""

from __future__ import annotations

import pytest
import torch

from regard.core.errors import MaskError
from regard.core.masks import (
    Allow,
    allow_causal,
    allow_lengths,
    allow_padding,
    allow_present,
    allow_window,
    as_allow,
    draw,
)

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7


def table(allow: Allow, queries: int = QUERIES, keys: int = KEYS) -> torch.Tensor:
    """The conditions one pair after another, as sentences say them."""
    pairs = allow.pairs
    if pairs is not None:
        pairs = pairs.reshape((1,) * (4 - pairs.dim()) + pairs.shape) if pairs.dim() != 3 else pairs[:, None]
        pairs = pairs.expand(BATCH, HEADS, queries, keys)
    full = torch.ones(BATCH, HEADS, queries, keys, dtype=torch.bool)
    for example, head, query, key in torch.cartesian_prod(*map(torch.arange, full.shape)).tolist():
        place = query + keys - queries
        full[example, head, query, key] = (
            (allow.keys is None or bool(allow.keys[example % len(allow.keys), key]))
            and (not allow.causal or key <= place)
            and (allow.window is None or abs(key - place) <= allow.window)
            and (pairs is None or bool(pairs[example, head, query, key]))
        )
    return full


def conditions() -> list[Allow]:
    random = torch.Generator().manual_seed(5)

    def pairs(*shape: int) -> Allow:
        return as_allow(torch.rand(shape, generator=random) < 0.5)

    present = allow_padding(torch.rand(BATCH, KEYS, generator=random) < 0.5)
    shared = allow_padding(torch.rand(1, KEYS, generator=random) < 0.5)
    return [
        allow_causal(),
        allow_window(0),
        allow_window(2),
        present,
        shared,
        pairs(QUERIES, KEYS),
        pairs(BATCH, QUERIES, KEYS),
        pairs(BATCH, HEADS, QUERIES, KEYS),
        pairs(1, HEADS, 1, KEYS),
        allow_causal() & allow_window(1),
        present & shared,
        present & allow_causal() & pairs(BATCH, QUERIES, KEYS) & pairs(QUERIES, KEYS) & allow_window(3),
    ]


@pytest.mark.parametrize("number", range(len(conditions())))
def test_blocks_are_cut_from_the_table(number: int) -> None:
    allow = conditions()[number]
    allow.check(BATCH, HEADS, QUERIES, KEYS)
    wanted = table(allow)
    assert torch.equal(allow.matrix(QUERIES, KEYS).expand(wanted.shape), wanted)
    for start, stop in ((0, 1), (1, 4), (4, 5)):
        block = allow.block(start, stop, QUERIES, KEYS)
        assert torch.equal(block.expand(BATCH, HEADS, stop - start, KEYS), wanted[:, :, start:stop])


@pytest.mark.parametrize("number", range(len(conditions())))
def test_selected_examples_keep_their_conditions(number: int) -> None:
    allow = conditions()[number]
    kept = allow.select(torch.tensor([1])).matrix(QUERIES, KEYS)
    wanted = table(allow)[1:]
    assert torch.equal(kept.expand(wanted.shape), wanted)


def test_one_query_at_the_end_sees_all() -> None:
    assert allow_causal().simplified(1).everything
    assert allow_causal().simplified(2).only_causal
    assert allow_causal().matrix(1, KEYS).all()


def test_more_queries_than_keys_align_at_the_end() -> None:
    assert allow_causal().matrix(5, 2)[0, 0].tolist() == [[False, False]] * 3 + [[True, False], [True, True]]


def test_both_conditions_hold_and_the_narrower_window_wins() -> None:
    both = allow_window(3) & allow_window(1) & None
    assert both.window == 1
    assert (Allow() & allow_causal()).only_causal
    assert Allow().everything
    assert Allow().matrix(QUERIES, KEYS) is None
    for allow in conditions():
        assert not allow.everything


def test_lengths() -> None:
    allow = allow_lengths(torch.tensor([2, 0, 3]), 3)
    assert allow.keys.tolist() == [[True, True, False], [False] * 3, [True] * 3]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8], ids=str)
def test_only_boolean_masks(dtype: torch.dtype) -> None:
    with pytest.raises(MaskError, match=r"must be boolean with True = may attend, not torch\..*pass `~mask`"):
        as_allow(torch.zeros(QUERIES, KEYS, dtype=dtype))


def test_windows_are_not_negative() -> None:
    with pytest.raises(MaskError, match="cannot have the radius -1"):
        allow_window(-1)


@pytest.mark.parametrize("shape", [(3, KEYS), (BATCH, KEYS + 1), (KEYS, BATCH)])
def test_padding_of_another_size_is_drawn(shape: tuple[int, int]) -> None:
    allow = allow_padding(torch.ones(shape, dtype=torch.bool))
    with pytest.raises(MaskError, match="there are 2 examples with 7 keys each") as raised:
        allow.check(BATCH, HEADS, QUERIES, KEYS)
    assert str(raised.value).splitlines()[1:] == ["■" * shape[1]] * shape[0]


@pytest.mark.parametrize(
    "shape",
    [
        (KEYS, QUERIES),
        (HEADS, QUERIES, KEYS),
        (HEADS, BATCH, QUERIES, KEYS),
        (BATCH, HEADS, QUERIES, KEYS + 1),
        (1, BATCH, HEADS, QUERIES, KEYS),
    ],
)
def test_pairs_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    allow = as_allow(torch.zeros(shape, dtype=torch.bool))
    with pytest.raises(MaskError, match=r"does not spread to .* = \(2, 3, 5, 7\)") as raised:
        allow.check(BATCH, HEADS, QUERIES, KEYS)
    assert str(raised.value).splitlines()[1:] == ["·" * shape[-1]] * shape[-2]


def test_drawing() -> None:
    assert draw(allow_causal().matrix(3, 3)) == "■··\n■■·\n■■■"
    assert draw(torch.tensor([True, False])) == "■·"
    lines = draw(torch.ones(30, 30, dtype=torch.bool), limit=4).splitlines()
    assert lines == ["■■■■…"] * 4 + ["…"]


def test_no_padding_is_no_condition() -> None:
    present = torch.ones(2, 5, dtype=torch.bool)
    assert allow_present(present).everything
    present[1, 3] = False
    assert torch.equal(allow_present(present).keys, present)


@pytest.mark.parametrize("allow", [Allow(), allow_causal(), allow_window(0), allow_window(2) & allow_causal()])
@pytest.mark.parametrize(("queries", "keys"), [(3, 3), (3, 7), (1, 5), (7, 3)])
def test_who_is_sure_to_have_a_key_has_one(allow: Allow, queries: int, keys: int) -> None:
    sure = allow.leaves_all_something(queries, keys)
    assert sure == (queries <= keys)
    mask = allow.matrix(queries, keys)
    assert not sure or mask is None or mask.any(dim=-1).all()


def test_nobody_is_sure_of_a_key_under_padding_or_pairs() -> None:
    some = torch.ones(1, 5, dtype=torch.bool)
    assert not allow_padding(some).leaves_all_something(3, 5)
    assert not Allow(pairs=some.expand(3, 5)).leaves_all_something(3, 5)
