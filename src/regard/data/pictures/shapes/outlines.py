"""Ten shapes as closed lines, all of area 1, and how far any point is from them.

Because all have the same area, neither how much of a picture a thing covers nor how bright that makes it tells its
shape. A shape's field is the signed distance to its line (negative inside) on a grid, computed once; a thing of any
size, place and turn is then drawn by looking up its pixels there, with edges as smooth as distances are.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from jaxtyping import Float32, Float64

Loop = Float64[np.ndarray, "corners 2"]
"""Corners (x, y) one after another; y points down. The last is joined with the first."""

EXTENT = 1.3
"""Fields reach so far from the middle; no shape reaches further than 1."""

CELLS = 128


def _around(*polar: tuple[float, float]) -> Loop:
    """Corners by turn (in full circles from the top) and distance."""
    angles, radii = np.array(polar).T
    return np.stack([np.sin(2 * np.pi * angles) * radii, -np.cos(2 * np.pi * angles) * radii], axis=1)


def _regular(corners: int, radius: float = 1.0) -> Loop:
    return _around(*((corner / corners, radius) for corner in range(corners)))


def _star() -> Loop:
    return _around(*((corner / 10, 0.42 if corner % 2 else 1.0) for corner in range(10)))


def _cross() -> Loop:
    arm, end = 0.36, 1.0
    quarter = [(-arm, -end), (arm, -end), (arm, -arm)]
    turned = [[(x, y), (-y, x), (-x, -y), (y, -x)][turn] for turn in range(4) for x, y in quarter]
    return np.array(turned)


def _heart() -> Loop:
    turns = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    across = 16 * np.sin(turns) ** 3
    up = 13 * np.cos(turns) - 5 * np.cos(2 * turns) - 2 * np.cos(3 * turns) - np.cos(4 * turns)
    return np.stack([across, -up], axis=1)


def _moon() -> Loop:
    """A disc without another disc, whose middle is to its right."""
    inner, shift = 0.85, 0.5
    meet = math.acos((1 + shift**2 - inner**2) / (2 * shift))
    inner_meet = math.atan2(math.sin(meet), math.cos(meet) - shift)
    outside = np.linspace(meet, 2 * np.pi - meet, 32)
    inside = np.linspace(2 * np.pi - inner_meet, inner_meet, 24)[1:-1]
    rim = np.stack([np.cos(outside), np.sin(outside)], axis=1)
    bite = np.stack([shift + inner * np.cos(inside), inner * np.sin(inside)], axis=1)
    return np.concatenate([rim, bite])


def _arrow() -> Loop:
    return np.array([(0, -1), (0.75, -0.1), (0.28, -0.1), (0.28, 1), (-0.28, 1), (-0.28, -0.1), (-0.75, -0.1)])


def _rectangle(length: float) -> Loop:
    return np.array([(-length, -1), (length, -1), (length, 1), (-length, 1)])


_DRAWN: dict[str, tuple[Loop, ...]] = {
    "circle": (_regular(48),),
    "square": (_rectangle(1.0),),
    "triangle": (_regular(3),),
    "star": (_star(),),
    "cross": (_cross(),),
    "heart": (_heart(),),
    "moon": (_moon(),),
    "ring": (_regular(48), _regular(48, 0.58)[::-1]),
    "arrow": (_arrow(),),
    "rectangle": (_rectangle(2.8),),
}

SHAPES: tuple[str, ...] = tuple(_DRAWN)


def area_and_middle(loops: tuple[Loop, ...]) -> tuple[float, Float64[np.ndarray, "2"]]:
    """By the shoelace formula; a loop that runs the other way is a hole."""
    area, moment = 0.0, np.zeros(2)
    for loop in loops:
        following = np.roll(loop, -1, axis=0)
        crossed = loop[:, 0] * following[:, 1] - loop[:, 1] * following[:, 0]
        area += crossed.sum() / 2
        moment += ((loop + following) * crossed[:, None]).sum(axis=0) / 6
    return abs(area), moment / area


@functools.cache
def outline(shape: str) -> tuple[Loop, ...]:
    """The shape's lines, of area 1 and about its centre of mass."""
    loops = _DRAWN[shape]
    area, middle = area_and_middle(loops)
    return tuple((loop - middle) / math.sqrt(area) for loop in loops)


@functools.cache
def reach(shape: str) -> float:
    """From the middle to the furthest corner."""
    return max(math.sqrt(float((loop**2).sum(axis=1).max())) for loop in outline(shape))


@functools.cache
def field(shape: str) -> Float32[np.ndarray, "rows columns"]:
    """Signed distances at the points of a grid from -EXTENT to EXTENT."""
    axis = np.linspace(-EXTENT, EXTENT, CELLS + 1)
    points = np.stack(np.meshgrid(axis, axis, indexing="xy"), axis=-1).reshape(-1, 1, 2)
    nearest = np.full(len(points), np.inf)
    inside = np.zeros(len(points), bool)
    for loop in outline(shape):
        start, end = loop, np.roll(loop, -1, axis=0)
        along = end - start
        share = ((points - start) * along).sum(axis=-1) / (along**2).sum(axis=-1)
        away = points - start - share.clip(0, 1)[..., None] * along
        nearest = np.minimum(nearest, np.sqrt((away**2).sum(axis=-1)).min(axis=1))
        spans = (start[:, 1] > points[..., 1]) != (end[:, 1] > points[..., 1])
        level = np.where(along[:, 1] == 0, 1.0, along[:, 1])
        crossing = start[:, 0] + (points[..., 1] - start[:, 1]) / level * along[:, 0]
        inside ^= (spans & (points[..., 0] < crossing)).sum(axis=1) % 2 == 1
    return np.where(inside, -nearest, nearest).reshape(CELLS + 1, CELLS + 1).astype(np.float32)
