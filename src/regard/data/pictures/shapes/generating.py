"""Scenes: always the same for the same number, and which part a number belongs to is read off the number itself.

So train, valid and test never share a picture, whatever their seeds and sizes, and a longer set begins with the
shorter one. What is to be learned is the shape of the largest thing. All else is drawn without regard to it: colours,
places, turns, the smaller things beside it (each of another shape), the ground; and every shape of a size covers the
same number of pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float64, Int64

from regard.core.errors import ConfigError, UnknownNameError
from regard.data.pictures.draws import Draws, mix
from regard.data.pictures.shapes.drawing import Colour, Ground, Placed, draw_ground, draw_thing, finish
from regard.data.pictures.shapes.outlines import SHAPES, reach
from regard.data.pictures.shapes.scene import COLOURS, GROUNDS, Scene, Thing

Split = Literal["train", "valid", "test"]

MOST_OTHERS = 3
TRIES = 6
"""So often a place is sought for a smaller thing before it is left out."""

GROUND_TRIES = 6
CONTRAST = 110.0
"""The ground is at least so far from every thing's colour, as red, green and blue from 0 to 255, if it can be."""

LEAST_SIDE = 16

_DRAWS = 8 + MOST_OTHERS * (5 + 2 * TRIES) + 3 * GROUND_TRIES + 5 + 3
_BLOCK = 1024


def scene_numbers(num_pictures: int, seed: int, split: Split) -> Int64[np.ndarray, "{num_pictures}"]:
    """The numbers of a split's first scenes. Their remainder by 8 is 6 for valid, 7 for test, less for train."""
    if split not in get_args(Split):
        raise UnknownNameError("split of the shapes", split, get_args(Split))
    if num_pictures < 1:
        raise ConfigError(f"{num_pictures} pictures of shapes were asked for; ask for at least 1.")
    hashed = mix(np.arange(num_pictures, dtype=np.uint64) ^ mix(np.array([seed], np.uint64) + np.uint64(1)))
    eighths = (hashed >> np.uint64(4)).astype(np.int64) * 8
    if split == "train":
        return eighths + (hashed % np.uint64(6)).astype(np.int64)
    return eighths + (6 if split == "valid" else 7)


def generate(numbers: Int64[np.ndarray, " pictures"], side: int) -> Iterator[Scene]:
    """The scenes of these numbers, as pictures of `side` x `side` pixels."""
    if side < LEAST_SIDE:
        raise ConfigError(
            f"Shapes cannot be told apart on {side} x {side} pixels; take a size of {LEAST_SIDE} or more."
        )
    for start in range(0, len(numbers), _BLOCK):
        block = numbers[start : start + _BLOCK]
        for number, row in zip(block, Draws(0, block).table(_DRAWS), strict=True):
            yield _scene(int(number), side, _Row(row))


class _Row:
    """The uniform draws of one scene, taken one after another."""

    def __init__(self, draws: Float64[np.ndarray, " draws"]) -> None:
        self._draws = iter(draws.tolist())

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * next(self._draws)

    def pick(self, options: tuple[str, ...]) -> str:
        return options[int(next(self._draws) * len(options))]


def _scene(number: int, side: int, row: _Row) -> Scene:
    shape = row.pick(SHAPES)
    size = row.between(0.28, 0.40) * side
    far = reach(shape) * size
    x, y = (row.between(far, side - far) for _ in range(2))
    main = Placed(shape, row.pick(tuple(COLOURS)), x, y, size, row.between(0, 2 * math.pi), row.between(-0.3, 0.3))
    placed = [main]
    wanted = 1 + int(row.between(0, MOST_OTHERS))
    for other in range(MOST_OTHERS):
        thing = _other(row, placed, side)
        if other < wanted and thing is not None:
            placed.append(thing)
    ground = _ground(row, placed, side)
    canvas = draw_ground(ground, side)
    masks = []
    for thing in placed:
        masks.append(draw_thing(canvas, thing, np.array(COLOURS[thing.colour], np.float32)))
        for earlier in masks[:-1]:
            earlier &= ~masks[-1]
    strength, *corner = row.between(4, 14), int(row.between(0, 256)), int(row.between(0, 256))
    things = tuple(
        Thing(thing.shape, thing.colour, thing.x, thing.y, thing.size, thing.angle, mask)
        for thing, mask in zip(placed, masks, strict=True)
    )
    return Scene(number, finish(canvas, strength, *corner), ground.pattern, things)


def _other(row: _Row, placed: list[Placed], side: int) -> Placed | None:
    """A smaller thing of a shape that is not the main one's, at the first place that is free enough.

    It always takes the same number of draws, so that what comes later does not hang on whether a place was found.
    """
    main = placed[0]
    shape = row.pick(tuple(name for name in SHAPES if name != main.shape))
    colour = row.pick(tuple(COLOURS))
    size = row.between(0.42, 0.6) * main.size
    angle, shade = row.between(0, 2 * math.pi), row.between(-0.3, 0.3)
    far = reach(shape) * size
    places = [(row.between(far, side - far), row.between(far, side - far)) for _ in range(TRIES)]
    for x, y in places:
        if all((x - thing.x) ** 2 + (y - thing.y) ** 2 > (0.85 * (far + thing.reach)) ** 2 for thing in placed):
            return Placed(shape, colour, x, y, size, angle, shade)
    return None


def _ground(row: _Row, placed: list[Placed], side: int) -> Ground:
    """A pattern whose colour is the first of some that is far from every thing's, or else the furthest."""
    tried: list[tuple[float, Colour]] = []
    for _ in range(GROUND_TRIES):
        colour = np.array([row.between(20, 235) for _ in range(3)], np.float32)
        away = min(math.dist(colour.tolist(), COLOURS[thing.colour]) for thing in placed)
        tried.append((away, colour))
    middle = next((colour for away, colour in tried if away >= CONTRAST), max(tried, key=lambda pair: pair[0])[1])
    pattern = row.pick(GROUNDS)
    swing = np.float32(row.between(10, 34))
    period = row.between(0.1, 0.25) * side
    return Ground(pattern, middle - swing, middle + swing, period, row.between(0, 2 * math.pi), row.between(0, 1))
