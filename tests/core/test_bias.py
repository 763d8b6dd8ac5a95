"""A bias by distance, against the table of pairs it stands for."""

from __future__ import annotations

import pytest
import torch

from regard.core.bias import OffsetBias


def spelled_out(bias: OffsetBias, queries: int, keys: int) -> torch.Tensor:
    """The bias of every pair, one after another; the last query stands where the last key does."""
    pairs = torch.empty(len(bias.values), queries, keys)
    for query in range(queries):
        for key in range(keys):
            distance = key - (query + keys - queries)
            pairs[:, query, key] = bias.values[:, distance + keys - 1]
    return pairs


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (3, 7), (7, 3), (1, 5), (5, 1), (1, 1)])
def test_every_block_is_cut_from_the_whole(queries: int, keys: int) -> None:
    bias = OffsetBias(torch.randn(2, queries + keys - 1))
    whole = spelled_out(bias, queries, keys)
    for start in range(queries):
        for stop in range(start, queries + 1):
            assert torch.equal(bias.block(start, stop, queries, keys), whole[:, start:stop])


def test_the_ends_of_the_table() -> None:
    bias = OffsetBias(torch.arange(9.0)[None])
    whole = bias.block(0, 3, 3, 7)[0]
    assert whole[2, 0] == 0, "the first entry is for the last query and the first key"
    assert whole[0, 6] == 8, "the last entry is for the first query and the last key"


def test_gradients_add_up_along_diagonals() -> None:
    values = torch.zeros(1, 5, requires_grad=True)
    OffsetBias(values).block(0, 3, 3, 3).sum().backward()
    assert values.grad.tolist() == [[1.0, 2.0, 3.0, 2.0, 1.0]]
