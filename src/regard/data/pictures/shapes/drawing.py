"""Drawing a scene: a patterned ground, things with smooth edges and a shade across them, and grain over all."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from regard.data.pictures.draws import Draws
from regard.data.pictures.shapes.outlines import CELLS, EXTENT, field, reach

Colour = Float32[np.ndarray, "3"]

_GRAIN_TILE = 256


@dataclass(frozen=True)
class Ground:
    """A pattern between two colours; `period` in pixels, `angle` in radians."""

    pattern: str
    first: Colour
    second: Colour
    period: float
    angle: float
    phase: float


@dataclass(frozen=True)
class Placed:
    """A thing before it is drawn; `shade` is how much lighter it is on one side."""

    shape: str
    colour: str
    x: float
    y: float
    size: float
    angle: float
    shade: float

    @property
    def reach(self) -> float:
        return reach(self.shape) * self.size


def draw_ground(ground: Ground, side: int) -> Float32[np.ndarray, "{side} {side} 3"]:
    """Each pixel between the two colours."""
    x, y = _pixels(side)
    cosine, sine = np.float32(math.cos(ground.angle)), np.float32(math.sin(ground.angle))
    along, across = x * cosine + y * sine, y * cosine - x * sine
    phase, period = np.float32(ground.phase), np.float32(ground.period)
    share: np.ndarray
    if ground.pattern == "plain":
        share = np.full((side, side), 0.5, np.float32)
    elif ground.pattern == "shaded":
        share = along / np.float32(side) + np.float32(0.5)
    elif ground.pattern == "striped":
        share = _wave(along / period + phase)
    elif ground.pattern == "checked":
        share = np.abs(_wave(along / period + phase) - _wave(across / period))
    else:
        x, y = period * _saw(along / period + phase), period * _saw(across / period)
        share = np.clip(np.float32(0.5) + np.float32(0.3) * period - np.sqrt(x * x + y * y), 0, 1)
    return ground.first + share[..., None] * (ground.second - ground.first)


def draw_thing(
    canvas: Float32[np.ndarray, "side side 3"], thing: Placed, colour: Colour
) -> Bool[np.ndarray, "side side"]:
    """Lays a thing over what is drawn already, and gives the pixels that it covers at least by half."""
    side = len(canvas)
    mask = np.zeros((side, side), bool)
    top, bottom = (_inside(thing.y + sign * (thing.reach + 1.5), side) for sign in (-1, 1))
    left, right = (_inside(thing.x + sign * (thing.reach + 1.5), side) for sign in (-1, 1))
    x = np.arange(left, right, dtype=np.float32) + np.float32(0.5 - thing.x)
    y = (np.arange(top, bottom, dtype=np.float32) + np.float32(0.5 - thing.y))[:, None]
    cosine, sine = (np.float32(turn(thing.angle) / thing.size) for turn in (math.cos, math.sin))
    own_x, own_y = x * cosine + y * sine, y * cosine - x * sine
    covered = np.clip(np.float32(0.5) - _distance(thing.shape, own_x, own_y) * np.float32(thing.size), 0, 1)
    shaded = 1 + np.float32(thing.shade) * (x + y) / np.float32(2 * thing.reach)
    window = canvas[top:bottom, left:right]
    window += covered[..., None] * (shaded[..., None] * colour - window)
    mask[top:bottom, left:right] = covered >= 0.5
    return mask


def finish(
    canvas: Float32[np.ndarray, "side side 3"], strength: float, row: int, column: int
) -> UInt8[np.ndarray, "side side 3"]:
    """Grain from a place of the tile, then bytes."""
    side = len(canvas)
    grain = _grain(side)[row : row + side, column : column + side]
    return np.clip(canvas + np.float32(strength) * grain + np.float32(0.5), 0, 255).astype(np.uint8)


def _distance(
    shape: str, x: Float32[np.ndarray, "rows columns"], y: Float32[np.ndarray, "rows columns"]
) -> Float32[np.ndarray, "rows columns"]:
    """The shape's field between its grid points."""
    scale = np.float32(CELLS / (2 * EXTENT))
    column, row = (np.clip((axis + np.float32(EXTENT)) * scale, 0, np.float32(CELLS - 0.001)) for axis in (x, y))
    left, top = column.astype(np.int32), row.astype(np.int32)
    column -= left
    row -= top
    flat, corner = field(shape).reshape(-1), top * (CELLS + 1) + left
    upper = flat[corner] + column * (flat[corner + 1] - flat[corner])
    corner += CELLS + 1
    lower = flat[corner] + column * (flat[corner + 1] - flat[corner])
    return upper + row * (lower - upper)


@functools.cache
def _pixels(side: int) -> tuple[Float32[np.ndarray, "{side} {side}"], Float32[np.ndarray, "{side} {side}"]]:
    """The middles of the pixels, from the middle of the picture."""
    axis = np.arange(side, dtype=np.float32) + np.float32(0.5 - side / 2)
    x, y = np.meshgrid(axis, axis, indexing="xy")
    return x, y


@functools.cache
def _grain(side: int) -> Float32[np.ndarray, "_ _ 3"]:
    """Noise of mean 0 and variance 1 in every colour, repeated so that a window fits anywhere."""
    draws = Draws(0, np.arange(_GRAIN_TILE * _GRAIN_TILE * 3))
    noise = (sum(draws.uniform() for _ in range(4)) - 2) * math.sqrt(3)
    tile = np.asarray(noise, np.float32).reshape(_GRAIN_TILE, _GRAIN_TILE, 3)
    times = 1 + -(-side // _GRAIN_TILE)
    return np.tile(tile, (times, times, 1))


def _saw(turns: Float32[np.ndarray, "rows columns"]) -> Float32[np.ndarray, "rows columns"]:
    """From -1/2 to 1/2 in each turn, 0 in its middle."""
    return turns - np.floor(turns) - np.float32(0.5)


def _wave(turns: Float32[np.ndarray, "rows columns"]) -> Float32[np.ndarray, "rows columns"]:
    """0 in one half of each turn, 1 in the other, with a short way between."""
    return np.clip((np.float32(0.25) - np.abs(_saw(turns))) * 8 + np.float32(0.5), 0, 1)


def _inside(place: float, side: int) -> int:
    return min(max(math.floor(place), 0), side)
