"""Which head looks where, after heads were exchanged, made uniform or silenced: in the form that the relation has.

Softmaxes of dot products stay what they are, so that fused kernels go on computing them: a uniform head has queries of
zero, and a silent one is not allowed anything. Only what has no such form gives its rows to be changed (`edited`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.core.bias import OffsetBias
from regard.core.context import for_heads
from regard.core.grouped import GroupedRelation
from regard.core.masked import MaskedRelation
from regard.core.masks import Allow
from regard.core.relations import DenseRelation, DotRelation, Relation, SparseRelation


@dataclass(frozen=True)
class HeadPlan:
    """Head h looks where head `sources[h]` looked, evenly where `uniform[h]`, and nowhere where `muted[h]`."""

    sources: tuple[int, ...]
    uniform: tuple[bool, ...]
    muted: tuple[bool, ...]

    @classmethod
    def unchanged(cls, heads: int) -> HeadPlan:
        return cls(tuple(range(heads)), (False,) * heads, (False,) * heads)

    def silencing(self, heads: Iterable[int]) -> HeadPlan:
        return replace(self, muted=_with(self.muted, heads, True))

    def levelling(self, heads: Iterable[int]) -> HeadPlan:
        heads = tuple(heads)
        return replace(self, uniform=_with(self.uniform, heads, True), muted=_with(self.muted, heads, False))

    def exchanging(self, one: int, other: int) -> HeadPlan:
        order = list(range(len(self.sources)))
        order[one], order[other] = other, one
        return HeadPlan(
            tuple(self.sources[head] for head in order),
            tuple(self.uniform[head] for head in order),
            tuple(self.muted[head] for head in order),
        )

    @property
    def moved(self) -> bool:
        return self.sources != tuple(range(len(self.sources)))

    def of(self, relation: Relation) -> Relation | None:
        """The relation after the plan, in a form of its own; None where the form has no way to say it."""
        match relation:
            case GroupedRelation():
                inner = self.of(relation.inner)
                return None if inner is None else replace(relation, inner=inner)
            case DotRelation():
                return self._of_dot(relation)
            case SparseRelation():
                return self._of_sparse(relation)
            case DenseRelation():
                return self._of_dense(relation)
            case _:
                return None

    def choose(
        self, weights: Float[Tensor, "batch heads rows keys"], even: Float[Tensor, "batch heads rows keys"]
    ) -> Float[Tensor, "batch heads rows keys"]:
        """Rows after the plan, from rows as they were and rows that are even over what is allowed."""
        weights = self._ordered(weights)
        weights = torch.where(self._mask(self.uniform, weights), self._ordered(even), weights)
        return weights.masked_fill(self._mask(self.muted, weights), 0.0)

    def _of_dot(self, relation: DotRelation) -> DotRelation:
        queries, keys, allow, bias = relation.queries, relation.keys, relation.allow, relation.bias
        if self.moved:
            queries, keys = self._ordered(queries), self._ordered(for_heads(keys, relation.heads))
            if allow.pairs is not None and allow.pairs.dim() == 4 and allow.pairs.shape[1] > 1:
                allow = replace(allow, pairs=self._ordered(allow.pairs))
        if any(self.uniform):
            queries = queries.masked_fill(self._mask(self.uniform, queries), 0.0)
        if any(self.muted):
            allow = allow & Allow(pairs=~self._mask(self.muted, queries))
        return replace(relation, queries=queries, keys=keys, allow=allow, bias=self._of_bias(bias))

    def _of_bias(self, bias: OffsetBias | Tensor | None) -> OffsetBias | Tensor | None:
        if isinstance(bias, OffsetBias):
            level = torch.tensor(self.uniform, device=bias.values.device)[:, None]
            values = bias.values[list(self.sources)] if len(bias.values) > 1 else bias.values
            return OffsetBias(values.masked_fill(level, 0.0))
        if bias is None:
            return None
        bias = self._ordered(bias) if bias.shape[1] > 1 else bias
        return bias.masked_fill(self._mask(self.uniform, bias), 0.0) if any(self.uniform) else bias

    def _of_sparse(self, relation: SparseRelation) -> SparseRelation:
        used = (relation.indices >= 0).to(relation.values.dtype)
        values = self.choose(relation.values, _even(used))
        return replace(relation, indices=self._ordered(relation.indices), values=values)

    def _of_dense(self, relation: DenseRelation) -> DenseRelation:
        weights = relation.dense
        allowed = weights > 0
        if isinstance(relation, MaskedRelation):
            allowed = torch.ones_like(allowed) if relation.allowed is None else relation.allowed.expand(weights.shape)
        return DenseRelation(self.choose(weights, _even(allowed.to(weights.dtype))))

    def _ordered(self, tensor: Tensor) -> Tensor:
        return tensor[:, list(self.sources)] if self.moved else tensor

    @staticmethod
    def _mask(heads: tuple[bool, ...], like: Tensor) -> Bool[Tensor, "1 heads 1 1"]:
        return torch.tensor(heads, device=like.device)[None, :, None, None]


def even(relation: Relation) -> Relation | None:
    """The relation with every head uniform over what it may attend to; None where the form has no way to say it."""
    heads = relation.heads
    return HeadPlan.unchanged(heads).levelling(range(heads)).of(relation)


def _with(flags: tuple[bool, ...], heads: Iterable[int], value: bool) -> tuple[bool, ...]:
    changed = set(heads)
    return tuple(value if head in changed else flag for head, flag in enumerate(flags))


def _even(used: Float[Tensor, "*rows keys"]) -> Float[Tensor, "*rows keys"]:
    return used / used.sum(dim=-1, keepdim=True).clamp(min=1)
