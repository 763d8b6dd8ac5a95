"""What a model must know of the pictures it reads: their size, their channels, how they are normalised, their classes.

It is made from the training pictures once, and stays with the model: whatever it is shown later is brought into this
form. As a tokenizer is to text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.core.errors import CheckpointError
from regard.data.pictures.decode import fitted


@dataclass(frozen=True)
class PictureForm:
    """`mean` and `std` of each channel are of values from 0 to 1."""

    height: int
    width: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    class_names: tuple[str, ...]

    @property
    def channels(self) -> int:
        return len(self.mean)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    def fit(self, picture: UInt8[np.ndarray, "_ _ 3"]) -> UInt8[np.ndarray, "height width channels"]:
        """A decoded picture of any size, in this form's size and channels."""
        return fitted(picture, self.height, self.width, self.channels)

    def normalise(
        self, pictures: UInt8[np.ndarray, "batch channels height width"]
    ) -> Float[Tensor, "batch channels height width"]:
        """(value / 255 - mean) / std, as a model reads it."""
        std, mean = np.array(self.std), np.array(self.mean)
        scale, shift = (1 / (255 * std)).astype(np.float32), (-mean / std).astype(np.float32)
        floats = pictures.astype(np.float32)
        np.multiply(floats, scale[:, None, None], out=floats)
        np.add(floats, shift[:, None, None], out=floats)
        return torch.from_numpy(floats)

    def restore(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> UInt8[np.ndarray, "batch height width channels"]:
        """The inverse of `normalise`, for drawing."""
        std, mean = (torch.tensor(values)[:, None, None] for values in (self.std, self.mean))
        pixels = ((images.detach().cpu().float() * std + mean) * 255).round().clamp(0, 255).to(torch.uint8)
        return pixels.permute(0, 2, 3, 1).contiguous().numpy()

    def to_json(self) -> dict[str, Any]:
        return {
            "height": self.height,
            "width": self.width,
            "mean": list(self.mean),
            "std": list(self.std),
            "class_names": list(self.class_names),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> PictureForm:
        try:
            mean, std = (tuple(float(number) for number in value[name]) for name in ("mean", "std"))
            names = tuple(str(name) for name in value["class_names"])
            form = cls(int(value["height"]), int(value["width"]), mean, std, names)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"The form of the pictures cannot be read: {error!r}.") from error
        if len(mean) != len(std) or len(mean) not in (1, 3) or min(std) <= 0 or min(form.height, form.width) < 1:
            raise CheckpointError(f"This form of pictures makes no sense: {value!r}.")
        return form
