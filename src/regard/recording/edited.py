"""Relations that an edit made: some rows are others than the model computed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.core.bias import OffsetBias
from regard.core.errors import EditError
from regard.core.grouped import GroupedRelation
from regard.core.masked import MaskedRelation
from regard.core.relations import DenseRelation, DotRelation, Relation, SparseRelation
from regard.recording.changed import ChangedRelation
from regard.recording.head_plan import HeadPlan, even

Rows = Float[Tensor, "batch heads rows keys"]


@dataclass(frozen=True, eq=False)
class EditedRelation(ChangedRelation):
    """`inner` with changed rows; `original` is what the model computed before any edit, which knows what is allowed."""

    original: Relation

    def rows(self, start: int, stop: int) -> Rows:
        return self.changed(self.inner.rows(start, stop), start)

    @abstractmethod
    def changed(self, rows: Rows, start: int) -> Rows:
        """What becomes of some rows of `inner`, the first of which is that of query `start`."""

    def select(self, examples: Int[Tensor, "kept"]) -> EditedRelation:
        return replace(self, inner=self.inner.select(examples), original=self.original.select(examples))

    def joined(self, later: Sequence[Relation]) -> DenseRelation:  # type: ignore[override]
        first, *others = (DenseRelation(step.weights()) for step in (self, *later))
        return first.joined(others)

    @property
    def nbytes(self) -> int:
        return self.inner.nbytes


@dataclass(frozen=True, eq=False)
class PlannedRelation(EditedRelation):
    """Heads exchanged, made uniform or silenced, for a form that has no way of its own to say it."""

    plan: HeadPlan

    def changed(self, rows: Rows, start: int) -> Rows:
        return self.plan.choose(rows, _even_rows(self.original, start, start + rows.shape[2]))


@dataclass(frozen=True, eq=False)
class ReplacedRow(EditedRelation):
    """The rows `queries` of some heads are `weights`, for every example."""

    queries: range
    heads_replaced: tuple[int, ...]
    weights_of_row: Float[Tensor, "keys"]

    def changed(self, rows: Rows, start: int) -> Rows:
        chosen = [query - start for query in self.queries if start <= query < start + rows.shape[2]]
        if not chosen:
            return rows
        changed = rows.clone()
        given = self.weights_of_row.to(rows)
        for row in chosen:
            everywhere = given.expand(rows.shape[0], len(self.heads_replaced), 1, -1)
            _check_allowed(self.original, start + row, everywhere, self.heads_replaced)
            changed[:, list(self.heads_replaced), row] = given
        return changed


@dataclass(frozen=True, eq=False)
class FrozenRows(EditedRelation):
    """Some heads look as those of another relation did.

    Query i of this relation is query `first + i` of the frozen one, or every query is query `first` where they are
    hypotheses of one step. Queries that the frozen relation does not have are left as they are.
    """

    frozen: Relation
    heads_frozen: tuple[int, ...]
    first: int
    one_step: bool
    examples: Int[Tensor, "batch"] | None

    def changed(self, rows: Rows, start: int) -> Rows:
        begin = self.first if self.one_step else self.first + start
        end = min(begin + (1 if self.one_step else rows.shape[2]), self.frozen.num_queries)
        if begin >= end:
            return rows
        given = _fitted(self.frozen.rows(begin, end).to(rows), rows.shape[3])
        if self.examples is not None:
            given = given[self.examples.to(given.device)]
        count = rows.shape[2] if self.one_step else end - begin
        given = given.expand(rows.shape[0], -1, count, -1)
        _check_allowed(self.original, start, given[:, list(self.heads_frozen)], self.heads_frozen)
        changed = rows.clone()
        changed[:, list(self.heads_frozen), :count] = given[:, list(self.heads_frozen)]
        return changed

    def select(self, examples: Int[Tensor, "kept"]) -> FrozenRows:
        known = torch.arange(self.batch) if self.examples is None else self.examples.cpu()
        if self.frozen.batch == 1:
            known = torch.zeros_like(known)
        inner, original = self.inner.select(examples), self.original.select(examples)
        return replace(self, inner=inner, original=original, examples=known[examples.cpu()])


def planned(relation: Relation, original: Relation, plan: HeadPlan) -> Relation:
    """A relation after a plan, in its own form where it has one."""
    changed = plan.of(relation)
    return PlannedRelation(relation, original, plan) if changed is None else changed


def adopted(frozen: Relation, original: Relation) -> Relation | None:
    """The frozen relation in the place of the original, in its own form: where both look through the same mask."""
    match frozen, original:
        case GroupedRelation(), GroupedRelation():
            places = (frozen.query_places, original.query_places), (frozen.key_places, original.key_places)
            if frozen.shape != original.shape or not all(_equal(one, other) for one, other in places):
                return None
            inner = adopted(frozen.inner, original.inner)
            return None if inner is None else replace(original, inner=inner)
        case SparseRelation(), SparseRelation():
            if frozen.keys != original.keys or not _equal(frozen.indices, original.indices):
                return None
            return replace(original, values=frozen.values.to(original.values))
        case DotRelation(), DotRelation():
            one, other = frozen.allow, original.allow
            same_mask = (one.causal, one.window) == (other.causal, other.window)
            if frozen.shape != original.shape or not (
                same_mask and _equal(one.keys, other.keys) and _equal(one.pairs, other.pairs)
            ):
                return None
            like, bias = original.queries, frozen.bias
            if isinstance(bias, OffsetBias):
                bias = OffsetBias(bias.values.to(like))
            elif bias is not None:
                bias = bias.to(like)
            return DotRelation(frozen.queries.to(like), frozen.keys.to(like), frozen.scale, other, bias)
        case _:
            return None


def _equal(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return torch.equal(one.to(other.device), other)


def allowed_rows(relation: Relation, start: int, stop: int) -> Bool[Tensor, "#batch #heads #rows keys"] | None:
    """Who may be attended to by queries `start` to `stop`; None if all may."""
    if isinstance(relation, DotRelation):
        mask = relation.allow.block(start, stop, relation.num_queries, relation.num_keys, relation.queries.device)
        return None if mask is None else mask.expand(*mask.shape[:3], relation.num_keys)
    if isinstance(relation, MaskedRelation):
        mask = relation.allowed
        return mask if mask is None or mask.shape[2] == 1 else mask[:, :, start:stop]
    if type(relation) is DenseRelation:
        return None  # it does not say
    return _even_rows(relation, start, stop) > 0


def _even_rows(original: Relation, start: int, stop: int) -> Rows:
    relation = even(original)
    if relation is not None:
        return relation.rows(start, stop)
    used = (original.rows(start, stop) > 0).float()
    return used / used.sum(dim=-1, keepdim=True).clamp(min=1)


def _fitted(rows: Rows, num_keys: int) -> Float[Tensor, "batch heads rows other_keys"]:
    """With the keys that there are: what a causal relation does not look at may be there or not."""
    known = rows.shape[3]
    return rows[..., :num_keys] if known >= num_keys else torch.nn.functional.pad(rows, (0, num_keys - known))


def _check_allowed(original: Relation, start: int, given: Rows, heads: Sequence[int]) -> None:
    allowed = allowed_rows(original, start, start + given.shape[2])
    if allowed is None:
        return
    if allowed.shape[1] > 1:
        allowed = allowed[:, list(heads)]
    wrong = (given != 0) & ~allowed
    if wrong.any():
        example, _, query, key = wrong.nonzero()[0].tolist()
        raise EditError(
            f"An edit makes query {start + query} of example {example} attend to key {key}, which it may not attend to "
            f"(padding, a later position, or a place outside its window). Give that key the weight 0."
        )
