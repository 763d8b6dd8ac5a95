"""What every source of pictures gives: for each part that it publishes, pictures and the number of their class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np
from jaxtyping import Int64, UInt8

from regard.core.errors import DataError
from regard.data.pictures.decode import decode, fitted
from regard.data.sources import Part


class Pictures(Protocol):
    """Equally large pictures that are read by number."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of one."""

    def __len__(self) -> int: ...

    def read(self, numbers: Int64[np.ndarray, " some"]) -> UInt8[np.ndarray, "some height width channels"]:
        """Some of them, in the order of the numbers."""

    def select(self, numbers: Int64[np.ndarray, " some"]) -> Pictures:
        """A collection of some of them."""


@final
@dataclass(frozen=True)
class ArrayPictures:
    """All in memory."""

    array: UInt8[np.ndarray, "pictures height width channels"]

    @property
    def shape(self) -> tuple[int, int, int]:
        _, height, width, channels = self.array.shape
        return height, width, channels

    def __len__(self) -> int:
        return len(self.array)

    def read(self, numbers: Int64[np.ndarray, " some"]) -> UInt8[np.ndarray, "some height width channels"]:
        return self.array[numbers]

    def select(self, numbers: Int64[np.ndarray, " some"]) -> ArrayPictures:
        return ArrayPictures(self.array[numbers])

    def resized(self, height: int, width: int) -> ArrayPictures:
        if self.shape[:2] == (height, width):
            return self
        channels = self.shape[2]
        return ArrayPictures(np.stack([fitted(picture, height, width, channels) for picture in self.array]))


@final
@dataclass(frozen=True)
class FilePictures:
    """Files that are decoded each time they are read, in colour and of one size."""

    paths: tuple[Path, ...]
    height: int
    width: int

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.height, self.width, 3

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, numbers: Int64[np.ndarray, " some"]) -> UInt8[np.ndarray, "some height width channels"]:
        pictures = np.empty((len(numbers), *self.shape), np.uint8)
        for place, number in enumerate(numbers):
            pictures[place] = read_file(self.paths[number], self.height, self.width)
        return pictures

    def select(self, numbers: Int64[np.ndarray, " some"]) -> FilePictures:
        return FilePictures(tuple(self.paths[number] for number in numbers), self.height, self.width)


def read_file(path: Path, height: int, width: int) -> UInt8[np.ndarray, "{height} {width} 3"]:
    """A picture file in the size that is wanted; large JPEGs are read no larger than twice that."""
    return fitted(decode(path, least=2 * max(height, width)), height, width, 3)


@dataclass(frozen=True)
class Labelled:
    """Pictures, each with the number of its class."""

    pictures: Pictures
    labels: Int64[np.ndarray, " pictures"]

    def __post_init__(self) -> None:
        assert len(self.pictures) == len(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, numbers: Int64[np.ndarray, " some"]) -> Labelled:
        return Labelled(self.pictures.select(numbers), self.labels[numbers])


@dataclass
class PartReport:
    """The account of one part: how many pictures came through, and what was left out and why."""

    pictures: int = 0
    skipped: int = 0
    examples: list[str] = field(default_factory=list)
    """What was wrong with the first files that were skipped."""

    NUM_EXAMPLES = 10

    def skip(self, error: DataError) -> None:
        self.skipped += 1
        if len(self.examples) < self.NUM_EXAMPLES:
            self.examples.append(str(error))

    def summary(self) -> str:
        text = [f"{self.pictures:,} pictures"]
        if self.skipped:
            text.append(f"  skipped {self.skipped:,} that cannot be read; first: {self.examples[0]}")
        return "\n".join(text)

    def to_json(self) -> dict[str, Any]:
        return {"pictures": self.pictures, "skipped": self.skipped, "examples": list(self.examples)}


class PictureSource(Protocol):
    """A data set before it is split."""

    class_names: tuple[str, ...]
    parts: tuple[Part, ...]
    """The parts it has of its own; "train" is always one."""
    notes: list[str]
    """What was decided without being asked, filled while parts are read."""

    def read(self, part: Part, report: PartReport) -> Labelled:
        """One of `parts`, wholly."""

    def marks(self, labelled: Labelled) -> Sequence[bytes]:
        """For each picture bytes that tell it from others, by which it is chosen for a part; equal pictures share."""
