"""An isotropic vision transformer up to its heads: patches, extra tokens, positions, pre-norm blocks, last norm.

    Z_0 = [extras; patches W] + positions,  U = Z + Attention(Norm(Z)),  Z' = U + FFN(Norm(U)),  output Norm(Z_L)

Every block has the same width and sees the whole grid, so there is one role: "patches".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.kernels import Bias
from regard.attention.multihead import MultiHeadSelfAttention
from regard.core.axes import Axis, Grid
from regard.core.classifier import ClassifierOutput
from regard.core.dropout import dropout
from regard.core.models import ModelConfig
from regard.layers.feed_forward import Activation, FeedForward
from regard.layers.grid_positions import GridPositions, grid_positions
from regard.layers.patches import PatchEmbedding
from regard.layers.residual import PreNorm
from regard.layers.stochastic_depth import depth_rates


class PatchTransformerConfig(ModelConfig):
    """Sizes and variants that all isotropic vision transformers share."""

    image_size: int = 224
    """Height and width in pixels that the positions are made for; pictures may have any other size."""
    patch_size: int = 16
    """Height and width of a patch in pixels; 1 makes every pixel a token."""
    width: int = 192
    """Size of a token's vector."""
    num_heads: int = 3
    """Attention heads; they share the width evenly."""
    num_blocks: int = 12
    """Number of blocks."""
    feed_forward_width: int = 768
    """Hidden size of the position-wise networks."""
    activation: Activation = "gelu"
    """Nonlinearity of the position-wise networks."""
    positions: str = "learned"
    """learned, learned_unfiltered, sinusoidal, relative or none."""
    attention: str = "scaled_dot"
    """The mechanism inside each head: any name of `regard list mechanisms`."""
    norm_epsilon: float = 1e-6
    """What is added to the variance in every norm."""
    dropout_rate: float = 0.0
    """Dropout on embeddings, sublayer outputs and hidden feed-forward values."""
    attention_dropout_rate: float = 0.0
    """Dropout on attention weights."""
    stochastic_depth_rate: float = 0.0
    """How often the last block's branches are left out in training; the first one's never, those between in steps."""


class VisionBlock(nn.Module):
    """Self-attention, then a position-wise network, each behind its norm."""

    def __init__(self, config: PatchTransformerConfig, depth_rate: float) -> None:
        super().__init__()
        width = config.width
        self.attention = MultiHeadSelfAttention(
            width,
            config.num_heads,
            axis="patches",
            mechanism=config.attention,
            dropout_rate=config.attention_dropout_rate,
        )
        self.feed_forward = FeedForward(width, config.feed_forward_width, config.activation, config.dropout_rate)
        norm = {"epsilon": config.norm_epsilon, "depth_rate": depth_rate}
        self.attention_residual = PreNorm(width, config.dropout_rate, **norm)
        self.feed_forward_residual = PreNorm(width, config.dropout_rate, **norm)

    def forward(
        self, inputs: Float[Tensor, "batch tokens width"], bias: Bias | None
    ) -> Float[Tensor, "batch tokens width"]:
        attended = self.attention_residual(inputs, lambda x: self.attention(x, bias=bias))
        return self.feed_forward_residual(attended, self.feed_forward)


class PatchTransformer(nn.Module, ABC):
    """From a picture to the features of its tokens; what is read off them is the subclass's."""

    def __init__(self, config: PatchTransformerConfig, channels: int, extras: tuple[str, ...]) -> None:
        super().__init__()
        self.extra_names = extras
        self.dropout_rate = config.dropout_rate
        self.patches = PatchEmbedding(channels, config.width, config.patch_size)
        rows, columns = self.patches.grid(config.image_size, config.image_size)
        if extras:
            self.extras = nn.Parameter(torch.empty(len(extras), config.width))
            nn.init.trunc_normal_(self.extras, std=0.02)
        self.positions: GridPositions = grid_positions[config.positions](
            config.width, config.num_heads, rows, columns, len(extras)
        )
        rates = depth_rates(config.stochastic_depth_rate, config.num_blocks)
        self.encoder = nn.ModuleList(VisionBlock(config, rate) for rate in rates)
        self.norm = nn.LayerNorm(config.width, config.norm_epsilon)

    @abstractmethod
    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        """Scores for a batch of equally large pictures."""

    def encode(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch tokens size"]:
        """Features of all tokens, extras first."""
        patches = self.patches(images)
        rows, columns = patches.shape[1:3]
        tokens = patches.flatten(1, 2)
        if self.extra_names:
            tokens = torch.cat([self.extras.to(tokens.dtype).expand(len(tokens), -1, -1), tokens], dim=1)
        features = dropout(self.positions(tokens, rows, columns), self.dropout_rate, self.training)
        bias = self.positions.bias(rows, columns)
        for block in self.encoder:
            features = block(features, bias)
        return self.norm(features)

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """The one axis of all taps, for a picture of this size."""
        rows, columns = self.patches.grid(height, width)
        return {"patches": Grid(rows, columns, height, width, self.extra_names)}


def initialise(model: nn.Module) -> None:
    """Truncated normal matrices of deviation 0.02, zero biases, as ViT and its successors start."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
