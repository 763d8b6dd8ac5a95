"""MLP-Mixer (Tolstikhin et al. 2021): what is left of a vision Transformer when attention goes (deck B's rivals).

    X = patches of the picture, one linear map each
    U = X + MLP_tokens(LayerNorm(X)^T)^T        the same for every channel: mixes positions, with fixed weights
    Y = U + MLP_channels(LayerNorm(U))          the same for every position
    logits = W mean(LayerNorm(Y_L))

Where attention makes weights between positions from what they hold, MLP_tokens has learned them once and for all. So
the number of positions is built in: a picture of another size is resized to `image_size` x `image_size` first, which is
our departure (the paper resizes the weights before it trains on).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.axes import Axis
from regard.core.classifier import ClassifierOutput
from regard.core.errors import ConfigError
from regard.core.models import ModelConfig, ModelEntry, models, sizes
from regard.layers.feed_forward import FeedForward

_EPSILON = 1e-6
"""In every layer norm, as in the paper's code."""


class MixerConfig(ModelConfig):
    """Sizes of MLP-Mixer."""

    kind: Literal["mixer"] = "mixer"
    image_size: int = 32
    """Height and width of a picture, a multiple of the patch; other pictures are resized to it."""
    patch_size: int = 4
    """Height and width of a patch."""
    width: int = 128
    """Size of a patch's vector."""
    num_blocks: int = 8
    """Blocks that mix tokens, then channels."""
    token_width: int = 64
    """Hidden size of the networks across positions."""
    feed_forward_width: int = 512
    """Hidden size of the networks across channels."""
    dropout_rate: float = 0.0
    """Dropout on the hidden values of both networks."""


class MixerBlock(nn.Module):
    """Mixes positions, then channels."""

    def __init__(self, config: MixerConfig, num_patches: int) -> None:
        super().__init__()
        self.token_norm = nn.LayerNorm(config.width, eps=_EPSILON)
        self.token_mixing = FeedForward(num_patches, config.token_width, "gelu", config.dropout_rate)
        self.channel_norm = nn.LayerNorm(config.width, eps=_EPSILON)
        self.channel_mixing = FeedForward(config.width, config.feed_forward_width, "gelu", config.dropout_rate)

    def forward(self, tokens: Float[Tensor, "batch patches width"]) -> Float[Tensor, "batch patches width"]:
        tokens = tokens + self.token_mixing(self.token_norm(tokens).transpose(1, 2)).transpose(1, 2)
        return tokens + self.channel_mixing(self.channel_norm(tokens))


class Mixer(nn.Module):
    """Networks across positions and across channels in turn, without attention"""

    def __init__(self, config: MixerConfig, num_classes: int, channels: int) -> None:
        super().__init__()
        if config.image_size % config.patch_size:
            raise ConfigError(
                f"A picture of {config.image_size} x {config.image_size} pixels cannot be cut into patches of "
                f"{config.patch_size} x {config.patch_size}; `--model.image-size` has to be a multiple of "
                f"`--model.patch-size`."
            )
        self.image_size = config.image_size
        num_patches = (config.image_size // config.patch_size) ** 2
        self.patches = nn.Conv2d(channels, config.width, config.patch_size, stride=config.patch_size)
        self.blocks = nn.ModuleList(MixerBlock(config, num_patches) for _ in range(config.num_blocks))
        self.norm = nn.LayerNorm(config.width, eps=_EPSILON)
        self.head = nn.Linear(config.width, num_classes)
        self._initialise()

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        tokens = self.patches(self._resized(images)).flatten(2).transpose(1, 2)
        for block in self.blocks:
            tokens = block(tokens)
        pooled = self.norm(tokens).mean(dim=1)
        return ClassifierOutput(self.head(pooled), pooled)

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """None: there is no attention."""
        return {}

    def _resized(self, images: Tensor) -> Tensor:
        size = (self.image_size, self.image_size)
        if images.shape[-2:] == size:
            return images
        return F.interpolate(images, size, mode="bilinear", antialias=True, align_corners=False)

    def _initialise(self) -> None:
        for block in self.blocks:
            for module in block.modules():
                if isinstance(module, nn.Linear):
                    nn.init.xavier_uniform_(module.weight)
                    nn.init.zeros_(module.bias)


_SHAPES = {"s": (512, 8), "b": (768, 12), "l": (1024, 24)}


def _size(shape: str, patch_size: int) -> Callable[[], MixerConfig]:
    width, num_blocks = _SHAPES[shape]

    def size() -> MixerConfig:
        """A published size of MLP-Mixer."""
        return MixerConfig(
            image_size=224,
            patch_size=patch_size,
            width=width,
            num_blocks=num_blocks,
            token_width=width // 2,
            feed_forward_width=4 * width,
        )

    return size


for _shape, _patch_size in (("s", 32), ("s", 16), ("b", 32), ("b", 16), ("l", 32), ("l", 16)):
    sizes.register(f"mixer_{_shape}{_patch_size}_224")(_size(_shape, _patch_size))

models.register("mixer")(ModelEntry(MixerConfig, Mixer, "Tolstikhin et al. 2021", "classifier"))
