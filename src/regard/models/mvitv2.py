"""MViTv2 (Li et al. 2022; deck C): MViT with relative positions by rows and columns, and pooled queries added back.

    Z = softmax(Q K^T / sqrt(d) + E) V + Q,   E_ij = Q_i . (R_h[row offset] + R_w[column offset])

| ours | paper |
| --- | --- |
| `OffsetProducts` | the decomposed relative position embedding E^(rel) |
| `adds_queries` | the residual pooling connection |
| widen | where the channels double: in attention (T, S, B) or, as before, in the MLP (L without class token) |

Queries of every block are pooled, with a stride in a stage's first. Classes are read off the mean of all places, or off
a class token. E is not written out for all pairs (`blocks.pooling_attention`), and so is recorded in its small form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from regard.blocks.multiscale import MultiscaleConfig, MultiscaleTransformer, Place
from regard.blocks.pooling_attention import PoolingAttention
from regard.core.models import ModelEntry, models, sizes


class MViTv2Config(MultiscaleConfig):
    """Sizes and variants of MViTv2."""

    kind: Literal["mvitv2"] = "mvitv2"
    widen: Literal["attention", "feed_forward"] = "attention"
    """Where the width doubles: in a stage's first attention, or in the last position-wise network before it."""
    tokens: tuple[Literal["class"], ...] = ()
    """("class",) reads the classes off a token of their own, () off the mean of all places. With a token, what is done
    to the places' queries in the last block (its convolution, its offsets) reaches nothing, as in published models."""


class MViTv2(MultiscaleTransformer):
    """Says what is in a picture by pooled attention with relative positions."""

    def __init__(self, config: MViTv2Config, num_classes: int, channels: int) -> None:
        super().__init__(config, num_classes, channels, widen=config.widen, class_token=bool(config.tokens))

    def attention(self, config: MultiscaleConfig, place: Place) -> PoolingAttention:
        assert isinstance(config, MViTv2Config)
        inputs_side = config.side(place.stage - 1 if place.pools else place.stage)
        key_stride = config.stride_of_keys(place.stage)
        return PoolingAttention(
            place.inputs_width,
            place.attention_width,
            config.num_heads * 2**place.stage,
            query_pooling=2 if place.pools else 1,
            key_stride=key_stride,
            offset_side=max(config.side(place.stage), -(-inputs_side // key_stride)),
            adds_queries=True,
            num_extras=len(config.tokens),
            epsilon=config.norm_epsilon,
            axes=place.axes,
            dropout_rate=config.attention_dropout_rate,
        )


models.register("mvitv2")(ModelEntry(MViTv2Config, MViTv2, "Li et al. 2022", family="classifier"))

_BLOCKS = {"tiny": (1, 2, 5, 2), "small": (1, 2, 11, 2), "base": (2, 3, 16, 3), "large": (2, 6, 36, 4)}
_BLOCKS["huge"] = (4, 8, 60, 8)
_WIDTHS = {"tiny": (96, 1), "small": (96, 1), "base": (96, 1), "large": (144, 2), "huge": (192, 3)}


def _size(shape: str, class_token: bool) -> Callable[[], MViTv2Config]:
    width, num_heads = _WIDTHS[shape]

    def size() -> MViTv2Config:
        """A published size of MViTv2."""
        return MViTv2Config(
            width=width,
            num_heads=num_heads,
            num_blocks=_BLOCKS[shape],
            widen="feed_forward" if shape == "large" and not class_token else "attention",
            tokens=("class",) if class_token else (),
        )

    return size


for _shape in ("tiny", "small", "base", "large"):
    sizes.register(f"mvitv2_{_shape}")(_size(_shape, class_token=False))
for _shape in ("small", "base", "large", "huge"):
    sizes.register(f"mvitv2_{_shape}_cls")(_size(_shape, class_token=True))
