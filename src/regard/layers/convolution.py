"""Convolutions with their norm, the two stems of residual networks, and how both start.

Every convolution and pooling below is padded such that a stride s turns n positions into ceil(n / s): `grid_axis` says
which positions of the picture are left.
"""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.axes import Grid


def convolution(
    inputs: int, outputs: int, size: int, *, stride: int = 1, groups: int = 1, bias: bool = False
) -> nn.Conv2d:
    """Padded such that only the stride changes height and width; `size` is odd."""
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, groups=groups, bias=bias)


class ConvNorm(nn.Module):
    """A convolution and batch norm, which takes the place of a bias."""

    def __init__(self, inputs: int, outputs: int, size: int, *, stride: int = 1) -> None:
        super().__init__()
        self.convolution = convolution(inputs, outputs, size, stride=stride)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, images: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs rows cols"]:
        return self.norm(self.convolution(images))


class ImageNetStem(nn.Module):
    """7 x 7 with stride 2, then the largest of 3 x 3 with stride 2 (He et al. 2016)."""

    stride = 4

    def __init__(self, channels: int, outputs: int) -> None:
        super().__init__()
        self.entry = ConvNorm(channels, outputs, 7, stride=2)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch outputs rows cols"]:
        return F.max_pool2d(F.relu(self.entry(images)), 3, stride=2, padding=1)


class SmallStem(nn.Module):
    """3 x 3 at full resolution, for pictures of about 32 x 32 (He et al. 2016, on CIFAR-10)."""

    stride = 1

    def __init__(self, channels: int, outputs: int) -> None:
        super().__init__()
        self.entry = ConvNorm(channels, outputs, 3)

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch outputs height width"]:
        return F.relu(self.entry(images))


STEMS: dict[str, type[ImageNetStem] | type[SmallStem]] = {"imagenet": ImageNetStem, "small": SmallStem}


def grid_axis(height: int, width: int, stride: int) -> Grid:
    """The positions that are left of a picture when every stride-th row and column is kept."""
    return Grid(-(-height // stride), -(-width // stride), height, width)


def initialise_convolutions(model: nn.Module) -> None:
    """Normal with the variance 2 / (outputs * area) that keeps the gradients' size through ReLU (He et al. 2015)."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
