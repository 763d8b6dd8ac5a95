"""Street View House Numbers, single digits: 73,257 + 26,032 pictures of 32 x 32 pixels (Netzer et al., 2011).

Format 2 is published as MATLAB files, `X` of 32 x 32 x 3 x pictures and `y` with 10 for the digit 0; SciPy reads them.
They are for non-commercial use only.

A machine may instead hold a prepared subset of format 1 in `REGARD_DATA/svhn`: crops of 64 x 64 with a whole number
each, in mosaics of 60 x 60, and in `labels.npz` the digits and their boxes. Each digit is then cut out by its box, made
square as in format 2, and resized to 32 x 32. That is another, smaller set: results on it cannot be compared with the
published ones, and a note says so.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int64, UInt8
from PIL import Image

from regard.core.errors import DataError
from regard.data.download import DataFile, Fetch, find_or_fetch
from regard.data.pictures.decode import decode
from regard.data.pictures.reading import ArrayPictures, Labelled, PartReport
from regard.data.sources import Part

MIRRORS = ("http://ufldl.stanford.edu/housenumbers",)
FILES: dict[Part, DataFile] = {
    "train": DataFile("train_32x32.mat", "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"),
    "test": DataFile("test_32x32.mat", "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"),
}

SIDE = 32
CROP = 64
TILES = 60


@final
class SvhnSource:
    """The published files, or the prepared subset where the user's folder has that and not those."""

    parts: tuple[Part, ...] = ("train", "test")
    class_names = tuple("0123456789")

    def __init__(self, *, fetch: Fetch | None = None) -> None:
        self.notes: list[str] = []
        self._fetch = fetch

    def read(self, part: Part, report: PartReport) -> Labelled:
        root = os.environ.get("REGARD_DATA")
        folder = Path(root).expanduser() / "svhn" if root else None
        if folder and (folder / "labels.npz").is_file() and not (folder / FILES[part].path).is_file():
            pictures, labels = read_prepared(folder, part)
            self.notes.append(
                f"{part}: {len(labels):,} digits cut from the prepared subset in {folder}; not the published 32 x 32 "
                "set, so no result on them can be compared with published ones."
            )
        else:
            (path,) = find_or_fetch("svhn", [FILES[part]], MIRRORS, fetch=self._fetch)
            pictures, labels = read_matlab(path)
        report.pictures = len(labels)
        return Labelled(ArrayPictures(pictures), labels)

    def marks(self, labelled: Labelled) -> Sequence[bytes]:
        assert isinstance(labelled.pictures, ArrayPictures)
        return [picture.tobytes() for picture in labelled.pictures.array]


def read_matlab(path: Path) -> tuple[UInt8[np.ndarray, "pictures 32 32 3"], Int64[np.ndarray, " pictures"]]:
    """Format 2, with the digit 0 as class 0."""
    try:
        from scipy.io import loadmat  # here, because nothing else needs SciPy
    except ImportError as error:
        raise DataError(
            "The published SVHN files are MATLAB files, and SciPy, which reads them, is not installed: "
            "`pip install scipy`."
        ) from error
    try:
        content = loadmat(path)
    except Exception as error:  # it meets damaged bytes with whatever error comes to its mind
        raise DataError(f"{path} cannot be read as a MATLAB file: {error}. Fetch it anew.") from error
    pictures, digits = content.get("X"), content.get("y")
    if pictures is None or digits is None:
        raise DataError(f"{path} has no X and y, but {', '.join(name for name in content if name[0] != '_')}.")
    labels = digits.reshape(-1).astype(np.int64)
    if pictures.dtype != np.uint8 or pictures.shape != (SIDE, SIDE, 3, len(labels)):
        raise DataError(
            f"{path}: X is {pictures.dtype} of {pictures.shape}; bytes of ({SIDE}, {SIDE}, 3, {len(labels)}) belong "
            "to its y."
        )
    wrong = np.flatnonzero((labels < 1) | (labels > 10))
    if len(wrong):
        raise DataError(f"{path}: y[{int(wrong[0])}] is {labels[wrong[0]]}; digits are 1 to 10, 10 for the digit 0.")
    return np.ascontiguousarray(pictures.transpose(3, 0, 1, 2)), labels % 10


def read_prepared(
    folder: Path, part: Part
) -> tuple[UInt8[np.ndarray, "pictures 32 32 3"], Int64[np.ndarray, " pictures"]]:
    """Every digit of a part, cut from its crop."""
    try:
        with np.load(folder / "labels.npz") as table:
            digits, boxes = table[f"{part}_digits"], table[f"{part}_boxes64"].astype(np.float64)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{folder / 'labels.npz'} cannot be read: {error}.") from error
    crops, labels = [], []
    for start in range(0, len(digits), TILES * TILES):
        path = folder / f"{part}_{start // (TILES * TILES)}.jpg"
        mosaic = decode(path)
        if mosaic.shape != (TILES * CROP, TILES * CROP, 3):
            raise DataError(f"{path} is {mosaic.shape[1]} x {mosaic.shape[0]}; a mosaic has {TILES * CROP} both ways.")
        for tile, number in enumerate(range(start, min(start + TILES * TILES, len(digits)))):
            row, column = divmod(tile, TILES)
            crop = Image.fromarray(mosaic[row * CROP : (row + 1) * CROP, column * CROP : (column + 1) * CROP])
            for digit, box in zip(digits[number], boxes[number], strict=True):
                if digit >= 0:
                    crops.append(_digit(crop, box))
                    labels.append(int(digit))
    return np.stack(crops), np.array(labels)


def _digit(crop: Image.Image, box: np.ndarray) -> UInt8[np.ndarray, "32 32 3"]:
    """The square around a digit's box; where it leaves the crop it is moved back inside."""
    left, top, right, bottom = (float(corner) for corner in box)
    side = min(max(right - left, bottom - top, 4.0), float(CROP))
    left, top = (min(max((low + high - side) / 2, 0.0), CROP - side) for low, high in ((left, right), (top, bottom)))
    square = (left, top, left + side, top + side)
    return np.asarray(crop.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=square))
