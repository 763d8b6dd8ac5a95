"""What a generated picture shows: its things, each with its place, and the sentence that tells of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float64, UInt8

from regard.data.pictures.shapes.outlines import Loop, outline

COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (208, 36, 44),
    "orange": (240, 128, 32),
    "yellow": (240, 212, 48),
    "green": (44, 150, 66),
    "cyan": (60, 190, 200),
    "blue": (44, 84, 204),
    "purple": (132, 56, 176),
    "pink": (240, 136, 184),
    "white": (240, 240, 240),
    "black": (24, 24, 28),
}

GROUNDS = ("plain", "shaded", "striped", "checked", "spotted")


@final
@dataclass(frozen=True)
class Thing:
    """A shape at its place. `size` is the root of its area in pixels, `angle` its turn in radians, clockwise."""

    shape: str
    colour: str
    x: float
    y: float
    size: float
    angle: float
    mask: Bool[np.ndarray, "height width"]
    """The pixels that show it: at least half covered by it, and not by a thing in front."""

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom of what is seen of it; the last two are one past its last pixels."""
        rows, columns = np.flatnonzero(self.mask.any(axis=1)), np.flatnonzero(self.mask.any(axis=0))
        return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1

    def outline(self) -> tuple[Loop, ...]:
        """Its whole lines in pixels (x, y), hidden parts included; a ring has two."""
        cosine, sine = np.cos(self.angle), np.sin(self.angle)
        turn: Float64[np.ndarray, "2 2"] = np.array([[cosine, sine], [-sine, cosine]])
        return tuple(loop @ turn * self.size + (self.x, self.y) for loop in outline(self.shape))


@final
@dataclass(frozen=True)
class Scene:
    """A picture and the things on it, the largest first: that one names the picture."""

    number: int
    picture: UInt8[np.ndarray, "height width 3"]
    ground: str
    things: tuple[Thing, ...]

    @property
    def main(self) -> Thing:
        return self.things[0]

    def caption(self) -> str:
        """Such as: a big red star, with a small blue ring to its left and a small black heart below it, on a
        striped ground."""
        main = self.main
        others = [f"a small {other.colour} {other.shape} {_where(other, main)}" for other in self.things[1:]]
        told = ", ".join(others[:-1]) + " and " + others[-1] if len(others) > 1 else "".join(others)
        beside = f", with {told}," if told else ""
        return f"a big {main.colour} {main.shape}{beside} on a {self.ground} ground"


def _where(thing: Thing, other: Thing) -> str:
    across, down = thing.x - other.x, thing.y - other.y
    if abs(across) > abs(down):
        return "to its right" if across > 0 else "to its left"
    return "below it" if down > 0 else "above it"
