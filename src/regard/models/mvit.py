"""MViT, the Multiscale Vision Transformer (Fan et al. 2021; deck B): attention on grids that get coarser and wider.

    Z_0 = [x_class; overlapping patches] + E_pos,  blocks of pooling attention (`blocks.multiscale`),
    y = LayerNorm(Z_L)[0]

| ours | paper |
| --- | --- |
| width, num_heads, num_blocks | D and h of scale 2, and blocks of each scale |
| key_stride | the adaptive stride of K and V, s^A |
| `HeadPooling` | P(.; Theta), MHPA's pooling operator |

This is the form for pictures (T = 1). Only queries of a stage's first block are pooled. The width doubles in the
position-wise network of the last block before a stage. Pictures of another size get the positions resized.
"""

from __future__ import annotations

from typing import Literal

from jaxtyping import Float
from torch import Tensor

from regard.blocks.multiscale import MultiscaleConfig, MultiscaleTransformer, Place
from regard.blocks.pooling_attention import PoolingAttention
from regard.core.models import ModelEntry, models, sizes
from regard.layers.grid_positions import LearnedGridPositions


class MViTConfig(MultiscaleConfig):
    """Sizes of MViT."""

    kind: Literal["mvit"] = "mvit"


class MViT(MultiscaleTransformer):
    """Says what is in a picture off a class token that has seen it at every scale."""

    def __init__(self, config: MViTConfig, num_classes: int, channels: int) -> None:
        super().__init__(config, num_classes, channels, widen="feed_forward", class_token=True)
        side = config.side(0)
        self.positions = LearnedGridPositions(config.width, config.num_heads, side, side, 1)

    def attention(self, config: MultiscaleConfig, place: Place) -> PoolingAttention:
        return PoolingAttention(
            place.inputs_width,
            place.attention_width,
            config.num_heads * 2**place.stage,
            query_pooling=2 if place.pools else None,
            key_stride=config.stride_of_keys(place.stage),
            offset_side=None,
            adds_queries=False,
            num_extras=1,
            epsilon=config.norm_epsilon,
            axes=place.axes,
            dropout_rate=config.attention_dropout_rate,
        )

    def positioned(
        self, tokens: Float[Tensor, "batch tokens width"], rows: int, columns: int
    ) -> Float[Tensor, "batch tokens width"]:
        return self.positions(tokens, rows, columns)


models.register("mvit")(ModelEntry(MViTConfig, MViT, "Fan et al. 2021", family="classifier"))


@sizes.register("mvit_base_16")
def mvit_base_16() -> MViTConfig:
    """The paper's MViT-B-16 for pictures: 16 blocks."""
    return MViTConfig()
