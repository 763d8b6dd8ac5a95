"""What a relation makes of values, for relations that no kernel computes: a block of queries at a time.

Weights are made in float32 and multiplied in the dtype of the values, as the models' own mechanisms do.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.dropout import dropout
from regard.core.grouped import GroupedRelation
from regard.core.relations import Relation, SparseRelation

# 16 MB of float32 at once, but never so few rows that the products are not worth their start.
_BLOCK_WEIGHTS = 1 << 22
_FEWEST_ROWS = 16

Values = Float[Tensor, "batch groups keys value_width"]
Context = Float[Tensor, "batch heads queries value_width"]


def context_of(relation: Relation, values: Values, dropout_rate: float = 0.0) -> Context:
    """The context of every query of a relation of any form; heads may share values in groups."""
    values = for_heads(values, relation.heads)
    if isinstance(relation, SparseRelation):
        return _gathered(relation, values, dropout_rate)
    if relation.num_queries == 0 or relation.num_keys == 0:
        return values.new_zeros(relation.batch, relation.heads, relation.num_queries, values.shape[3])
    size = max(_FEWEST_ROWS, _BLOCK_WEIGHTS // (relation.batch * relation.heads * relation.num_keys or 1))
    blocks = []
    for start in range(0, relation.num_queries, size):
        rows = relation.rows(start, min(start + size, relation.num_queries))
        blocks.append(dropout(rows.to(values.dtype), dropout_rate, True) @ values)
    return torch.cat(blocks, dim=2)


def context_in_groups(
    relation: Relation,
    values: Float[Tensor, "examples_groups heads group_keys value_width"],
    query_places: Int[Tensor, "groups group_queries"],
    key_places: Int[Tensor, "groups group_keys"],
    dropout_rate: float = 0.0,
) -> Float[Tensor, "examples_groups heads group_queries value_width"]:
    """The context of a relation over a whole axis, for queries and values that lie in groups of it.

    Keys that share a place have the same value (all padding is one place); a query without a place gets zeros.
    """
    assert not isinstance(relation, GroupedRelation), "inside its groups, a relation has its context from `inner`"
    groups = len(key_places)
    own = values.unflatten(0, (-1, groups)).transpose(1, 2).flatten(2, 3)
    placed = key_places.flatten() >= 0
    whole = values.new_zeros(*own.shape[:2], relation.num_keys, own.shape[3])
    whole[:, :, key_places.flatten()[placed]] = own[:, :, placed]
    context = context_of(relation, whole, dropout_rate)
    asked = query_places.clamp(min=0)
    inside = context[:, :, asked].masked_fill((query_places < 0)[:, :, None], 0.0)
    return inside.transpose(1, 2).flatten(0, 1)


def for_heads(shared: Float[Tensor, "batch groups keys width"], heads: int) -> Float[Tensor, "batch heads keys width"]:
    """Keys or values with one row a head, where heads share them in groups."""
    groups = shared.shape[1]
    if heads == groups:
        return shared
    assert heads % groups == 0, f"{heads} heads cannot share {groups} groups of keys"
    return shared.repeat_interleave(heads // groups, dim=1)


def _gathered(relation: SparseRelation, values: Tensor, dropout_rate: float) -> Tensor:
    """One place of every query's list at a time, so that no more than the context is held."""
    weights = dropout(relation.values.float(), dropout_rate, True)
    indices = relation.indices.long()
    context = weights.new_zeros(*indices.shape[:3], values.shape[3])
    for place in range(indices.shape[3]):
        keys = indices[..., place, None]
        seen = torch.take_along_dim(values, keys.clamp(min=0), dim=2)
        context = context + (weights[..., place, None] * (keys >= 0)) * seen
    return context.to(values.dtype)
