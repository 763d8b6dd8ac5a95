"""Big Transfer, BiT (Kolesnikov et al. 2020): the ResNet that the vision Transformer was measured against (deck B).

    a ResNet of bottlenecks with norm and relu first, whose batch norm is replaced by two things that do not look at
    other pictures: group norm, and convolutions whose weights are standardised,
    w' = (w - mean(w)) / sqrt(var(w) + 1e-8)  over the inputs of each output channel

Named sizes say depth and width: 50x3 has three times the channels of 50x1. The stem pads its pooling with zeros, as the
published weights want it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.blocks.residual import stage
from regard.core.axes import Axis
from regard.core.classifier import ClassifierOutput
from regard.core.errors import ConfigError
from regard.core.models import ModelConfig, ModelEntry, models, sizes
from regard.layers.convolution import initialise_convolutions


class BiTConfig(ModelConfig):
    """Sizes of BiT."""

    kind: Literal["bit"] = "bit"
    width: int = 16
    """Channels of the stem and inside the first stage's bottlenecks; each later stage has twice as many."""
    num_blocks: tuple[int, ...] = (1, 1, 1)
    """Bottlenecks of each stage."""
    num_groups: int = 8
    """Groups of channels that are normalised together; they share every width evenly."""


class StandardisedConvolution(nn.Conv2d):
    """A convolution whose weights have mean 0 and variance 1 for each output channel."""

    def __init__(self, inputs: int, outputs: int, size: int, *, stride: int = 1) -> None:
        super().__init__(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)

    def forward(self, features: Float[Tensor, "batch inputs height wide"]) -> Float[Tensor, "batch outputs rows cols"]:
        deviation = self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)
        variance = deviation.square().mean(dim=(1, 2, 3), keepdim=True)
        return self._conv_forward(features, deviation * (variance + 1e-8).rsqrt(), None)


class BiTBottleneck(nn.Module):
    """Norm and relu before each of 1x1, 3x3 (with the stride) and 1x1."""

    expansion = 4

    def __init__(self, width: int, num_groups: int, inputs: int, stride: int) -> None:
        super().__init__()
        outputs = self.expansion * width
        self.reduce_norm = nn.GroupNorm(num_groups, inputs)
        self.reduce = StandardisedConvolution(inputs, width, 1)
        self.spatial_norm = nn.GroupNorm(num_groups, width)
        self.spatial = StandardisedConvolution(width, width, 3, stride=stride)
        self.expand_norm = nn.GroupNorm(num_groups, width)
        self.expand = StandardisedConvolution(width, outputs, 1)
        changes = stride != 1 or inputs != outputs
        self.shortcut = StandardisedConvolution(inputs, outputs, 1, stride=stride) if changes else None

    def forward(self, features: Float[Tensor, "batch inputs height wide"]) -> Float[Tensor, "batch outputs rows cols"]:
        activated = F.relu(self.reduce_norm(features))
        hidden = F.relu(self.spatial_norm(self.reduce(activated)))
        hidden = F.relu(self.expand_norm(self.spatial(hidden)))
        return self.expand(hidden) + (features if self.shortcut is None else self.shortcut(activated))


class BiT(nn.Module):
    """ResNet with group norm and standardised weights"""

    def __init__(self, config: BiTConfig, num_classes: int, channels: int) -> None:
        super().__init__()
        if config.width % config.num_groups:
            raise ConfigError(f"A width of {config.width} cannot be shared evenly by {config.num_groups} groups.")
        self.stem = StandardisedConvolution(channels, config.width, 7, stride=2)
        self.stages = nn.ModuleList()
        inputs = config.width
        for number, num_blocks in enumerate(config.num_blocks):
            width = config.width * 2**number
            outputs = BiTBottleneck.expansion * width
            make = partial(BiTBottleneck, width, config.num_groups)
            self.stages.append(stage(make, num_blocks, 2 if number else 1, inputs, outputs))
            inputs = outputs
        self.norm = nn.GroupNorm(config.num_groups, inputs)
        self.head = nn.Linear(inputs, num_classes)
        initialise_convolutions(self)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        features = F.max_pool2d(F.pad(self.stem(images), (1, 1, 1, 1)), 3, stride=2)
        for blocks in self.stages:
            features = blocks(features)
        pooled = F.relu(self.norm(features)).mean(dim=(2, 3))
        return ClassifierOutput(self.head(pooled), pooled)

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """None: there is no attention."""
        return {}


_BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def _size(depth: int, widening: int) -> Callable[[], BiTConfig]:
    def size() -> BiTConfig:
        """A published size of BiT."""
        return BiTConfig(width=64 * widening, num_blocks=_BLOCKS[depth], num_groups=32)

    return size


for _depth, _widening in ((50, 1), (50, 3), (101, 1), (101, 3), (152, 2), (152, 4)):
    sizes.register(f"bit_{_depth}x{_widening}")(_size(_depth, _widening))

models.register("bit")(ModelEntry(BiTConfig, BiT, "Kolesnikov et al. 2020", "classifier"))
