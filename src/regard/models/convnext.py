"""ConvNeXt (Liu et al. 2022), "A ConvNet for the 2020s": ResNet with the habits of Swin (deck B's rivals).

    stem   patches of 4 x 4, LayerNorm
    stage  (behind the first: LayerNorm, 2x2 convolution with stride 2), then blocks
           Y = X + gamma * W_2 gelu(W_1 LayerNorm(depthwise 7x7 (X)))
    logits = W LayerNorm(mean(Y))

gamma is one number a channel, small at the start. In training a block is left out for some pictures
(`depth_rate`, growing from block to block).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.axes import Axis
from regard.core.classifier import ClassifierOutput
from regard.core.models import ModelConfig, ModelEntry, models, sizes
from regard.layers.convolution import convolution
from regard.layers.feed_forward import FeedForward
from regard.layers.stochastic_depth import depth_rates, drop_branch

_EPSILON = 1e-6
"""In every layer norm, as in the paper's code."""


class ConvNeXtConfig(ModelConfig):
    """Sizes of ConvNeXt."""

    kind: Literal["convnext"] = "convnext"
    width: int = 32
    """Channels of the first stage; each later stage has twice as many."""
    num_blocks: tuple[int, ...] = (2, 2, 2)
    """Blocks of each stage."""
    patch_size: int = 2
    """Height and width of the patches that the stem cuts."""
    kernel_size: int = 7
    """Rows and columns of the depthwise convolutions; odd."""
    initial_scale: float = 1e-6
    """What gamma starts from."""
    depth_rate: float = 0.0
    """How often the last block is left out in training; earlier ones less."""


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of each position of a feature map."""

    def forward(self, features: Float[Tensor, "batch width rows columns"]) -> Float[Tensor, "batch width rows columns"]:
        return super().forward(features.movedim(1, -1)).movedim(-1, 1)


class ConvNeXtBlock(nn.Module):
    """Mixes positions, each channel alone, then channels."""

    def __init__(self, width: int, config: ConvNeXtConfig, depth_rate: float) -> None:
        super().__init__()
        self.depthwise = convolution(width, width, config.kernel_size, groups=width, bias=True)
        self.norm = nn.LayerNorm(width, eps=_EPSILON)
        self.feed_forward = FeedForward(width, 4 * width, "gelu", 0.0)
        self.scale = nn.Parameter(torch.full((width,), config.initial_scale))
        self.depth_rate = depth_rate

    def forward(self, features: Float[Tensor, "batch width rows columns"]) -> Float[Tensor, "batch width rows columns"]:
        branch = self.depthwise(features).movedim(1, -1)
        branch = self.scale * self.feed_forward(self.norm(branch))
        return features + drop_branch(branch.movedim(-1, 1), self.depth_rate, self.training)


class ConvNeXt(nn.Module):
    """Depthwise convolutions and position-wise networks in stages, without attention"""

    def __init__(self, config: ConvNeXtConfig, num_classes: int, channels: int) -> None:
        super().__init__()
        rates = iter(depth_rates(config.depth_rate, sum(config.num_blocks)))
        self.reductions, self.stages = nn.ModuleList(), nn.ModuleList()
        width = config.width
        patches = nn.Conv2d(channels, width, config.patch_size, stride=config.patch_size)
        self.reductions.append(nn.Sequential(patches, ChannelNorm(width, eps=_EPSILON)))
        for number, num_blocks in enumerate(config.num_blocks):
            if number:
                halves = nn.Conv2d(width, 2 * width, 2, stride=2)
                self.reductions.append(nn.Sequential(ChannelNorm(width, eps=_EPSILON), halves))
                width = 2 * width
            self.stages.append(nn.Sequential(*(ConvNeXtBlock(width, config, next(rates)) for _ in range(num_blocks))))
        self.norm = nn.LayerNorm(width, eps=_EPSILON)
        self.head = nn.Linear(width, num_classes)
        self._initialise()

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        features = images
        for reduction, blocks in zip(self.reductions, self.stages, strict=True):
            features = blocks(reduction(features))
        pooled = self.norm(features.mean(dim=(2, 3)))
        return ClassifierOutput(self.head(pooled), pooled)

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """None: there is no attention."""
        return {}

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)


@sizes.register("convnext_cifar")
def convnext_cifar() -> ConvNeXtConfig:
    """Small, for pictures of 32 x 32; ours."""
    return ConvNeXtConfig(width=48, num_blocks=(2, 2, 2))


def _imagenet(width: int, *num_blocks: int) -> ConvNeXtConfig:
    return ConvNeXtConfig(width=width, num_blocks=num_blocks, patch_size=4)


@sizes.register("convnext_tiny")
def convnext_tiny() -> ConvNeXtConfig:
    """28.6 M parameters."""
    return _imagenet(96, 3, 3, 9, 3)


@sizes.register("convnext_small")
def convnext_small() -> ConvNeXtConfig:
    """50.2 M parameters."""
    return _imagenet(96, 3, 3, 27, 3)


@sizes.register("convnext_base")
def convnext_base() -> ConvNeXtConfig:
    """88.6 M parameters."""
    return _imagenet(128, 3, 3, 27, 3)


@sizes.register("convnext_large")
def convnext_large() -> ConvNeXtConfig:
    """197.8 M parameters."""
    return _imagenet(192, 3, 3, 27, 3)


models.register("convnext")(ModelEntry(ConvNeXtConfig, ConvNeXt, "Liu et al. 2022", "classifier"))
