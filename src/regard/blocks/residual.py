"""Residual blocks (He et al. 2016): y = relu(f(x) + x), where f keeps or changes resolution and number of channels.

| block | f | shortcut where the shape changes |
| --- | --- | --- |
| `BasicBlock` | 3x3, 3x3 | 1x1 with the stride, or every stride-th position with zeros as further channels |
| `Bottleneck` | 1x1, spatial, 1x1 | 1x1 with the stride |
| `PreactivationBlock` | norm and relu before each 3x3, none after the sum (2016b) | 1x1 on the activated input |

What stands in the middle of a bottleneck is handed in: a 3x3 convolution, or the local attention that replaces it. The
stride is there and not in the first 1x1, as in torchvision (the paper has it one layer earlier).
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.dropout import dropout
from regard.layers.convolution import ConvNorm, convolution

Spatial = Callable[[int, int], nn.Module]
"""From a width and a stride to a layer that mixes neighbouring positions of so many channels."""


def convolution3(width: int, stride: int) -> nn.Module:
    return convolution(width, width, 3, stride=stride)


class PaddedShortcut(nn.Module):
    """Every stride-th position, with zeros as further channels: a shortcut without parameters."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.added = outputs - inputs
        self.stride = stride

    def forward(self, features: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs rows cols"]:
        return F.pad(features[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.added))


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int, *, padded_shortcut: bool = False) -> None:
        super().__init__()
        self.first = ConvNorm(inputs, width, 3, stride=stride)
        self.second = ConvNorm(width, width, 3)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != width:
            padded = padded_shortcut and inputs <= width
            self.shortcut = (
                PaddedShortcut(inputs, width, stride) if padded else ConvNorm(inputs, width, 1, stride=stride)
            )

    def forward(self, features: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs rows cols"]:
        return F.relu(self.second(F.relu(self.first(features))) + self.shortcut(features))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(
        self, inputs: int, width: int, stride: int, *, outputs: int | None = None, spatial: Spatial = convolution3
    ) -> None:
        super().__init__()
        outputs = outputs or self.expansion * width
        self.reduce = ConvNorm(inputs, width, 1)
        self.spatial = spatial(width, stride)
        self.spatial_norm = nn.BatchNorm2d(width)
        self.expand = ConvNorm(width, outputs, 1)
        changes = stride != 1 or inputs != outputs
        self.shortcut = ConvNorm(inputs, outputs, 1, stride=stride) if changes else nn.Identity()

    def forward(self, features: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs rows cols"]:
        hidden = F.relu(self.reduce(features))
        hidden = F.relu(self.spatial_norm(self.spatial(hidden)))
        return F.relu(self.expand(hidden) + self.shortcut(features))


class PreactivationBlock(nn.Module):
    """Norm and relu come first, so that the sum itself runs through the network unchanged."""

    def __init__(self, inputs: int, width: int, stride: int, *, dropout_rate: float = 0.0) -> None:
        super().__init__()
        self.first_norm = nn.BatchNorm2d(inputs)
        self.first = convolution(inputs, width, 3, stride=stride)
        self.second_norm = nn.BatchNorm2d(width)
        self.second = convolution(width, width, 3)
        changes = stride != 1 or inputs != width
        self.shortcut = convolution(inputs, width, 1, stride=stride) if changes else None
        self.dropout_rate = dropout_rate

    def forward(self, features: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs rows cols"]:
        activated = F.relu(self.first_norm(features))
        hidden = F.relu(self.second_norm(self.first(activated)))
        hidden = self.second(dropout(hidden, self.dropout_rate, self.training))
        return hidden + (features if self.shortcut is None else self.shortcut(activated))


def stage(make: Callable[[int, int], nn.Module], num_blocks: int, stride: int, inputs: int, outputs: int) -> nn.Module:
    """Blocks in a row, `make(inputs, stride)` each: the first changes resolution and channels."""
    first = make(inputs, stride)
    return nn.Sequential(first, *(make(outputs, 1) for _ in range(num_blocks - 1)))
