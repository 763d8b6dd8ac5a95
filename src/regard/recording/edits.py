"""What can be changed in a relation before the context is made of it; `regard.edit` applies it.

    regard.edits.mute(3)                    head 3 looks nowhere: its context is zero
    regard.edits.keep(0, 1)                 all other heads look nowhere
    regard.edits.uniform()                  every head looks evenly at all it may look at
    regard.edits.swap(0, 2)                 head 0 looks where head 2 does, and the other way round
    regard.edits.replace(4, weights)        query 4 looks as told
    regard.edits.freeze(recorded, 1)        head 1 looks where it looked in a recording

No heads given are all heads. An edit is a value; `to_json` and `from_json` carry it to another program.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch

from regard.core.errors import EditError, nearest
from regard.core.relations import DotRelation, Relation
from regard.core.steps import Step
from regard.core.tap import Tap
from regard.recording.edited import FrozenRows, ReplacedRow, adopted
from regard.recording.head_plan import HeadPlan
from regard.recording.recording import RecordedMap, Recording


@dataclass(frozen=True)
class Place:
    """Where an edit is applied: its tap, the tap's address, and the step of a decoder, if it is one."""

    address: str
    tap: Tap
    step: Step | None

    def first_query(self, relation: Relation) -> int:
        """The position of a relation's first query; behind a cache, queries and keys are aligned at their ends."""
        if self.step is not None:
            return self.step.position
        same_axis = self.tap.queries == self.tap.keys
        return max(0, relation.num_keys - relation.num_queries) if same_axis else 0


class Edit(ABC):
    """A change of one relation."""

    name: ClassVar[str]

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What `from_json` reads, without the address."""


@dataclass(frozen=True)
class HeadEdit(Edit):
    """An edit that says for each head where it looks, whatever the positions."""

    heads: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", _checked_heads(self.name, self.heads))

    @abstractmethod
    def plan(self, plan: HeadPlan, heads: tuple[int, ...]) -> HeadPlan:
        """The plan after this edit of `heads`."""

    def to_json(self) -> dict[str, Any]:
        return {"edit": self.name, "heads": list(self.heads)}


@dataclass(frozen=True)
class Mute(HeadEdit):
    name = "mute"

    def plan(self, plan: HeadPlan, heads: tuple[int, ...]) -> HeadPlan:
        return plan.silencing(heads)


@dataclass(frozen=True)
class Keep(HeadEdit):
    name = "keep"

    def plan(self, plan: HeadPlan, heads: tuple[int, ...]) -> HeadPlan:
        return plan.silencing(set(range(len(plan.sources))) - set(heads))


@dataclass(frozen=True)
class Uniform(HeadEdit):
    name = "uniform"

    def plan(self, plan: HeadPlan, heads: tuple[int, ...]) -> HeadPlan:
        return plan.levelling(heads)


@dataclass(frozen=True)
class Swap(HeadEdit):
    name = "swap"

    def __post_init__(self) -> None:
        if len(self.heads) != 2 or self.heads[0] == self.heads[1]:
            raise EditError(f"swap exchanges two different heads, not {_named(self.heads)}.")
        super().__post_init__()

    def plan(self, plan: HeadPlan, heads: tuple[int, ...]) -> HeadPlan:
        return plan.exchanging(*heads)


class RowEdit(Edit):
    """An edit that gives rows of its own."""

    @abstractmethod
    def rows(self, relation: Relation, original: Relation, place: Place) -> tuple[Relation, bool]:
        """The relation after this edit, and whether any of its rows is another."""


@dataclass(frozen=True)
class Replace(RowEdit):
    name = "replace"
    query: int
    weights: tuple[float, ...]
    head: int | None = None

    def __post_init__(self) -> None:
        if not _is_index(self.query):
            raise EditError(f"replace takes the number of a query, counted from 0, not {self.query!r}.")
        weights = tuple(_number(weight) for weight in self.weights)
        if not weights or any(not math.isfinite(weight) or weight < 0 for weight in weights):
            raise EditError("replace takes one weight for each key: finite numbers of which none is negative.")
        object.__setattr__(self, "weights", weights)
        _checked_heads(self.name, () if self.head is None else (self.head,))

    def rows(self, relation: Relation, original: Relation, place: Place) -> tuple[Relation, bool]:
        heads = checked_heads(() if self.head is None else (self.head,), relation.heads, place.address)
        queries = self._queries(relation, place)
        weights = self._fitted(relation.num_keys, place) if queries else torch.zeros(relation.num_keys)
        return ReplacedRow(relation, original, queries, heads, weights), bool(queries)

    def to_json(self) -> dict[str, Any]:
        return {"edit": self.name, "query": self.query, "weights": list(self.weights), "head": self.head}

    def _queries(self, relation: Relation, place: Place) -> range:
        if place.step is not None:
            return range(relation.num_queries if place.step.position == self.query else 0)
        row = self.query - place.first_query(relation)
        if row >= relation.num_queries > 1:  # a single query may be the first of a decoder that goes step by step
            raise EditError(
                f"There is no query {self.query} in {place.address}; it has {relation.num_queries}, counted from 0."
            )
        return range(row, row + 1) if 0 <= row < relation.num_queries else range(0)

    def _fitted(self, num_keys: int, place: Place) -> torch.Tensor:
        """For self-attention, which may have more positions or fewer, keys beyond those given get the weight 0."""
        given = len(self.weights)
        same_axis = place.tap.queries == place.tap.keys
        if given != num_keys and not (same_axis and (given < num_keys or not any(self.weights[num_keys:]))):
            raise EditError(f"replace has {given} weights, but {place.address} has {num_keys} keys.")
        weights = self.weights[:num_keys] + (0.0,) * (num_keys - given)
        return torch.tensor(weights)


@dataclass(frozen=True, eq=False)
class Freeze(RowEdit):
    name = "freeze"
    relation: Relation
    heads: tuple[int, ...] = ()
    source: tuple[str, str] | None = None
    """The file and the address that the relation was read from, so that it can be said in JSON."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", _checked_heads(self.name, self.heads))

    def rows(self, relation: Relation, original: Relation, place: Place) -> tuple[Relation, bool]:
        frozen, step = self.relation, place.step
        heads = checked_heads(self.heads, relation.heads, place.address)
        if frozen.heads != relation.heads:
            raise EditError(
                f"{place.address} has {relation.heads} heads, the relation to freeze there has {frozen.heads}."
            )
        first = place.first_query(relation)
        grown = first + (1 if step is not None else relation.num_queries)
        if not self._fits(relation, grown, place):
            raise EditError(
                f"{place.address} has {grown} queries and {relation.num_keys} keys so far, the relation to freeze "
                f"there has {frozen.num_queries} and {frozen.num_keys}. Only what looks at no later position, as a "
                f"decoder does at itself, may be longer or shorter."
            )
        examples = self._examples(relation, place)
        if len(heads) == relation.heads and step is None and first == 0:
            whole = adopted(frozen, original)
            if whole is not None:
                return whole, True
        changed = FrozenRows(relation, original, frozen, heads, first, step is not None, examples)
        return changed, first < frozen.num_queries

    def to_json(self) -> dict[str, Any]:
        if self.source is None:
            raise EditError(
                "A frozen relation can only be said in JSON if it was read from a file: save the recording and use "
                "`freeze_saved(path, address)`."
            )
        file, address = self.source
        return {"edit": self.name, "file": file, "of": address, "heads": list(self.heads)}

    def _fits(self, relation: Relation, grown: int, place: Place) -> bool:
        frozen = self.relation
        if place.tap.queries != place.tap.keys:
            return relation.num_keys == frozen.num_keys
        same = (grown, relation.num_keys) == (frozen.num_queries, frozen.num_keys)
        return same or self._looks_back_only

    @cached_property
    def _looks_back_only(self) -> bool:
        frozen = self.relation
        if frozen.num_queries != frozen.num_keys:
            return False
        if isinstance(frozen, DotRelation) and frozen.allow.causal:
            return True
        return not any(rows.triu(start + 1).any() for start, rows in frozen.blocks())

    def _examples(self, relation: Relation, place: Place) -> torch.Tensor | None:
        """Which example of the frozen relation each row of the batch has; None if there is one for all."""
        known, rows = self.relation.batch, relation.batch
        if known == 1:
            return None
        left = None if place.step is None else place.step.examples
        if left is None:
            left = torch.arange(known)
        fits = rows == len(left) or (place.step is not None and len(left) > 0 and rows % len(left) == 0)
        if not fits or int(left.max()) >= known:
            raise EditError(
                f"{place.address} is computed for {rows} examples, the relation to freeze there has {known}. It needs "
                f"as many, or one that serves all."
            )
        return left.repeat_interleave(rows // len(left))


def mute(*heads: int) -> Edit:
    """These heads look nowhere, so that their context is zero; without heads, all of them."""
    return Mute(heads)


def keep(*heads: int) -> Edit:
    """All other heads look nowhere."""
    return Keep(heads)


def uniform(*heads: int) -> Edit:
    """These heads look evenly at everything they may look at."""
    return Uniform(heads)


def swap(one: int, other: int) -> Edit:
    """Two heads exchange where they look; what they see there stays their own."""
    return Swap((one, other))


def replace(query: int, weights: Iterable[float], head: int | None = None) -> Edit:
    """The row of one query, for every example, in one head or all; weights are taken as they are."""
    return Replace(query, tuple(weights), head)


def freeze(relation: Relation | RecordedMap, *heads: int) -> Edit:
    """These heads look where they looked in a recording, at positions that the recording has; else at their own."""
    return Freeze(relation.relation if isinstance(relation, RecordedMap) else relation, heads)


def freeze_saved(path: str, address: str, *heads: int, recordings: Callable[[str], Recording] = Recording.load) -> Edit:
    """`freeze` of one map of a recording file, that can be said in JSON."""
    return Freeze(recordings(path)[address].relation, heads, (path, address))


KINDS = ("freeze", "keep", "mute", "replace", "swap", "uniform")


def from_json(
    entries: Sequence[Mapping[str, Any]], *, recordings: Callable[[str], Recording] = Recording.load
) -> dict[str, Edit | list[Edit]]:
    """What `regard.edit` takes, from `[{"address": "decoder.2.cross", "edit": "mute", "heads": [3]}, ...]`.

    `recordings` opens the files of frozen relations: hand in a function that refuses paths you do not serve.
    """
    edits: dict[str, list[Edit]] = {}
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("address"), str):
            raise EditError(f"An edit is an object with an address and the name of an edit, not {entry!r}.")
        edits.setdefault(entry["address"], []).append(_read(entry, recordings))
    return {address: found[0] if len(found) == 1 else found for address, found in edits.items()}


def to_json(edits: Mapping[str, Edit | Sequence[Edit]]) -> list[dict[str, Any]]:
    """The inverse of `from_json`."""
    return [
        {"address": address, **edit.to_json()}
        for address, given in edits.items()
        for edit in ([given] if isinstance(given, Edit) else given)
    ]


def checked_heads(heads: tuple[int, ...], known: int, address: str) -> tuple[int, ...]:
    """The heads of a relation that are meant; an error that says which ones there are."""
    for head in heads:
        if head >= known:
            there = "head 0 only" if known == 1 else f"{known}, 0 to {known - 1}"
            raise EditError(f"There is no head {head} in {address}; it has {there}.")
    return heads or tuple(range(known))


def _read(entry: Mapping[str, Any], recordings: Callable[[str], Recording]) -> Edit:
    values = {name: value for name, value in entry.items() if name not in ("address", "edit")}
    kind = entry.get("edit")
    try:
        match kind:
            case "mute" | "keep" | "uniform":
                heads = tuple(values.pop("heads", None) or ())
                edit = {"mute": mute, "keep": keep, "uniform": uniform}[kind](*heads)
            case "swap":
                edit = Swap(tuple(values.pop("heads", None) or (values.pop("one"), values.pop("other"))))
            case "replace":
                edit = replace(values.pop("query"), values.pop("weights"), values.pop("head", None))
            case "freeze":
                heads = tuple(values.pop("heads", None) or ())
                edit = freeze_saved(values.pop("file"), values.pop("of"), *heads, recordings=recordings)
            case _:
                close = nearest(str(kind), KINDS)
                meant = f" Did you mean {close!r}?" if close else ""
                raise EditError(f"There is no edit called {kind!r}.{meant} Known: {', '.join(KINDS)}.")
    except KeyError as error:
        raise EditError(f"The edit {dict(entry)!r} lacks {error.args[0]!r}.") from error
    except TypeError as error:
        raise EditError(f"The edit {dict(entry)!r} cannot be read: {error}.") from error
    if values:
        raise EditError(f"The edit {dict(entry)!r} has {', '.join(map(repr, values))}, which {kind} does not know.")
    return edit


def _checked_heads(name: str, heads: Iterable[int]) -> tuple[int, ...]:
    heads = tuple(heads)
    for head in heads:
        if not _is_index(head):
            raise EditError(f"{name} takes numbers of heads, counted from 0, not {head!r}.")
    if len(set(heads)) != len(heads):
        raise EditError(f"{name} names a head twice: {_named(heads)}.")
    return heads


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise EditError(f"replace takes one number for each key; {value!r} is none.") from error


def _named(heads: Sequence[int]) -> str:
    return ", ".join(map(str, heads)) or "none"
