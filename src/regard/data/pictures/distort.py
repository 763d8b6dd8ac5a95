"""Pictures put somewhere on a larger canvas, turned and scaled, among scraps of others: what attention is to undo.

| name | canvas | what is drawn for each picture |
| --- | --- | --- |
| rotated_scaled | 1.5 times the size | an angle up to 45 degrees, a scale from 0.7 to 1.2, a place |
| translated | 60 / 28 times the size | a place |
| translated_cluttered | 60 / 28 times the size | a place, and four scraps of other pictures, each anywhere |

The first is that of Jaderberg et al. 2015 (their RTS), the others are those of Mnih et al. 2014.

In validation and test every picture is distorted once and for all, by its number; in training anew in each epoch, by
draws that belong to picture and epoch (`draws.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int64, UInt8
from torch import Tensor

from regard.data.pictures.draws import Draws
from regard.data.pictures.reading import ArrayPictures

Distortion = Literal["none", "rotated_scaled", "translated", "translated_cluttered"]

MOST_DEGREES = 45.0
SCALES = (0.7, 1.2)
NUM_SCRAPS = 4
CANVAS = {"rotated_scaled": 42 / 28, "translated": 60 / 28, "translated_cluttered": 60 / 28}
"""Side of the canvas, as a multiple of the picture's: those of the papers for digits of 28 pixels."""
SCRAP = 8 / 28
"""Side of a scrap likewise."""

Canvases = UInt8[np.ndarray, "some height width channels"]


@final
@dataclass(frozen=True)
class DistortedPictures:
    """Pictures seen through a distortion; `numbers` are what each is known by, whichever are selected."""

    pictures: ArrayPictures
    distortion: Distortion
    seed: int
    numbers: Int64[np.ndarray, " pictures"]

    @classmethod
    def of(cls, pictures: ArrayPictures, distortion: Distortion, seed: int) -> DistortedPictures:
        return cls(pictures, distortion, seed, np.arange(len(pictures)))

    @property
    def shape(self) -> tuple[int, int, int]:
        height, width, channels = self.pictures.shape
        return round(CANVAS[self.distortion] * height), round(CANVAS[self.distortion] * width), channels

    def __len__(self) -> int:
        return len(self.pictures)

    def read(self, numbers: Int64[np.ndarray, " some"]) -> Canvases:
        """Always the same for a number."""
        return self.vary(numbers, Draws(self.seed, self.numbers[numbers]))

    def vary(self, numbers: Int64[np.ndarray, " some"], draws: Draws) -> Canvases:
        """As these draws have it."""
        pictures = self.pictures.read(numbers)
        if self.distortion == "rotated_scaled":
            return turned(pictures, self.shape[0], self.shape[1], draws)
        canvases = np.zeros((len(numbers), *self.shape), np.uint8)
        if self.distortion == "translated_cluttered":
            self._scatter_scraps(canvases, draws)
        return placed(pictures, canvases, draws)

    def select(self, numbers: Int64[np.ndarray, " some"]) -> DistortedPictures:
        return DistortedPictures(self.pictures.select(numbers), self.distortion, self.seed, self.numbers[numbers])

    def _scatter_scraps(self, canvases: Canvases, draws: Draws) -> None:
        """Squares out of any pictures of the part; where two things meet, the brighter pixel is seen."""
        height, width, _ = self.pictures.shape
        rows, columns = max(1, round(SCRAP * height)), max(1, round(SCRAP * width))
        for _ in range(NUM_SCRAPS):
            others = self.pictures.read(draws.below(len(self.pictures)))
            top, left = draws.below(height - rows + 1), draws.below(width - columns + 1)
            scraps = np.stack(
                [other[t : t + rows, le : le + columns] for other, t, le in zip(others, top, left, strict=True)]
            )
            placed(scraps, canvases, draws)


def placed(pictures: UInt8[np.ndarray, "some _ _ channels"], canvases: Canvases, draws: Draws) -> Canvases:
    """Puts each picture wholly into its canvas, anywhere; the brighter pixel is seen."""
    height, width = pictures.shape[1:3]
    tops = draws.below(canvases.shape[1] - height + 1)
    lefts = draws.below(canvases.shape[2] - width + 1)
    for picture, canvas, top, left in zip(pictures, canvases, tops, lefts, strict=True):
        window = canvas[top : top + height, left : left + width]
        np.maximum(window, picture, out=window)
    return canvases


def turned(
    pictures: UInt8[np.ndarray, "some _ _ channels"], rows: int, columns: int, draws: Draws
) -> UInt8[np.ndarray, "some {rows} {columns} channels"]:
    """Each picture turned about its middle, scaled, and put where it fits upright, by bilinear samples."""
    count, height, width, _ = pictures.shape
    angle = np.deg2rad(MOST_DEGREES) * (2 * draws.uniform() - 1)
    scale = SCALES[0] + (SCALES[1] - SCALES[0]) * draws.uniform()
    # How far the middle may be from the canvas's middle, in pixels, so that an upright picture of that scale fits.
    down = (2 * draws.uniform() - 1) * np.maximum(0.0, rows - scale * height) / 2
    right = (2 * draws.uniform() - 1) * np.maximum(0.0, columns - scale * width) / 2
    cosine, sine = np.cos(angle) / scale, np.sin(angle) / scale
    # From a place of the canvas (in halves of its sides) to the place of the picture that is seen there.
    theta = np.zeros((count, 2, 3))
    theta[:, 0, 0], theta[:, 0, 1] = cosine * columns / width, sine * rows / width
    theta[:, 1, 0], theta[:, 1, 1] = -sine * columns / height, cosine * rows / height
    theta[:, 0, 2] = -(cosine * right + sine * down) * 2 / width
    theta[:, 1, 2] = -(-sine * right + cosine * down) * 2 / height
    grid = F.affine_grid(_tensor(theta), [count, 1, rows, columns], align_corners=False)
    sampled = F.grid_sample(_tensor(pictures.transpose(0, 3, 1, 2)), grid, align_corners=False)
    return sampled.round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array.astype(np.float32))
