"""The generated shapes as a source of pictures with a class each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, final

import numpy as np

from regard.data.pictures.reading import ArrayPictures, Labelled, PartReport
from regard.data.pictures.shapes.generating import generate, scene_numbers
from regard.data.pictures.shapes.outlines import SHAPES
from regard.data.pictures.shapes.scene import COLOURS, Scene
from regard.data.sources import Part

MOST_HELD_OUT = 2000


@final
class ShapesSource:
    """`num_pictures` for train, a tenth of it for valid and for test; a class is a shape, or a colour and a shape."""

    parts: tuple[Part, ...] = ("train", "valid", "test")

    def __init__(
        self, num_pictures: int, side: int, seed: int, classes: Literal["shape", "shape_and_colour"] = "shape"
    ) -> None:
        self.notes: list[str] = []
        self._classes = classes
        self.class_names = (
            SHAPES if classes == "shape" else tuple(f"{colour} {shape}" for shape in SHAPES for colour in COLOURS)
        )
        self._num_pictures, self._side, self._seed = num_pictures, side, seed

    def read(self, part: Part, report: PartReport) -> Labelled:
        count = self._num_pictures if part == "train" else max(1, min(MOST_HELD_OUT, self._num_pictures // 10))
        array = np.empty((count, self._side, self._side, 3), np.uint8)
        labels = np.empty(count, np.int64)
        known = {name: number for number, name in enumerate(self.class_names)}
        for place, scene in enumerate(generate(scene_numbers(count, self._seed, part), self._side)):
            array[place] = scene.picture
            labels[place] = known[self._name(scene)]
        report.pictures = count
        return Labelled(ArrayPictures(array), labels)

    def marks(self, labelled: Labelled) -> Sequence[bytes]:
        """A scene is known by its number."""
        return [number.tobytes() for number in scene_numbers(len(labelled), self._seed, "train")]

    def _name(self, scene: Scene) -> str:
        main = scene.main
        return main.shape if self._classes == "shape" else f"{main.colour} {main.shape}"
