"""Variations of training pictures, for a whole batch at once; every picture is varied by its own draws alone.

Before normalisation, on bytes: a window of the padded picture, mirroring, RandAugment (`rand_augment.py`). After it:
random erasing, then mixup or CutMix, which make targets soft. A picture's partner is any training picture, seen through
draws of its own, and not a neighbour in the batch: so a picture comes out the same however batches are dealt out.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Float64, Int64, UInt8
from torch import Tensor

from regard.data.pictures.config import PictureConfig
from regard.data.pictures.draws import Draws
from regard.data.pictures.rand_augment import rand_augment

Bytes = UInt8[np.ndarray, "batch channels height width"]
Images = Float[Tensor, "batch channels height width"]
Window = Bool[np.ndarray, "batch height width"]

ERASED_AREA = (0.02, 0.33)
"""Random erasing: least and greatest share of the picture."""

ERASED_ASPECT = (0.3, 3.3)


@final
@dataclass(frozen=True)
class Augmentation:
    """What is done to training pictures; the fields are those of `PictureConfig`, decided."""

    crop_padding: int = 0
    flip: bool = False
    rand_augment_ops: int = 0
    rand_augment_magnitude: float = 9.0
    erasing_rate: float = 0.0
    mixup_alpha: float = 0.0
    cutmix_alpha: float = 0.0

    @classmethod
    def of(cls, config: PictureConfig) -> Augmentation:
        return cls(
            config.padding,
            config.flips,
            config.rand_augment_ops,
            config.rand_augment_magnitude,
            config.erasing_rate,
            config.mixup_alpha,
            config.cutmix_alpha,
        )

    @property
    def mixes(self) -> bool:
        """Whether targets are soft."""
        return self.mixup_alpha > 0 or self.cutmix_alpha > 0

    def view(self, pictures: UInt8[np.ndarray, "batch height width channels"], draws: Draws) -> Bytes:
        """Everything that is done to the bytes of one picture."""
        channels_first = pictures.transpose(0, 3, 1, 2)
        if self.crop_padding:
            span = 2 * self.crop_padding + 1
            channels_first = cropped(channels_first, self.crop_padding, draws.below(span), draws.below(span))
        bytes_ = np.array(channels_first, order="C")
        if self.flip:
            mirrored = draws.uniform() < 0.5
            bytes_[mirrored] = bytes_[mirrored, :, :, ::-1]
        for _ in range(self.rand_augment_ops):
            bytes_ = rand_augment(bytes_, self.rand_augment_magnitude, draws)
        return bytes_

    def erase(self, images: Images, draws: Draws) -> Images:
        """Random erasing (Zhong et al., 2017), with the mean colour, which is 0."""
        if not self.erasing_rate:
            return images
        chosen = draws.uniform() < self.erasing_rate
        window = erased_window(images.shape[-2], images.shape[-1], draws) & chosen[:, None, None]
        return images.masked_fill(torch.from_numpy(window)[:, None], 0)

    def mix(self, images: Images, others: Images, draws: Draws) -> tuple[Images, Float32[np.ndarray, " batch"]]:
        """Each picture with its partner by mixup or by CutMix, and the weight of the picture's own class."""
        coin, share = draws.uniform(), draws.uniform()
        place = draws.fork()
        if not self.cutmix_alpha:
            return mixed(images, others, beta(self.mixup_alpha, share))
        collage, collage_weight = cut(images, others, beta(self.cutmix_alpha, share), place)
        if not self.mixup_alpha:
            return collage, collage_weight
        mixture, mixture_weight = mixed(images, others, beta(self.mixup_alpha, share))
        cuts = coin < 0.5
        chosen = torch.where(torch.from_numpy(cuts)[:, None, None, None], collage, mixture)
        return chosen, np.where(cuts, collage_weight, mixture_weight)


def cropped(
    pictures: UInt8[np.ndarray, "batch channels height width"],
    padding: int,
    top: Int64[np.ndarray, " batch"],
    left: Int64[np.ndarray, " batch"],
) -> UInt8[np.ndarray, "batch channels height width"]:
    """From each picture with a black rim of `padding` the window of its old size that starts at `top`, `left`."""
    batch, channels, height, width = pictures.shape
    padded = np.zeros((batch, channels, height + 2 * padding, width + 2 * padding), np.uint8)
    padded[:, :, padding : padding + height, padding : padding + width] = pictures
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), axis=(2, 3))
    return windows[np.arange(batch), :, top, left]


def erased_window(height: int, width: int, draws: Draws) -> Window:
    """A rectangle of a uniform share of the area and a log-uniform aspect, wholly inside.

    The paper draws again until a rectangle fits; here one that does not is cut to the picture's size.
    """
    low, high = ERASED_AREA
    area = (low + (high - low) * draws.uniform()) * height * width
    low, high = np.log(ERASED_ASPECT)
    aspect = np.exp(low + (high - low) * draws.uniform())
    rows = np.sqrt(area * aspect).round().astype(np.int64).clip(1, height)
    columns = np.sqrt(area / aspect).round().astype(np.int64).clip(1, width)
    top = (draws.uniform() * (height - rows + 1)).astype(np.int64)
    left = (draws.uniform() * (width - columns + 1)).astype(np.int64)
    return rectangles(height, width, top, top + rows, left, left + columns)


def mixed(
    images: Images, others: Images, kept: Float64[np.ndarray, " batch"]
) -> tuple[Images, Float32[np.ndarray, " batch"]]:
    """Mixup (Zhang et al., 2018): kept * image + (1 - kept) * other, and the weight of the picture's own class."""
    weight = torch.from_numpy(kept.astype(np.float32))
    return torch.lerp(others, images, weight[:, None, None, None]), weight.numpy()


def cut(
    images: Images, others: Images, kept: Float64[np.ndarray, " batch"], draws: Draws
) -> tuple[Images, Float32[np.ndarray, " batch"]]:
    """CutMix (Yun et al., 2019): a rectangle of the other picture, of its area's (1 - kept) and of its aspect, around
    any pixel; where it sticks out it is cut off, and the weight of the own class is the share of pixels that stay."""
    height, width = images.shape[-2:]
    side = np.sqrt(1 - kept)
    rows, columns = ((length * side).astype(np.int64) for length in (height, width))
    top, left = draws.below(height) - rows // 2, draws.below(width) - columns // 2
    window = rectangles(height, width, top, top + rows, left, left + columns)
    weight = 1 - window.mean(axis=(1, 2))
    return torch.where(torch.from_numpy(window)[:, None], others, images), weight.astype(np.float32)


def rectangles(
    height: int,
    width: int,
    top: Int64[np.ndarray, " batch"],
    bottom: Int64[np.ndarray, " batch"],
    left: Int64[np.ndarray, " batch"],
    right: Int64[np.ndarray, " batch"],
) -> Bool[np.ndarray, "batch {height} {width}"]:
    """True from `top` to before `bottom`, and from `left` to before `right`."""
    rows, columns = np.arange(height), np.arange(width)
    inside_rows = (rows >= top[:, None]) & (rows < bottom[:, None])
    inside_columns = (columns >= left[:, None]) & (columns < right[:, None])
    return inside_rows[:, :, None] & inside_columns[:, None, :]


def beta(alpha: float, uniform: Float64[np.ndarray, " some"]) -> Float64[np.ndarray, " some"]:
    """Quantiles of Beta(alpha, alpha), so that one uniform draw makes one weight."""
    lower = np.minimum(uniform, 1 - uniform)
    levels, powers = _half_of_beta(alpha)
    quantile = np.interp(lower, levels, powers) ** (1 / min(alpha, 1.0))
    return np.where(uniform < 0.5, quantile, 1 - quantile)


@functools.cache
def _half_of_beta(alpha: float) -> tuple[Float64[np.ndarray, " points"], Float64[np.ndarray, " points"]]:
    """The distribution function up to its middle, over v = x**p with p = min(alpha, 1).

    In v the density x**(alpha - 1) * (1 - x)**(alpha - 1) dx is x**(alpha - p) * (1 - x)**(alpha - 1) dv / p, which has
    no pole at 0, so that the trapezoid rule is good enough.
    """
    power = min(alpha, 1.0)
    powers = np.linspace(0, 0.5**power, 8193)
    values = powers ** (1 / power)
    density = values ** (alpha - power) * (1 - values) ** (alpha - 1)
    sums = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return sums / sums[-1] / 2, powers
