"""A recording as steps between streams of positions, so that what flows through a whole model can be followed.

A stream is what one role ("source", "target", "stage2") holds. It is an input, or begins as another one resampled: a
coarser grid after patch merging or pooling. Then each map lets its queries' stream take from its keys' stream, which is
the same one in self-attention and another in cross attention. Steps stand in the order in which the model runs.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from regard.core.axes import Axis
from regard.core.errors import RecordingError
from regard.core.relations import Relation
from regard.recording.recorded_map import RecordedMap
from regard.recording.resampling import Resampling, resampling


@dataclass(frozen=True, eq=False)
class Attends:
    """The stream `queries` takes from the stream `keys`."""

    address: str
    queries: str
    keys: str
    relation: Relation


@dataclass(frozen=True, eq=False)
class Begins:
    """The stream `role` begins as the stream `parent`, resampled."""

    role: str
    parent: str
    resampling: Resampling


@dataclass(frozen=True, eq=False)
class Streams:
    """The steps of one example."""

    steps: tuple[Attends | Begins, ...]
    inputs: tuple[str, ...]
    """Streams that begin by themselves, in the order in which they are met."""
    sizes: Mapping[str, int]
    axes: Mapping[str, Axis]

    @property
    def last(self) -> str:
        """The stream that the last map writes to."""
        return next(step.queries for step in reversed(self.steps) if isinstance(step, Attends))

    def length(self, role: str) -> int:
        """Positions without padding."""
        return len(self.axes[role]) if role in self.axes else self.sizes[role]

    def checked(self, role: str | None, among: tuple[str, ...], what: str) -> str:
        """A role that was named, or the only one there is."""
        if role is None and len(among) == 1:
            return among[0]
        if role not in among:
            named = "is not named and there are several" if role is None else f"is {role!r}"
            raise RecordingError(f"`{what}` {named}; choose one of: {', '.join(among)}.")
        return role

    def onto(self, role: str | None, start: str) -> str:
        """Where a result lands: as named, or the one input that is not the last stream's own."""
        others = tuple(each for each in self.inputs if each != start) or self.inputs
        return self.checked(role, self.inputs if role is not None else others, "onto")

    def rows(self, rows: int | slice | None, role: str) -> range:
        """Positions of a stream, as `RecordedMap.weights` takes them."""
        count = self.length(role)
        if isinstance(rows, int):
            if not -count <= rows < count:
                raise RecordingError(f"There is no position {rows} in {role!r}; it has {count}.")
            return range(rows % count, rows % count + 1)
        return range(*(rows or slice(None)).indices(count))


def streams(maps: Mapping[str, RecordedMap], example: int = 0, taps: str = "*") -> Streams:
    """The steps of one example through the maps whose address matches, in their order."""
    chosen = {address: shown for address, shown in maps.items() if fnmatch.fnmatchcase(address, taps)}
    if not chosen:
        raise RecordingError(f"No recorded tap matches {taps!r}. Recorded: {', '.join(maps) or 'nothing'}.")
    steps: list[Attends | Begins] = []
    sizes: dict[str, int] = {}
    axes: dict[str, Axis] = {}
    inputs: list[str] = []
    before: str | None = None
    for address, shown in chosen.items():
        one = shown.example(example)
        for role, known, size in ((one.keys, one.key_axes, one.shape[3]), (one.queries, one.query_axes, one.shape[2])):
            if role in sizes:
                _check_size(address, role, size, sizes[role])
                continue
            sizes[role] = size
            if known:
                axes[role] = known[0]
            begun = _begun(role, before, axes)
            if begun is None:
                inputs.append(role)
            else:
                steps.append(begun)
            before = role if before is None or begun is not None else before
        steps.append(Attends(address, one.queries, one.keys, one.relation))
        before = one.queries
    return Streams(tuple(steps), tuple(inputs), sizes, axes)


def _begun(role: str, before: str | None, axes: Mapping[str, Axis]) -> Begins | None:
    """A stream over the same thing as the one before continues it, at another resolution."""
    if before is None or role not in axes or before not in axes:
        return None
    between = resampling(axes[role], axes[before])
    return None if between is None else Begins(role, before, between)


def _check_size(address: str, role: str, size: int, known: int) -> None:
    if size != known:
        raise RecordingError(
            f"{address} has {size} positions of {role!r}, maps before it {known}: these are not the same positions, so "
            f"the maps cannot be composed. Name those that belong together with `taps=`."
        )


def one_hot(rows: range, size: int) -> torch.Tensor:
    """A vector for each position, one there and zero elsewhere."""
    vectors = torch.zeros(len(rows), size)
    vectors[torch.arange(len(rows)), torch.tensor(list(rows), dtype=torch.int64)] = 1.0
    return vectors
