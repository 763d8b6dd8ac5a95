"""What the positions of an attention map are: tokens, patches, voxels, frames, dates, boxes, memory slots.

A relation is drawn, rolled out and explored by what its two axes say, never by which model it came from.
An axis belongs to one example (one sentence, one picture); a recording holds a list of them for each role
("source", "target", "image", ...) that a model's taps name.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from regard.core.errors import RecordingError
from regard.core.registry import Registry

axis_kinds: Registry[type[Axis]] = Registry("kind of axis")


class Axis(ABC):
    """The positions along one side of a relation."""

    kind: ClassVar[str]
    unit: ClassVar[str]
    space: ClassVar[str | None] = None
    """In what the positions have places: "line" (of this axis only), "time", "picture", "volume", or in nothing."""
    space_unit: ClassVar[str] = ""
    """In what distances in that space are measured."""

    @abstractmethod
    def __len__(self) -> int:
        """How many positions there are."""

    @abstractmethod
    def label(self, position: int) -> str:
        """A short name of one position, for ticks and tooltips."""

    def labels(self) -> list[str]:
        return [self.label(position) for position in range(len(self))]

    def coordinates(self) -> list[tuple[float, ...]]:
        """Where each position is, in `space_unit`; NaN for one that is nowhere. Only for axes that have a space."""
        return [(float(position),) for position in range(len(self))]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **dataclasses.asdict(self)}  # type: ignore[call-overload]

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Axis:
        """Rebuilds an axis; an unknown kind or a field that does not fit is a `RecordingError`."""
        fields = {name: tuple(entry) if isinstance(entry, list) else entry for name, entry in value.items()}
        kind = fields.pop("kind", None)
        if not isinstance(kind, str) or kind not in axis_kinds:
            raise RecordingError(f"An axis of kind {kind!r} is not known here; known: {', '.join(axis_kinds)}.")
        try:
            return axis_kinds[kind](**fields)
        except (TypeError, ValueError) as error:
            raise RecordingError(f"The fields of a {kind!r} axis do not fit: {error}.") from error


@axis_kinds.register("text")
@dataclass(frozen=True)
class Text(Axis):
    """Tokens of a text, in reading order."""

    kind = "text"
    unit = "tokens"
    space = "line"
    space_unit = "tokens"
    tokens: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    def label(self, position: int) -> str:
        return self.tokens[position]


@axis_kinds.register("grid")
@dataclass(frozen=True)
class Grid(Axis):
    """Patches of a picture, row by row; `extras` tokens (class token, registers) come first."""

    kind = "grid"
    unit = "pixels"
    space = "picture"
    space_unit = "pixels"
    rows: int
    columns: int
    image_height: int
    image_width: int
    extras: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.extras) + self.rows * self.columns

    def label(self, position: int) -> str:
        if position < len(self.extras):
            return self.extras[position]
        row, column = divmod(position - len(self.extras), self.columns)
        return f"{row},{column}"

    def box(self, position: int) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of a patch in pixels; an extra token stands for the whole picture."""
        if position < len(self.extras):
            return 0.0, 0.0, float(self.image_width), float(self.image_height)
        row, column = divmod(position - len(self.extras), self.columns)
        height, width = self.image_height / self.rows, self.image_width / self.columns
        return column * width, row * height, (column + 1) * width, (row + 1) * height

    def coordinates(self) -> list[tuple[float, ...]]:
        """The centres of the patches; an extra token is nowhere."""
        height, width = self.image_height / self.rows, self.image_width / self.columns
        nowhere: list[tuple[float, ...]] = [(math.nan, math.nan)] * len(self.extras)
        return nowhere + [
            ((column + 0.5) * width, (row + 0.5) * height) for row in range(self.rows) for column in range(self.columns)
        ]


@axis_kinds.register("volume")
@dataclass(frozen=True)
class Volume(Axis):
    """Voxels, or blocks of them: slices, then rows, then columns."""

    kind = "volume"
    unit = "voxels"
    space = "volume"
    space_unit = "voxels"
    depth: int
    rows: int
    columns: int

    def __len__(self) -> int:
        return self.depth * self.rows * self.columns

    def label(self, position: int) -> str:
        slice_, within = divmod(position, self.rows * self.columns)
        row, column = divmod(within, self.columns)
        return f"{slice_},{row},{column}"

    def coordinates(self) -> list[tuple[float, ...]]:
        """Slice, row and column, as places of this grid."""
        return [
            (float(slice_), float(row), float(column))
            for slice_ in range(self.depth)
            for row in range(self.rows)
            for column in range(self.columns)
        ]


@axis_kinds.register("frames")
@dataclass(frozen=True)
class Frames(Axis):
    """Steps of a signal in time, each `seconds` long."""

    kind = "frames"
    unit = "seconds"
    space = "time"
    space_unit = "seconds"
    count: int
    seconds: float

    def __len__(self) -> int:
        return self.count

    def label(self, position: int) -> str:
        return f"{position * self.seconds:.2f} s"

    def coordinates(self) -> list[tuple[float, ...]]:
        """The middle of each step."""
        return [((position + 0.5) * self.seconds,) for position in range(self.count)]


@axis_kinds.register("series")
@dataclass(frozen=True)
class Series(Axis):
    """Observations of a time series, each with its date (ISO 8601) or name."""

    kind = "series"
    unit = "observations"
    space = "line"
    space_unit = "observations"
    dates: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.dates)

    def label(self, position: int) -> str:
        return self.dates[position]


@axis_kinds.register("boxes")
@dataclass(frozen=True)
class Boxes(Axis):
    """Object queries, each with a name and, once predicted, its box in pixels (left, top, right, bottom)."""

    kind = "boxes"
    unit = "boxes"
    space = "picture"
    space_unit = "pixels"
    names: tuple[str, ...]
    corners: tuple[tuple[float, float, float, float], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "corners", tuple(tuple(corner) for corner in self.corners))

    def __len__(self) -> int:
        return len(self.names)

    def label(self, position: int) -> str:
        return self.names[position]

    def coordinates(self) -> list[tuple[float, ...]]:
        """The centres of the boxes; before they are predicted they are nowhere."""
        if not self.corners:
            return [(math.nan, math.nan)] * len(self)
        return [((left + right) / 2, (top + bottom) / 2) for left, top, right, bottom in self.corners]


@axis_kinds.register("slots")
@dataclass(frozen=True)
class Slots(Axis):
    """Places of a memory, each with what is stored there, as text."""

    kind = "slots"
    unit = "slots"
    contents: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.contents)

    def label(self, position: int) -> str:
        return self.contents[position]
