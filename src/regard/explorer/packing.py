"""Recordings as text for a page: compressed, in letters that cannot end the element they stand in, and small enough."""

from __future__ import annotations

import base64
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.explorer.rounding import restored, rounded
from regard.recording import Recording

MAX_BYTES = 11_500_000
"""Of all recordings in a page, as text; with the explorer itself it stays below 12 MB."""

ERRORS = (0.004, 0.01, 0.025)
"""By how much scores may be off, the first that is coarse enough is taken."""

_CHECKED_ROWS = 24


def file_bytes(recording: Recording) -> bytes:
    """What `Recording.save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        return recording.save(Path(folder) / "recording.regard").read_bytes()


@dataclass(frozen=True)
class Packed:
    """A recording as text, and what has to be said about it."""

    text: str
    note: str = ""


def packed(files: Sequence[bytes]) -> list[Packed]:
    """Each file as text; where they are too large together, queries and keys are rounded, and the notes say so."""
    smallest = sum(map(len, files))
    # What is not rounded hardly gets smaller, so that trying would be in vain.
    if smallest < 2 * MAX_BYTES:
        compressed = [zlib.compress(file, 6) for file in files]
        smallest = _length(compressed)
        if smallest <= MAX_BYTES:
            return [Packed(as_text(each)) for each in compressed]
    for error in ERRORS:
        smaller = [rounded(file, error) for file in files]
        compressed = [_runs(file) for file in smaller]
        smallest = _length(compressed)
        if smallest <= MAX_BYTES:
            notes = [_note(deviation(*pair)) for pair in zip(files, map(restored, smaller), strict=True)]
            return [Packed(as_text(each), note) for each, note in zip(compressed, notes, strict=True)]
    raise ConfigError(
        f"The page would hold {smallest / 1e6:.1f} MB of recordings, and more than {MAX_BYTES / 1e6:.1f} MB make a "
        "file that browsers are slow with. Put fewer recordings into it, or fewer layers with a pattern such as "
        "taps='*cross*'; `regard serve FILE.regard` shows recordings of any size."
    )


def as_text(compressed: bytes) -> str:
    return base64.b85encode(compressed).decode("ascii").replace("<", ",")


def _length(compressed: Sequence[bytes]) -> int:
    """Of the texts: five letters for four bytes."""
    return sum(-(-len(each) * 5 // 4) for each in compressed)


def _runs(file: bytes) -> bytes:
    """Rounded numbers are noise and runs of zeros; looking for more than runs in them is in vain, and slow."""
    worker = zlib.compressobj(6, zlib.DEFLATED, 15, 9, zlib.Z_RLE)
    return worker.compress(file) + worker.flush()


def _note(off: float) -> str:
    return (
        f"To fit into this page, queries and keys are rounded: weights are off by at most {off:.1g} (checked on "
        f"{_CHECKED_ROWS} rows of every head)."
    )


def deviation(one: bytes, other: bytes) -> float:
    """The largest difference between weights of some rows, evenly spread."""
    with tempfile.TemporaryDirectory() as folder:
        recordings = []
        for number, file in enumerate((one, other)):
            path = Path(folder) / f"{number}.regard"
            path.write_bytes(file)
            recordings.append(Recording.load(path))
    largest = 0.0
    for address in recordings[0]:
        first, second = (recording.relations[address] for recording in recordings)
        for row in _spread(first.num_queries):
            largest = max(largest, float((first.rows(row, row + 1) - second.rows(row, row + 1)).abs().max()))
    return largest


def _spread(count: int) -> list[int]:
    places: Tensor = torch.linspace(0, count - 1, min(count, _CHECKED_ROWS)).round().long()
    return sorted(set(places.tolist()))
