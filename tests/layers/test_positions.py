"""Where a token stands: shapes, offsets, length limits. (What deck D says of sinusoids is in tests/reference.)"""

from __future__ import annotations

import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.layers.positions import positions, sinusoidal_positions

WIDTH, HEADS, MAX_LENGTH = 11, 3, 13


def make(kind: str, width: int = WIDTH):
    return positions[kind](width, HEADS, MAX_LENGTH)


@pytest.mark.parametrize("kind", ["none", "sinusoidal", "sinusoidal_halves", "learned", "relative"])
def test_a_later_start_is_a_later_part(kind: str) -> None:
    where = make(kind)
    embeddings = torch.randn(2, 7, WIDTH)
    whole = where(embeddings)
    assert whole.shape == embeddings.shape
    for start in range(7):
        torch.testing.assert_close(where(embeddings[:, start : start + 1], start), whole[:, start : start + 1])


@pytest.mark.parametrize("width", [1, 2, 11, 12])
def test_sinusoids_one_by_one(width: int) -> None:
    table = sinusoidal_positions(7, width)
    assert table.shape == (7, width)
    for place in range(7):
        for element in range(width):
            angle = torch.tensor(place / 10000 ** ((element - element % 2) / width), dtype=torch.float64)
            wanted = angle.cos() if element % 2 else angle.sin()
            assert table[place, element] == pytest.approx(wanted.item(), abs=1e-6)


def test_halves_are_the_same_numbers() -> None:
    zeros = torch.zeros(1, 5, WIDTH)
    pairs, halves = make("sinusoidal")(zeros), make("sinusoidal_halves")(zeros)
    assert torch.equal(halves[..., :6], pairs[..., 0::2])
    assert torch.equal(halves[..., 6:], pairs[..., 1::2])


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves"])
def test_sinusoids_go_on_beyond_the_table(kind: str) -> None:
    short, long = make(kind), positions[kind](WIDTH, HEADS, 99)
    embeddings = torch.zeros(1, 31, WIDTH)
    assert torch.equal(short(embeddings), long(embeddings))
    assert short.table.shape == (MAX_LENGTH, WIDTH), "nothing is kept"
    assert short.state_dict() == {}


def test_learned_positions_end() -> None:
    where = make("learned")
    assert where(torch.zeros(1, MAX_LENGTH, WIDTH)).shape == (1, MAX_LENGTH, WIDTH)
    for length, start in ((MAX_LENGTH + 1, 0), (1, MAX_LENGTH)):
        with pytest.raises(DataError, match=r"14 tokens is longer than the 13 learned.*--model\.max-length"):
            where(torch.zeros(1, length, WIDTH), start)


def test_relative_positions_are_a_bias() -> None:
    where = make("relative")
    assert not where.by_distance.any(), "it starts from no bias"
    torch.nn.init.normal_(where.by_distance)
    radius = where.radius
    num_queries, num_keys = 23, 29
    bias = where.bias(num_queries, num_keys).block(0, num_queries, num_queries, num_keys)
    assert bias.shape == (HEADS, num_queries, num_keys)
    for query in range(num_queries):
        for key in range(num_keys):
            distance = max(-radius, min(radius, key - (query + num_keys - num_queries)))
            assert torch.equal(bias[:, query, key], where.by_distance[:, distance + radius])
    step = where.bias(1, num_keys).block(0, 1, 1, num_keys)
    assert torch.equal(step[:, 0], bias[:, -1]), "a single query is the last one"


def test_only_relative_positions_have_a_bias() -> None:
    for kind in ("none", "sinusoidal", "sinusoidal_halves", "learned"):
        assert make(kind).bias(3, 5) is None
    with pytest.raises(ConfigError, match="at least one head"):
        positions["relative"](WIDTH, 0, MAX_LENGTH)
