"""The cache of keys and values: filled in place, moved only when hypotheses leave or change places."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regard.blocks.cache import KeyValueCache

BATCH, WIDTH, HEADS, ROOM, KEY_WIDTH, VALUE_WIDTH = 2, 3, 5, 7, 11, 13


def step() -> tuple[Tensor, Tensor]:
    """Keys and values of one position for every hypothesis."""
    rows = BATCH * WIDTH
    return torch.randn(rows, HEADS, 1, KEY_WIDTH), torch.randn(rows, HEADS, 1, VALUE_WIDTH)


def filled(steps: list[tuple[Tensor, Tensor]]) -> KeyValueCache:
    cache = KeyValueCache.empty(*steps[0], BATCH, ROOM)
    for keys, values in steps:
        cache = cache.append(keys, values)
    return cache


def test_what_was_appended_is_there() -> None:
    steps = [step() for _ in range(4)]
    keys, values = filled(steps).filled()
    assert torch.equal(keys, torch.cat([keys for keys, _ in steps], dim=2))
    assert torch.equal(values, torch.cat([values for _, values in steps], dim=2))


def test_appending_copies_nothing() -> None:
    cache = KeyValueCache.empty(*step(), BATCH, ROOM)
    where = cache.keys.data_ptr(), cache.values.data_ptr()
    for length in range(1, ROOM + 1):
        cache = cache.append(*step())
        assert (cache.keys.data_ptr(), cache.values.data_ptr()) == where
        keys, values = cache.filled()
        assert (keys.data_ptr(), values.data_ptr()) == where, "what is read is a view"
        assert keys.shape[2] == values.shape[2] == cache.length == length


def test_room_is_made_as_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.blocks.cache.STEP", 3)
    steps = [step() for _ in range(ROOM)]
    cache, rooms = KeyValueCache.empty(*steps[0], BATCH, ROOM), []
    for length, (keys, values) in enumerate(steps, start=1):
        before, cache = cache, cache.append(keys, values)
        rooms.append(cache.keys.shape[2])
        assert (cache.keys is before.keys) == (length not in (4, 7)), "only a full room is left for a larger one"
    assert rooms == [3, 3, 3, 6, 6, 6, 7]
    for now, parts in zip(cache.filled(), zip(*steps, strict=True), strict=True):
        assert torch.equal(now, torch.cat(parts, dim=2))


def test_a_full_cache_says_so() -> None:
    cache = filled([step() for _ in range(ROOM)])
    with pytest.raises(AssertionError, match="room for 7 positions"):
        cache.append(*step())


def test_sentences_leave_the_batch() -> None:
    steps = [step() for _ in range(2)]
    kept = filled(steps).keep(torch.tensor([1]))
    for now, before in zip(kept.filled(), filled(steps).filled(), strict=True):
        assert torch.equal(now, before[WIDTH:])
    assert kept.keys.shape == (WIDTH, HEADS, ROOM, KEY_WIDTH)
    assert kept.append(*(tensor[WIDTH:] for tensor in step())).length == 3


@pytest.mark.parametrize("beams", [[[2, 0, 1], [1, 1, 0]], [[2], [0]], [[0, 0, 1, 1, 2], [2, 2, 2, 2, 2]]])
def test_hypotheses_change_places(beams: list[list[int]]) -> None:
    cache = filled([step() for _ in range(2)])
    moved = cache.reorder(torch.tensor(beams))
    width = len(beams[0])
    for now, before in zip(moved.filled(), cache.filled(), strict=True):
        assert len(now) == BATCH * width
        for example, chosen in enumerate(beams):
            for place, beam in enumerate(chosen):
                assert torch.equal(now[example * width + place], before[example * WIDTH + beam])


def test_what_was_moved_has_its_own_room() -> None:
    """Two hypotheses that continue the same one do not write into each other."""
    cache = filled([step()])
    before = [tensor.clone() for tensor in cache.filled()]
    moved = cache.reorder(torch.tensor([[0, 0, 0], [0, 0, 0]]))
    keys, values = step()
    moved = moved.append(keys, values)
    assert torch.equal(moved.filled()[0][:, :, 1:], keys)
    for now, then in zip(cache.filled(), before, strict=True):
        assert torch.equal(now, then)
