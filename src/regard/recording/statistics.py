"""Views of a relation that a survey does not have, computed a block of rows at a time: the whole map never exists."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.relations import Relation, spread

MakeRows = Callable[[Relation, int, int], Tensor]
"""From a relation and a range of queries to something for each of their keys."""


def chosen_rows(
    relation: Relation, queries: Sequence[int], make: MakeRows
) -> Float[Tensor, "examples heads rows keys"]:
    """What `make` gives for these queries: one call for queries beside each other, and no more than is asked for."""
    if isinstance(queries, range) and queries.step == 1:
        return make(relation, queries.start, queries.stop)
    if not queries:
        return make(relation, 0, 0)
    return torch.cat([make(relation, query, query + 1) for query in queries], dim=2)


def top(
    relation: Relation, k: int
) -> tuple[Float[Tensor, "examples heads queries k"], Int[Tensor, "examples heads queries k"]]:
    """The k largest weights of each query with their keys, largest first; fewer where there are fewer keys."""
    shape = (*relation.shape[:3], min(k, relation.num_keys))
    values, indices = torch.zeros(shape), torch.zeros(shape, dtype=torch.int64)
    for examples, heads, part in relation.pieces():
        for start, rows in part.blocks():
            place = (examples, heads, slice(start, start + rows.shape[2]))
            best = rows.topk(shape[3], dim=-1)
            values[place], indices[place] = best.values.cpu(), best.indices.cpu()
    return values, indices


def agreement(
    one: Relation, other: Relation, num_queries: Sequence[int] | None = None
) -> Float[Tensor, "examples heads heads_of_other"]:
    """How alike heads look: the mean over queries of sum_k sqrt(a_k b_k), the Bhattacharyya coefficient of two rows.

    1 where two heads give every key the same weight, 0 where no query of both looks at the same key. It is a product
    of square roots of weights, so that all pairs of heads come from one matrix product a block.
    """
    total = torch.zeros(one.batch, one.heads, other.heads)
    counts = torch.tensor(num_queries if num_queries is not None else [one.num_queries] * one.batch)
    for example in range(one.batch):
        chosen = torch.tensor([example])
        mine, theirs = one.select(chosen), other.select(chosen)
        length = int(counts[example])
        for start, rows in mine.blocks():
            stop = min(start + rows.shape[2], length)
            if stop <= start:
                break
            roots = rows[:, :, : stop - start].sqrt()
            others = roots if other is one else theirs.rows(start, stop).sqrt()
            total[example] += (roots.flatten(2)[0] @ others.flatten(2)[0].T).cpu()
    return total / counts.clamp(min=1)[:, None, None]


def norm_weighted(
    relation: Relation, start: int, stop: int, norms: Float[Tensor, "examples groups keys"]
) -> Float[Tensor, "examples heads rows keys"]:
    """Weights times how long the keys' values are."""
    return relation.rows(start, stop) * spread(norms.float(), relation.heads)[:, :, None]
