"""Attention inside groups of places, such as windows of a picture, as a relation over the whole axis.

A model computes it with one row of its batch for each pair of example and group; that relation is kept as it is, with
the place that each of its queries and keys has on the whole axis. So a map of N positions in groups of M needs memory
of the order N (or N M with a mask), never N x N. A place of -1 is none: rows and columns there are left out. Several
keys of a group may share a place (all padding may be one), whose weights add up; a query has one place at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.errors import RecordingError
from regard.core.relations import FORMS, Relation


@dataclass(frozen=True, eq=False)
class GroupedRelation(Relation):
    """`inner` has (examples x groups, heads, queries of a group, keys of a group), groups of one example together."""

    form = "grouped"
    inner: Relation
    query_places: Int[Tensor, "groups group_queries"]
    key_places: Int[Tensor, "groups group_keys"]
    queries: int
    keys: int

    @property
    def groups(self) -> int:
        return self.query_places.shape[0]

    @property
    def batch(self) -> int:  # type: ignore[override]
        return self.inner.batch // self.groups

    @property
    def heads(self) -> int:  # type: ignore[override]
        return self.inner.heads

    @property
    def num_queries(self) -> int:  # type: ignore[override]
        return self.queries

    @property
    def num_keys(self) -> int:  # type: ignore[override]
        return self.keys

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows keys"]:
        """Only groups that hold one of these queries are computed; what is in none of them has no weights."""
        inside = (self.query_places >= start) & (self.query_places < stop)
        groups = inside.any(dim=1).nonzero()[:, 0]
        weights = self._of_groups(groups)
        rows = weights.new_zeros(self.batch, self.heads, stop - start, self.keys)
        group, query = inside[groups].nonzero(as_tuple=True)
        columns = self.key_places[groups][group]
        found = weights[:, group, :, query].permute(1, 2, 0, 3) * (columns >= 0)
        spread = found.new_zeros(*found.shape[:3], self.keys)
        spread.scatter_add_(3, columns.clamp(min=0).expand(found.shape), found)
        rows[:, :, self.query_places[groups][group, query] - start] = spread
        return rows

    def select(self, examples: Int[Tensor, "kept"]) -> GroupedRelation:
        groups = torch.arange(self.groups, device=self.query_places.device)
        return replace(self, inner=self.inner.select(self._rows_of(examples, groups)))

    @property
    def separable(self) -> bool:  # type: ignore[override]
        return self.inner.separable

    def select_heads(self, heads: Int[Tensor, "kept"]) -> GroupedRelation:
        return replace(self, inner=self.inner.select_heads(heads))

    @property
    def value_norms(self) -> Float[Tensor, "batch groups keys"] | None:  # type: ignore[override]
        """By place; where several keys share one (padding), the longest, as it is shown by one number."""
        norms = self.inner.value_norms
        if norms is None:
            return None
        inside = norms.unflatten(0, (self.batch, self.groups)).transpose(1, 2).flatten(2).float()
        places = self.key_places.flatten()
        spread = inside.new_zeros(*inside.shape[:2], self.keys)
        used = places.clamp(min=0).expand(inside.shape)
        return spread.scatter_reduce_(2, used, inside * (places >= 0), "amax")

    def joined(self, later: Sequence[GroupedRelation]) -> GroupedRelation:
        raise RecordingError("Relations inside groups cannot be joined step by step.")

    def tensors(self) -> dict[str, Tensor]:
        inner = {f"inner.{name}": tensor for name, tensor in self.inner.tensors().items()}
        return {"query_places": self.query_places, "key_places": self.key_places, **inner}

    def fields(self) -> dict[str, Any]:
        inner = {"form": self.inner.form, "fields": self.inner.fields()}
        return {"queries": self.queries, "keys": self.keys, "inner": inner}

    @staticmethod
    def restore(tensors: Mapping[str, Tensor], fields: Mapping[str, Any]) -> GroupedRelation:
        own = {name.removeprefix("inner."): tensor for name, tensor in tensors.items() if name.startswith("inner.")}
        inner = FORMS[fields["inner"]["form"]].restore(own, fields["inner"]["fields"])
        places = tensors["query_places"], tensors["key_places"]
        return GroupedRelation(inner, *places, fields["queries"], fields["keys"])

    def _of_groups(self, groups: Int[Tensor, "chosen"]) -> Float[Tensor, "batch chosen heads queries keys"]:
        """The weights inside some groups of all examples."""
        examples = torch.arange(self.batch, device=groups.device)
        return self.inner.select(self._rows_of(examples, groups)).weights().unflatten(0, (self.batch, len(groups)))

    def _rows_of(self, examples: Int[Tensor, "kept"], groups: Int[Tensor, "chosen"]) -> Int[Tensor, "rows"]:
        return (examples.to(groups.device)[:, None] * self.groups + groups).flatten()


FORMS[GroupedRelation.form] = GroupedRelation
