"""ResNets without spatial convolutions: stand-alone self-attention (Ramachandran et al. 2019; deck A, eq. 2 and 3).

    stem, then the stages of ResNet's bottlenecks 1x1, attention in a 7x7 window, 1x1; mean over positions, linear

The stem is attention too: within blocks of 4 x 4 pixels, with values that know their place (`attention.stand_alone`),
then batch norm and the largest of each 4 x 4. Or it is ResNet's convolution, which the paper finds better. Where a
stage begins, an average over 2 x 2 positions behind the attention halves the resolution. ResNet-50 so has 18.0 M
parameters in the place of 25.6 M.

What the paper leaves open is in `attention.stand_alone`; the sizes for CIFAR are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.stand_alone import SpatiallyAwareAttention, StandAloneSelfAttention
from regard.blocks.residual import Bottleneck, stage
from regard.core.axes import Axis
from regard.core.classifier import ClassifierOutput
from regard.core.models import ModelConfig, ModelEntry, models, sizes
from regard.core.tap import taps
from regard.layers.convolution import STEMS, grid_axis, initialise_convolutions


class StandAloneConfig(ModelConfig):
    """Sizes of a ResNet whose spatial convolutions are attention."""

    kind: Literal["stand_alone"] = "stand_alone"
    width: int = 16
    """Channels inside the first stage's bottlenecks; each later stage has twice as many."""
    num_blocks: tuple[int, ...] = (1, 1, 1)
    """Bottlenecks of each stage."""
    num_heads: int = 4
    """Heads of every attention; they share its channels evenly."""
    window_size: int = 7
    """Rows and columns around a position that it attends to."""
    stem: Literal["small", "imagenet", "attention"] = "small"
    """Convolution at full resolution, ResNet's convolution to a quarter of it, or attention in blocks to a quarter."""
    block_size: int = 4
    """Rows and columns of the attention stem's blocks."""
    num_mixtures: int = 4
    """Value matrices that the attention stem mixes."""


class AttentionStem(nn.Module):
    """Attention within blocks of pixels, batch norm, and the largest of each block."""

    def __init__(self, channels: int, config: StandAloneConfig) -> None:
        super().__init__()
        self.stride = config.block_size
        self.attention = SpatiallyAwareAttention(
            channels, config.width, config.num_heads, config.block_size, config.num_mixtures, axis="pixels"
        )
        self.norm = nn.BatchNorm2d(config.width)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch outputs rows cols"]:
        return F.max_pool2d(self.norm(self.attention(images)), self.stride, ceil_mode=True)


class StandAloneNetwork(nn.Module):
    """ResNet with self-attention in the place of its spatial convolutions"""

    def __init__(self, config: StandAloneConfig, num_classes: int, channels: int) -> None:
        super().__init__()
        self.stem: nn.Module
        if config.stem == "attention":
            self.stem, self.stem_stride = AttentionStem(channels, config), config.block_size
        else:
            self.stem, self.stem_stride = STEMS[config.stem](channels, config.width), STEMS[config.stem].stride
        expansion = Bottleneck.expansion
        self.stages = nn.ModuleList()
        inputs = config.width
        for number, num_blocks in enumerate(config.num_blocks, start=1):
            width = config.width * 2 ** (number - 1)
            make = partial(_bottleneck, config, number, width)
            self.stages.append(stage(make, num_blocks, 1 if number == 1 else 2, inputs, width * expansion))
            inputs = width * expansion
        self.head = nn.Linear(inputs, num_classes)
        initialise_convolutions(self)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        features = self.stem(images)
        for blocks in self.stages:
            features = blocks(features)
        pooled = features.mean(dim=(2, 3))
        return ClassifierOutput(self.head(pooled), pooled)

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """`stage_1` and so on, positions at a stage's resolution; `pixels` where the stem is attention."""
        strides = {f"stage_{number + 1}": self.stem_stride * 2**number for number in range(len(self.stages))}
        used = {tap.queries for tap in taps(self).values()}
        return {role: grid_axis(height, width, strides.get(role, 1)) for role in sorted(used)}


def _bottleneck(config: StandAloneConfig, number: int, width: int, inputs: int, stride: int) -> Bottleneck:
    """A block of stage `number`. Before its average a first block still attends at the resolution it comes from."""
    axis = f"stage_{number - 1 if stride > 1 else number}"

    def attention(width: int, stride: int) -> nn.Module:
        return StandAloneSelfAttention(width, config.num_heads, config.window_size, stride=stride, axis=axis)

    return Bottleneck(inputs, width, stride, spatial=attention)


@sizes.register("sasa_resnet20_cifar")
def sasa_resnet20_cifar() -> StandAloneConfig:
    """20 layers for pictures of 32 x 32, with a convolution first; ours."""
    return StandAloneConfig(num_blocks=(2, 2, 2), window_size=5)


@sizes.register("sasa_resnet29_cifar")
def sasa_resnet29_cifar() -> StandAloneConfig:
    """29 layers for pictures of 32 x 32, with attention within blocks of 2 x 2 pixels first; ours."""
    return StandAloneConfig(width=32, num_blocks=(3, 3, 3), num_heads=8, stem="attention", block_size=2)


def _imagenet(*num_blocks: int) -> StandAloneConfig:
    return StandAloneConfig(width=64, num_blocks=num_blocks, num_heads=8, stem="attention")


@sizes.register("sasa_resnet26")
def sasa_resnet26() -> StandAloneConfig:
    """26 layers for ImageNet, attention throughout: 10.3 M parameters."""
    return _imagenet(1, 2, 4, 1)


@sizes.register("sasa_resnet38")
def sasa_resnet38() -> StandAloneConfig:
    """38 layers for ImageNet, attention throughout: 14.1 M parameters."""
    return _imagenet(2, 3, 5, 2)


@sizes.register("sasa_resnet50")
def sasa_resnet50() -> StandAloneConfig:
    """50 layers for ImageNet, attention throughout: 18.0 M parameters."""
    return _imagenet(3, 4, 6, 3)


@sizes.register("sasa_resnet50_convolution_stem")
def sasa_resnet50_convolution_stem() -> StandAloneConfig:
    """50 layers for ImageNet with ResNet's convolution first, the paper's most accurate: 18.0 M parameters."""
    return _imagenet(3, 4, 6, 3).model_copy(update={"stem": "imagenet"})


models.register("stand_alone")(
    ModelEntry(StandAloneConfig, StandAloneNetwork, "Ramachandran et al. 2019", "classifier")
)
