"""A relation times something, without its matrix: what queries get of keys, and what keys get of queries.

    spread_values  A F    every query's weighted mean of what stands at the keys
    pull           r A    every key's share of what stands at the queries
    row_sums       A 1    one, or zero for a query without any allowed key

Each form does it by what it keeps: sparse ones in the order of their entries, grouped ones inside their groups, all
others a block of rows at a time.
"""

from __future__ import annotations

from functools import singledispatch

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.grouped import GroupedRelation
from regard.core.relations import DotRelation, Relation, SparseRelation

Rows = Float[Tensor, "batch #heads vectors queries"]
Pulled = Float[Tensor, "batch heads vectors keys"]
Features = Float[Tensor, "batch #heads keys width"]
Means = Float[Tensor, "batch heads queries width"]


@singledispatch
def pull(relation: Relation, rows: Rows) -> Pulled:
    """rows A: each vector over the queries becomes one over the keys; heads may share their vectors."""
    pulled = rows.new_zeros(relation.batch, relation.heads, rows.shape[2], relation.num_keys)
    shared = rows.expand(-1, relation.heads, -1, -1)
    for examples, heads, part in relation.pieces():
        mine = shared[examples, heads]
        for start, weights in part.blocks():
            pulled[examples, heads] += mine[..., start : start + weights.shape[2]] @ weights.to(rows.dtype)
    return pulled


@pull.register
def _(relation: SparseRelation, rows: Rows) -> Pulled:
    indices, values = relation.indices.long(), relation.values.to(rows.dtype) * (relation.indices >= 0)
    spread = rows.expand(-1, relation.heads, -1, -1)[..., None] * values[:, :, None]
    pulled = rows.new_zeros(*spread.shape[:3], relation.keys)
    where = indices.clamp(min=0)[:, :, None].expand(spread.shape)
    return pulled.scatter_add_(3, where.flatten(3), spread.flatten(3))


@pull.register
def _(relation: GroupedRelation, rows: Rows) -> Pulled:
    groups = relation.groups
    inside = _gather(rows, relation.query_places)
    found = pull(relation.inner, inside.transpose(1, 3).transpose(2, 3).flatten(0, 1))
    found = found.unflatten(0, (relation.batch, groups)).movedim(1, 3).flatten(3)
    places = relation.key_places.flatten()
    pulled = rows.new_zeros(*found.shape[:3], relation.keys)
    return pulled.scatter_add_(3, places.clamp(min=0).expand(found.shape), found * (places >= 0))


@singledispatch
def spread_values(relation: Relation, features: Features) -> Means:
    """A features: each query's weighted sum of what stands at the keys; heads may share it."""
    shared = features.expand(-1, relation.heads, -1, -1)
    means = features.new_zeros(relation.batch, relation.heads, relation.num_queries, features.shape[3])
    for examples, heads, part in relation.pieces():
        for start, weights in part.blocks():
            stop = start + weights.shape[2]
            means[examples, heads, start:stop] = weights.to(features.dtype) @ shared[examples, heads]
    return means


@spread_values.register
def _(relation: SparseRelation, features: Features) -> Means:
    indices, values = relation.indices.long(), relation.values.to(features.dtype) * (relation.indices >= 0)
    shared = features.expand(-1, relation.heads, -1, -1)
    means = features.new_zeros(*indices.shape[:3], features.shape[3])
    for place in range(indices.shape[3]):
        where = indices[..., place, None].clamp(min=0).expand(*indices.shape[:3], features.shape[3])
        means += values[..., place, None] * shared.gather(2, where)
    return means


@spread_values.register
def _(relation: GroupedRelation, features: Features) -> Means:
    inside = _gather(features.transpose(2, 3), relation.key_places).movedim(3, 1).transpose(3, 4).flatten(0, 1)
    found = spread_values(relation.inner, inside).unflatten(0, (relation.batch, relation.groups))
    found = found.movedim(1, 2).flatten(2, 3)
    places = relation.query_places.flatten()
    means = features.new_zeros(*found.shape[:2], relation.queries, found.shape[3])
    where = places.clamp(min=0)[:, None].expand(found.shape)
    return means.scatter_add_(2, where, found * (places >= 0)[:, None])


@singledispatch
def row_sums(relation: Relation) -> Float[Tensor, "batch heads queries"]:
    """How much each query attends to all keys together."""
    sums = torch.zeros(relation.shape[:3])
    for examples, heads, part in relation.pieces():
        for start, weights in part.blocks():
            sums[examples, heads, start : start + weights.shape[2]] = weights.sum(dim=-1).to(sums.device)
    return sums


@row_sums.register
def _(relation: DotRelation) -> Float[Tensor, "batch heads queries"]:
    """A softmax sums to one where it has any key."""
    sums = relation.queries.new_ones(relation.shape[:3], dtype=torch.float32)
    step = max(1, (1 << 22) // max(1, relation.batch * relation.num_keys))
    for start in range(0, relation.num_queries, step):
        stop = min(start + step, relation.num_queries)
        allow = relation.allow.block(start, stop, relation.num_queries, relation.num_keys, sums.device)
        if allow is not None:
            sums[:, :, start:stop] *= allow.any(dim=-1)
    return sums


@row_sums.register
def _(relation: SparseRelation) -> Float[Tensor, "batch heads queries"]:
    return (relation.values.float() * (relation.indices >= 0)).sum(dim=-1)


@row_sums.register
def _(relation: GroupedRelation) -> Float[Tensor, "batch heads queries"]:
    everywhere = torch.ones(relation.batch, 1, relation.keys, 1, device=relation.query_places.device)
    return spread_values(relation, everywhere)[..., 0]


def _gather(
    values: Float[Tensor, "batch heads vectors positions"], places: Tensor
) -> Float[Tensor, "batch heads vectors groups members"]:
    """What stands at each place of each group; zero where there is none."""
    found = values[..., places.clamp(min=0).flatten()] * (places >= 0).flatten()
    return found.unflatten(-1, places.shape)
