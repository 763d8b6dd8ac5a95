"""ConvMixer (Trockman and Kolter 2022), "Patches are all you need?": the shape of a ViT with convolutions only.

    X = BatchNorm(gelu(patches))
    U = X + BatchNorm(gelu(depthwise k x k (X)))     mixes positions, each channel alone
    Y = BatchNorm(gelu(1x1 (U)))                     mixes channels
    logits = W mean(Y_L)

The resolution stays what the patches made it. Named sizes say width and depth, as the paper does. `convmixer_256_8` is
the paper's size for CIFAR (patches of 2 x 2, 5 x 5 convolutions); 768/32 has relu as its published weights have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from regard.core.axes import Axis
from regard.core.classifier import ClassifierOutput
from regard.core.errors import ConfigError
from regard.core.models import ModelConfig, ModelEntry, models, sizes
from regard.layers.convolution import convolution
from regard.layers.feed_forward import ACTIVATIONS, Activation


class ConvMixerConfig(ModelConfig):
    """Sizes of ConvMixer."""

    kind: Literal["convmixer"] = "convmixer"
    width: int = 256
    """Channels."""
    num_blocks: int = 8
    """Blocks that mix positions, then channels."""
    kernel_size: int = 5
    """Rows and columns of the convolutions that mix positions; odd."""
    patch_size: int = 2
    """Height and width of a patch."""
    activation: Activation = "gelu"
    """Nonlinearity."""


class ActivatedNorm(nn.Module):
    """A convolution, then the nonlinearity, then batch norm."""

    def __init__(self, layer: nn.Conv2d, activation: Activation) -> None:
        super().__init__()
        self.convolution = layer
        self.norm = nn.BatchNorm2d(layer.out_channels)
        self.activation = ACTIVATIONS[activation]

    def forward(self, features: Float[Tensor, "batch inputs height wide"]) -> Float[Tensor, "batch outputs rows cols"]:
        return self.norm(self.activation(self.convolution(features)))


class ConvMixerBlock(nn.Module):
    """Mixes positions, then channels."""

    def __init__(self, config: ConvMixerConfig) -> None:
        super().__init__()
        width, kernel_size = config.width, config.kernel_size
        depthwise = convolution(width, width, kernel_size, groups=width, bias=True)
        self.positions = ActivatedNorm(depthwise, config.activation)
        self.channels = ActivatedNorm(convolution(width, width, 1, bias=True), config.activation)

    def forward(self, features: Float[Tensor, "batch width rows columns"]) -> Float[Tensor, "batch width rows columns"]:
        return self.channels(features + self.positions(features))


class ConvMixer(nn.Module):
    """Large depthwise convolutions on patches, without attention"""

    def __init__(self, config: ConvMixerConfig, num_classes: int, channels: int) -> None:
        super().__init__()
        if config.kernel_size % 2 == 0:
            raise ConfigError(f"`--model.kernel-size` has a middle and so is odd, not {config.kernel_size}.")
        patches = nn.Conv2d(channels, config.width, config.patch_size, stride=config.patch_size)
        self.patches = ActivatedNorm(patches, config.activation)
        self.blocks = nn.ModuleList(ConvMixerBlock(config) for _ in range(config.num_blocks))
        self.head = nn.Linear(config.width, num_classes)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        features = self.patches(images)
        for block in self.blocks:
            features = block(features)
        pooled = features.mean(dim=(2, 3))
        return ClassifierOutput(self.head(pooled), pooled)

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """None: there is no attention."""
        return {}


@sizes.register("convmixer_256_8")
def convmixer_256_8() -> ConvMixerConfig:
    """For pictures of 32 x 32."""
    return ConvMixerConfig()


@sizes.register("convmixer_768_32")
def convmixer_768_32() -> ConvMixerConfig:
    """21.1 M parameters, for ImageNet."""
    return ConvMixerConfig(width=768, num_blocks=32, kernel_size=7, patch_size=7, activation="relu")


@sizes.register("convmixer_1024_20")
def convmixer_1024_20() -> ConvMixerConfig:
    """24.4 M parameters, for ImageNet."""
    return ConvMixerConfig(width=1024, num_blocks=20, kernel_size=9, patch_size=14)


@sizes.register("convmixer_1536_20")
def convmixer_1536_20() -> ConvMixerConfig:
    """51.6 M parameters, for ImageNet."""
    return ConvMixerConfig(width=1536, num_blocks=20, kernel_size=9, patch_size=7)


models.register("convmixer")(ModelEntry(ConvMixerConfig, ConvMixer, "Trockman and Kolter 2022", "classifier"))
