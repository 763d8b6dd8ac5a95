"""RandAugment (Cubuk et al., 2020): an operation drawn from fourteen, for every picture of a batch its own.

The magnitude goes from 0 to 30. What it means for each operation is what torchvision's `RandAugment` means by it; moved
pixels take the nearest one, and what comes in from outside is black. Pictures with the same operation are done
together. Operations that only concern colours leave grey pictures with their greys where colours are mixed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float32, Float64, UInt8

from regard.data.pictures.draws import Draws

Bytes = UInt8[np.ndarray, "batch channels height width"]
Signs = Float64[np.ndarray, " batch"]
Operation = Callable[[Bytes, float, Signs], Bytes]
"""Of pictures, the level from 0 to 1, and for each picture -1 or 1, the direction where there are two."""

LEVELS = 30
_LUMA = np.array([0.2989, 0.587, 0.114], np.float32)


def rand_augment(pictures: Bytes, magnitude: float, draws: Draws) -> Bytes:
    """One operation on each picture."""
    chosen = draws.below(len(OPERATIONS))
    signs = np.where(draws.uniform() < 0.5, -1.0, 1.0)
    done = np.empty_like(pictures)
    for number, operation in enumerate(OPERATIONS.values()):
        rows = np.flatnonzero(chosen == number)
        if len(rows):
            done[rows] = operation(pictures[rows], magnitude / LEVELS, signs[rows])
    return done


def _identity(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    return pictures


def _shear_x(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    """Along the rows, the upper left corner held."""
    return _moved(pictures, [1, 0.3 * level * signs, 0], [0, 1, 0])


def _shear_y(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    return _moved(pictures, [1, 0, 0], [0.3 * level * signs, 1, 0])


def _translate_x(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    """By whole pixels, at most 150 in 331."""
    return _moved(pictures, [1, 0, -signs * int(150 / 331 * level * pictures.shape[3])], [0, 1, 0])


def _translate_y(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    return _moved(pictures, [1, 0, 0], [0, 1, -signs * int(150 / 331 * level * pictures.shape[2])])


def _rotate(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    """About the middle, at most 30 degrees; against the clock where the sign is positive."""
    angles = np.deg2rad(30 * level) * signs
    cosine, sine = np.cos(angles), np.sin(angles)
    y, x = pictures.shape[2] / 2, pictures.shape[3] / 2
    return _moved(pictures, [cosine, -sine, x - cosine * x + sine * y], [sine, cosine, y - sine * x - cosine * y])


def _brightness(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    return _blended(pictures, np.zeros((), np.float32), 1 + 0.9 * level * signs)


def _colour(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    """Between grey and more colourful than it is."""
    if pictures.shape[1] == 1:
        return pictures
    return _blended(pictures, _grey(pictures), 1 + 0.9 * level * signs)


def _contrast(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    """Away from or towards the mean grey."""
    mean = _grey(pictures).mean(axis=(1, 2, 3), keepdims=True, dtype=np.float64).astype(np.float32)
    return _blended(pictures, mean, 1 + 0.9 * level * signs)


def _sharpness(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    """Away from or towards a picture smoothed by 1 1 1 / 1 5 1 / 1 1 1, whose rim is left as it is."""
    if min(pictures.shape[2:]) < 3:
        return pictures
    whole = pictures.astype(np.uint16)
    columns = whole[..., :-2] + whole[..., 1:-1] + whole[..., 2:]
    sums = columns[:, :, :-2] + columns[:, :, 1:-1] + columns[:, :, 2:]
    smooth = pictures.astype(np.float32)
    smooth[:, :, 1:-1, 1:-1] = (2 * (sums + 4 * whole[:, :, 1:-1, 1:-1]) + 13) // 26
    return _blended(pictures, smooth, 1 + 0.9 * level * signs)


def _posterize(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    """Keeps the 8 to 4 highest bits."""
    dropped = round(4 * level)
    return pictures & np.uint8(256 - (1 << dropped))


def _solarize(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    """Inverts what is as bright as a threshold, from 255 at level 0 down to 0."""
    return np.where(pictures >= 255 * (1 - level), 255 - pictures, pictures)


def _autocontrast(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    """Stretches each channel from 0 to 255."""
    low = pictures.min(axis=(2, 3), keepdims=True).astype(np.int32)
    span = pictures.max(axis=(2, 3), keepdims=True).astype(np.int32) - low
    stretched = (pictures - low) * 255 // np.maximum(span, 1)
    return np.where(span == 0, pictures, stretched).astype(np.uint8)


def _equalize(pictures: Bytes, level: float, signs: Signs) -> Bytes:
    """Spreads each channel so that all levels are about as frequent, as Pillow's `ImageOps.equalize` does."""
    batch, channels, height, width = pictures.shape
    planes = pictures.reshape(batch * channels, height * width)
    starts = 256 * np.arange(len(planes))[:, None]
    places = planes + starts
    counts = np.bincount(places.reshape(-1), minlength=256 * len(planes)).reshape(-1, 256)
    step = (height * width - np.take_along_axis(counts, places.max(axis=1, keepdims=True) - starts, axis=1)) // 255
    before = np.cumsum(counts, axis=1) - counts
    table = np.minimum((step // 2 + before) // np.maximum(step, 1), 255)
    table = np.where(step == 0, np.arange(256), table).astype(np.uint8)
    return table.reshape(-1).take(places).reshape(pictures.shape)


OPERATIONS: dict[str, Operation] = {
    "identity": _identity,
    "shear_x": _shear_x,
    "shear_y": _shear_y,
    "translate_x": _translate_x,
    "translate_y": _translate_y,
    "rotate": _rotate,
    "brightness": _brightness,
    "colour": _colour,
    "contrast": _contrast,
    "sharpness": _sharpness,
    "posterize": _posterize,
    "solarize": _solarize,
    "autocontrast": _autocontrast,
    "equalize": _equalize,
}


def _moved(pictures: Bytes, x_from: list, y_from: list) -> Bytes:
    """Each pixel from (a x + b y + c, d x + e y + f), measured from the upper left corner to the pixels' middles."""
    batch, channels, height, width = pictures.shape
    x, y = np.arange(width, dtype=np.float32) + np.float32(0.5), np.arange(height, dtype=np.float32)[:, None]
    y = y + np.float32(0.5)
    column, row = (
        np.floor(a * x + b * y + c).astype(np.int32)
        for a, b, c in (
            (np.broadcast_to(np.float32(term), batch)[:, None, None] for term in terms) for terms in (x_from, y_from)
        )
    )
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    outside = height * width  # of every plane, one pixel behind its last one, which is black
    places = np.where(inside, row * np.int32(width) + column, outside).reshape(batch, 1, outside)
    planes = np.zeros((batch, channels, outside + 1), np.uint8)
    planes[:, :, :outside] = pictures.reshape(batch, channels, outside)
    starts = (outside + 1) * np.arange(batch * channels).reshape(batch, channels, 1)
    return planes.reshape(-1).take(places + starts).reshape(pictures.shape)


def _grey(pictures: Bytes) -> Float32[np.ndarray, "batch 1 height width"]:
    """By luma, rounded down."""
    if pictures.shape[1] == 1:
        return pictures.astype(np.float32)
    return np.floor(np.tensordot(pictures.astype(np.float32), _LUMA, axes=(1, 0)))[:, None]


def _blended(pictures: Bytes, other: Float32[np.ndarray, "..."], factor: Float64[np.ndarray, " batch"]) -> Bytes:
    """factor * picture + (1 - factor) * other, rounded down to bytes; a factor over 1 leads away from the other.

    It is reckoned as other + factor * (picture - other), which is exact where both are equal.
    """
    own = factor.astype(np.float32)[:, None, None, None]
    return np.clip(other + own * (pictures - other), 0, 255).astype(np.uint8)
