"""A checkpoint of another library as a model of ours, with what its pictures have to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from regard.core.models import ModelConfig, models

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and standard deviation of the red, green and blue of ImageNet, by which most were trained."""

READS_PICTURES = (
    "patches.projection.weight",
    "patches.convolution.weight",
    "patches.weight",
    "stem.entry.convolution.weight",
    "stem.weight",
    "reductions.0.0.weight",
)
"""The names that the first layer has in our models; its second axis are the channels of a picture."""


@dataclass(frozen=True)
class Preparation:
    """How pictures were prepared for a model: size in pixels, mean and standard deviation of values from 0 to 1."""

    height: int
    width: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def usual(cls, size: int, channels: int) -> Preparation:
        """For a checkpoint that does not say: ImageNet's colours, or the middle of the range for other channels."""
        mean, std = IMAGENET if channels == 3 else ((0.5,) * channels, (0.5,) * channels)
        return cls(size, size, mean, std)


@dataclass(frozen=True)
class Checkpoint:
    """`tensors` are under our names; `origin` says whose they were."""

    origin: str
    config: ModelConfig
    tensors: Mapping[str, Tensor]
    preparation: Preparation
    class_names: tuple[str, ...]

    @property
    def num_classes(self) -> int:
        return classes_of(self.tensors)

    @property
    def channels(self) -> int:
        return channels_of(self.tensors)

    def build(self) -> nn.Module:
        """The model in evaluation."""
        model: nn.Module = models[self.config.kind].build(self.config, self.num_classes, self.channels)
        model.load_state_dict(dict(self.tensors))
        return model.eval()


def classes_of(tensors: Mapping[str, Tensor]) -> int:
    return len(tensors["head.weight"])


def channels_of(tensors: Mapping[str, Tensor]) -> int:
    return next(tensors[name].shape[1] for name in READS_PICTURES if name in tensors)


def names_of(labels: Any, num_classes: int) -> tuple[str, ...]:
    """Names of the classes from a list or from a mapping of numbers; "class 7" where there is none for all of them."""
    if isinstance(labels, Mapping):
        by_number = {str(number): name for number, name in labels.items()}
        labels = [by_number.get(str(number)) for number in range(num_classes)]
    if (
        isinstance(labels, list | tuple)
        and len(labels) == num_classes
        and all(isinstance(name, str) for name in labels)
    ):
        return tuple(labels)
    return tuple(f"class {number}" for number in range(num_classes))
