"""Rows of unequal length in two flat arrays: all values one after the other, and where each row begins.

It is the same in memory and on disk. On disk the arrays are two plain files of little-endian numbers that are mapped
and not read, so a corpus may be larger than memory and many processes share one copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from jaxtyping import Int32, Int64, Shaped

_OFFSET = np.dtype("<i8")
_BLOCK = 1 << 20


class Ragged:
    """`rows[i]` is a view of row i."""

    def __init__(self, values: Shaped[np.ndarray, " values"], offsets: Int64[np.ndarray, " rows_and_one"]) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Shaped[np.ndarray, " row"]:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def lengths(self) -> Int32[np.ndarray, " rows"]:
        """Block by block, so that only the result takes memory."""
        lengths = np.empty(len(self), np.int32)
        for start in range(0, len(self), _BLOCK):
            lengths[start : start + _BLOCK] = np.diff(self.offsets[start : start + _BLOCK + 1])
        return lengths

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[int] | bytes], dtype: np.dtype[Any]) -> Ragged:
        """In memory."""
        values, lengths = _flatten(rows, dtype)
        return cls(values, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))

    @classmethod
    def open(cls, path: Path, dtype: np.dtype[Any]) -> Ragged:
        """Maps what a `RaggedWriter` wrote to the same path."""
        values, offsets = _files(path)
        return cls(np.asarray(np.memmap(values, dtype, "r")), np.asarray(np.memmap(offsets, _OFFSET, "r")))


class RaggedWriter:
    """Appends rows to disk; memory is needed only for the rows of one call."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self._end = 0
        self._open = ExitStack()
        self._values, self._offsets = (self._open.enter_context(file.open("xb")) for file in _files(path))
        self._offsets.write(np.zeros(1, _OFFSET).tobytes())

    def extend(self, rows: Iterable[Sequence[int] | bytes]) -> None:
        values, lengths = _flatten(rows, self.dtype)
        ends = self._end + np.cumsum(lengths)
        self._end += int(lengths.sum())
        self._values.write(values.tobytes())
        self._offsets.write(ends.astype(_OFFSET).tobytes())

    def __enter__(self) -> RaggedWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()


def _files(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}.values"), path.with_name(f"{path.name}.offsets")


def _flatten(
    rows: Iterable[Sequence[int] | bytes], dtype: np.dtype[Any]
) -> tuple[Shaped[np.ndarray, " values"], Int64[np.ndarray, " rows"]]:
    rows = list(rows)
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    values = np.fromiter((value for row in rows for value in row), dtype, int(lengths.sum()))
    return values, lengths
