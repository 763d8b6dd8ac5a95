"""Local Relation Network (Hu, Zhang, Xie and Lin 2019): ResNet with local relation layers throughout (deck C's table).

    res1  1x1 to 64 channels, 7x7 local relation with stride 2, 3x3 pooling with stride 2
    res2..5  bottlenecks 1x1, 7x7 local relation, 1x1 with inner widths 100, 200, 400, 800 and outer 256 to 2048
    mean over positions, linear

The layer and what the paper leaves open about it are in `attention.local_relation`. The inner widths are larger than
ResNet-50's 64 to 512, so that both networks cost the same.

| | the table | here | ResNet-50 in the table | here |
| --- | --- | --- | --- | --- |
| parameters | 23.3 M | 23.39 M | 25.5 M | 25.56 M |
| products at 224 x 224 | 4.3 G | 4.05 G | 4.3 G | 4.09 G |

The table cuts its parameters off and does not say which operations it counts; here every product of convolutions,
linear maps, scores and contexts is. Without the 1x1 convolution in each layer it would be 20.3 M and 3.5 G.

Open as well: m = 8 does not divide the inner width 100 (13 groups, of which the last has 4 channels), and whether the
first block of a stage has its stride in the local relation layer (here so, as torchvision's ResNet has it in its 3x3).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.local_relation import LocalRelation
from regard.blocks.residual import Bottleneck, stage
from regard.core.axes import Axis
from regard.core.classifier import ClassifierOutput
from regard.core.models import ModelConfig, ModelEntry, models, sizes
from regard.core.tap import taps
from regard.layers.convolution import ConvNorm, grid_axis, initialise_convolutions


class LRNetConfig(ModelConfig):
    """Sizes of a local relation network."""

    kind: Literal["lrnet"] = "lrnet"
    width: int = 16
    """Channels of the first stage's output, divided by 4; each later stage has twice as many."""
    inner_width: int = 24
    """Channels of the first stage's local relations; each later stage has twice as many."""
    num_blocks: tuple[int, ...] = (1, 1, 1)
    """Bottlenecks of each stage."""
    channels_per_group: int = 8
    """Channels that share one map of weights (m)."""
    window_size: int = 7
    """Rows and columns around a position that it attends to."""
    stem_stride: Literal[1, 2] = 1
    """Whether the first local relation halves the resolution, and a pooling after it once more."""


class LRNet(nn.Module):
    """ResNet with local relation layers in the place of its spatial convolutions"""

    def __init__(self, config: LRNetConfig, num_classes: int, channels: int) -> None:
        super().__init__()
        self.entry = ConvNorm(channels, config.width, 1)
        self.relation = _relation(config, config.width, config.stem_stride, "stem", "pixels")
        self.relation_norm = nn.BatchNorm2d(config.width)
        self.stem_stride = config.stem_stride
        self.stages = nn.ModuleList()
        inputs = config.width
        for number, num_blocks in enumerate(config.num_blocks, start=1):
            outputs = Bottleneck.expansion * config.width * 2 ** (number - 1)
            make = partial(_bottleneck, config, number, outputs)
            self.stages.append(stage(make, num_blocks, 1 if number == 1 else 2, inputs, outputs))
            inputs = outputs
        self.head = nn.Linear(inputs, num_classes)
        initialise_convolutions(self)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        features = F.relu(self.entry(images))
        features = F.relu(self.relation_norm(self.relation(features)))
        if self.stem_stride > 1:
            features = F.max_pool2d(features, 3, stride=2, padding=1)
        for blocks in self.stages:
            features = blocks(features)
        pooled = features.mean(dim=(2, 3))
        return ClassifierOutput(self.head(pooled), pooled)

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """`pixels`, `stem` (what the first layer looks from), and `stage_1` and so on, positions at its resolution."""
        strides = {"pixels": 1, "stem": self.stem_stride}
        strides |= {f"stage_{number + 1}": self.stem_stride**2 * 2**number for number in range(len(self.stages))}
        used = {role for tap in taps(self).values() for role in (tap.queries, tap.keys)}
        return {role: grid_axis(height, width, strides[role]) for role in sorted(used)}


def _relation(config: LRNetConfig, width: int, stride: int, queries: str, keys: str) -> LocalRelation:
    return LocalRelation(
        width, config.channels_per_group, config.window_size, stride=stride, queries=queries, keys=keys
    )


def _bottleneck(config: LRNetConfig, number: int, outputs: int, inputs: int, stride: int) -> Bottleneck:
    """A block of stage `number`; the first one looks from that stage's positions at those of the stage before."""
    queries, keys = f"stage_{number}", f"stage_{number - 1 if stride > 1 else number}"

    def relation(width: int, stride: int) -> nn.Module:
        return _relation(config, width, stride, queries, keys)

    width = config.inner_width * 2 ** (number - 1)
    return Bottleneck(inputs, width, stride, outputs=outputs, spatial=relation)


@sizes.register("lrnet_cifar")
def lrnet_cifar() -> LRNetConfig:
    """Small, for pictures of 32 x 32; ours."""
    return LRNetConfig(num_blocks=(2, 2, 2), window_size=5)


@sizes.register("lrnet50")
def lrnet50() -> LRNetConfig:
    """50 layers for ImageNet, 7 x 7 windows, m = 8: deck C's table."""
    return LRNetConfig(width=64, inner_width=100, num_blocks=(3, 4, 6, 3), stem_stride=2)


models.register("lrnet")(ModelEntry(LRNetConfig, LRNet, "Hu et al. 2019", "classifier"))
