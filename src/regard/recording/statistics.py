"""Views of a relation, computed a block of rows at a time, so that the whole map never exists."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.relations import Relation


def entropy(relation: Relation) -> Float[Tensor, "examples heads queries"]:
    """-sum_k a_k ln a_k of each query."""
    return torch.cat([torch.special.entr(rows).sum(dim=-1) for _, rows in relation.blocks()], dim=2)


def received(relation: Relation, num_queries: Sequence[int] | None = None) -> Float[Tensor, "examples heads keys"]:
    """Column sums; only the first `num_queries[b]` queries of example b count (the others are padding)."""
    total = None
    for start, rows in relation.blocks():
        if num_queries is not None:
            positions = torch.arange(start, start + rows.shape[2], device=rows.device)
            counts = torch.tensor(num_queries, device=rows.device)
            rows = rows * (positions < counts[:, None])[:, None, :, None]
        total = rows.sum(dim=2) if total is None else total + rows.sum(dim=2)
    assert total is not None, "a relation has at least one query"
    return total


def top(
    relation: Relation, k: int
) -> tuple[Float[Tensor, "examples heads queries k"], Int[Tensor, "examples heads queries k"]]:
    """The k largest weights of each query with their keys, largest first; fewer where there are fewer keys."""
    best = [rows.topk(min(k, relation.num_keys), dim=-1) for _, rows in relation.blocks()]
    return torch.cat([block.values for block in best], dim=2), torch.cat([block.indices for block in best], dim=2)
