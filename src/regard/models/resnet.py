"""ResNet (He, Zhang, Ren and Sun 2016): the convolutional network that vision Transformers are compared with.

    stem, then stages of residual blocks with 1, 2, 4, 8 times `width` channels at half the resolution each,
    then the mean over all positions and one linear map

Sizes for ImageNet are torchvision's, parameter for parameter (stride in the 3x3 of a bottleneck). Sizes for CIFAR are
the paper's: 3 stages of 16, 32, 64 channels with shortcuts without parameters.

Departure: `non_local_after` puts attention between all positions behind chosen stages (`blocks.non_local`; deck C,
"Idea #1"); a network without it has no attention and no axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from regard.blocks.non_local import NonLocalBlock
from regard.blocks.residual import BasicBlock, Bottleneck, stage
from regard.core.axes import Axis
from regard.core.classifier import ClassifierOutput
from regard.core.errors import ConfigError
from regard.core.models import ModelConfig, ModelEntry, models, sizes
from regard.layers.convolution import STEMS, grid_axis, initialise_convolutions


class ResNetConfig(ModelConfig):
    """Sizes and variants of ResNet."""

    kind: Literal["resnet"] = "resnet"
    width: int = 16
    """Channels of the first stage; each later stage has twice as many."""
    num_blocks: tuple[int, ...] = (3, 3, 3)
    """Residual blocks of each stage."""
    block: Literal["basic", "bottleneck"] = "basic"
    """Two 3x3 convolutions, or 1x1, 3x3, 1x1 with four times as many channels at its ends."""
    stem: Literal["small", "imagenet"] = "small"
    """3x3 at full resolution, or 7x7 and a pooling that leave a quarter of it."""
    padded_shortcut: bool = False
    """Shortcuts of basic blocks get zeros as further channels instead of a 1x1 convolution."""
    non_local_after: tuple[int, ...] = ()
    """Stages, counted from 1, behind which every position attends to all others."""
    num_heads: int = 1
    """Heads of that attention."""
    attention: str = "scaled_dot"
    """Its mechanism: any name of `regard list mechanisms`."""


class ResNet(nn.Module):
    """Residual convolutions, with attention between stages where it is asked for"""

    def __init__(self, config: ResNetConfig, num_classes: int, channels: int) -> None:
        super().__init__()
        num_stages = len(config.num_blocks)
        if wrong := [number for number in config.non_local_after if not 1 <= number <= num_stages]:
            raise ConfigError(
                f"`--model.non-local-after` names the stage {wrong[0]}, but this network has the stages 1 to "
                f"{num_stages}."
            )
        self.stem = STEMS[config.stem](channels, config.width)
        self.strides = [self.stem.stride * 2**number for number in range(num_stages)]
        self.stages = nn.ModuleList()
        self.non_local = nn.ModuleDict()
        inputs = config.width
        for number, num_blocks in enumerate(config.num_blocks, start=1):
            width = config.width * 2 ** (number - 1)
            expansion = Bottleneck.expansion if config.block == "bottleneck" else BasicBlock.expansion
            outputs = width * expansion

            def make(inputs: int, stride: int, width: int = width) -> nn.Module:
                if config.block == "bottleneck":
                    return Bottleneck(inputs, width, stride)
                return BasicBlock(inputs, width, stride, padded_shortcut=config.padded_shortcut)

            self.stages.append(stage(make, num_blocks, 1 if number == 1 else 2, inputs, outputs))
            if number in config.non_local_after:
                hidden_width = max(config.num_heads, outputs // 2)
                self.non_local[str(number)] = NonLocalBlock(
                    outputs, hidden_width, config.num_heads, axis=f"stage_{number}", attention=config.attention
                )
            inputs = outputs
        self.head = nn.Linear(inputs, num_classes)
        initialise_convolutions(self)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        features = self.stem(images)
        for number, blocks in enumerate(self.stages, start=1):
            features = blocks(features)
            if str(number) in self.non_local:
                features = self.non_local[str(number)](features)
        pooled = features.mean(dim=(2, 3))
        return ClassifierOutput(self.head(pooled), pooled)

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """`stage_1` and so on: the positions of a stage that is followed by attention."""
        return {f"stage_{number}": grid_axis(height, width, self.strides[int(number) - 1]) for number in self.non_local}


def _cifar(depth: int) -> ResNetConfig:
    return ResNetConfig(num_blocks=((depth - 2) // 6,) * 3, padded_shortcut=True)


@sizes.register("resnet20_cifar")
def resnet20_cifar() -> ResNetConfig:
    """20 layers for pictures of 32 x 32."""
    return _cifar(20)


@sizes.register("resnet32_cifar")
def resnet32_cifar() -> ResNetConfig:
    """32 layers for pictures of 32 x 32."""
    return _cifar(32)


@sizes.register("resnet44_cifar")
def resnet44_cifar() -> ResNetConfig:
    """44 layers for pictures of 32 x 32."""
    return _cifar(44)


@sizes.register("resnet56_cifar")
def resnet56_cifar() -> ResNetConfig:
    """56 layers for pictures of 32 x 32."""
    return _cifar(56)


@sizes.register("resnet110_cifar")
def resnet110_cifar() -> ResNetConfig:
    """110 layers for pictures of 32 x 32."""
    return _cifar(110)


@sizes.register("resnet20_cifar_non_local")
def resnet20_cifar_non_local() -> ResNetConfig:
    """The 20 layers with attention behind the second stage, over 16 x 16 positions."""
    return ResNetConfig(num_blocks=(3, 3, 3), padded_shortcut=True, non_local_after=(2,))


@sizes.register("resnet18")
def resnet18() -> ResNetConfig:
    """18 layers for ImageNet."""
    return ResNetConfig(width=64, num_blocks=(2, 2, 2, 2), stem="imagenet")


@sizes.register("resnet34")
def resnet34() -> ResNetConfig:
    """34 layers for ImageNet."""
    return ResNetConfig(width=64, num_blocks=(3, 4, 6, 3), stem="imagenet")


@sizes.register("resnet50")
def resnet50() -> ResNetConfig:
    """50 layers for ImageNet."""
    return ResNetConfig(width=64, num_blocks=(3, 4, 6, 3), block="bottleneck", stem="imagenet")


@sizes.register("resnet101")
def resnet101() -> ResNetConfig:
    """101 layers for ImageNet."""
    return ResNetConfig(width=64, num_blocks=(3, 4, 23, 3), block="bottleneck", stem="imagenet")


@sizes.register("resnet152")
def resnet152() -> ResNetConfig:
    """152 layers for ImageNet."""
    return ResNetConfig(width=64, num_blocks=(3, 8, 36, 3), block="bottleneck", stem="imagenet")


models.register("resnet")(ModelEntry(ResNetConfig, ResNet, "He et al. 2016", "classifier"))
