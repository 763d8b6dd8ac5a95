"""Recordings as text for a page: compressed, in letters that cannot end the element they stand in, and small enough."""

from __future__ import annotations

import base64
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.explorer.rounding import joined, restored, rounded, split
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


def packed(files: Sequence[bytes]) -> list[str]:
    """Each file as text; where they are too large together, queries and keys are rounded and the files say so."""
    texts = [as_text(file) for file in files]
    for error in ERRORS:
        if sum(map(len, texts)) <= MAX_BYTES:
            return texts
        texts = [as_text(noted(file, rounded(file, error))) for file in files]
    if sum(map(len, texts)) > MAX_BYTES:
        raise ConfigError(
            f"The page would hold {sum(map(len, texts)) / 1e6:.0f} MB of recordings, and more than "
            f"{MAX_BYTES / 1e6:.1f} MB make a file that browsers are slow with. Put fewer recordings into it, or fewer "
            "layers with a pattern such as taps='*cross*'; `regard serve FILE.regard` shows recordings of any size."
        )
    return texts


def as_text(file: bytes) -> str:
    return base64.b85encode(zlib.compress(file, 6)).decode("ascii").replace("<", ",")


def noted(file: bytes, smaller: bytes) -> bytes:
    """The rounded file, with how far its weights are off as measured."""
    off = deviation(file, restored(smaller))
    tensors, description = split(smaller)
    description["note"] = (
        f"To fit into this page, queries and keys are rounded: weights are off by at most {off:.1g} (checked on "
        f"{_CHECKED_ROWS} rows of every head)."
    )
    return joined(tensors, description)


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
