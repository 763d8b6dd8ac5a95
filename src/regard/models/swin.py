"""The Swin Transformer (Liu et al. 2021): attention in windows that shift from block to block, on ever coarser grids.

    U = Z + (S)W-MSA(Norm(Z)),  Z' = U + MLP(Norm(U)),  softmax(Q K^T / sqrt(d) + B) V inside each window

| ours | paper |
| --- | --- |
| width, num_blocks, num_heads | C, layer numbers, C / 32 and its doubles |
| window_size, `BiasedWindowAttention.by_offset` | M, the table from which B is read |

B depends on how many rows and columns a query is below and right of its key. Where pictures fill no whole windows, and
what is then done: `blocks.windows`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.multihead import Heads, head_size, split_heads
from regard.blocks.shifted_windows import PatchMerging, ShiftedWindowConfig, ShiftedWindowTransformer
from regard.blocks.windows import WindowAttention
from regard.core.linear import Linear
from regard.core.models import ModelEntry, models, sizes
from regard.layers.grid_positions import offset_bias
from regard.layers.residual import PreNorm


class SwinConfig(ShiftedWindowConfig):
    """Sizes of the Swin Transformer."""

    kind: Literal["swin"] = "swin"


class BiasedWindowAttention(WindowAttention):
    """Scaled dot products with a learned bias a head for each offset inside a window."""

    def __init__(self, width: int, num_heads: int, side: int, *, axis: str, dropout_rate: float) -> None:
        head_width = head_size(width, num_heads)
        super().__init__(width, num_heads, head_width**-0.5, axis=axis, dropout_rate=dropout_rate)
        self.side = side
        self.projection = Linear(width, 3 * width)
        self.by_offset = nn.Parameter(torch.empty(num_heads, 2 * side - 1, 2 * side - 1))
        nn.init.trunc_normal_(self.by_offset, std=0.02)

    def project(self, inputs: Float[Tensor, "windows places width"]) -> tuple[Heads, Heads, Heads]:
        queries, keys, values = self.projection(inputs).chunk(3, dim=-1)
        return (
            split_heads(queries, self.num_heads),
            split_heads(keys, self.num_heads),
            split_heads(values, self.num_heads),
        )

    def bias(self) -> Float[Tensor, "1 heads places places"]:
        return offset_bias(self.by_offset, self.side, self.side)[None]


class NormedMerging(PatchMerging):
    """Norm of the four neighbours, then the linear map."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__(width, 4 * width, epsilon)

    def reduce(
        self, neighbours: Float[Tensor, "batch rows columns four_widths"]
    ) -> Float[Tensor, "batch rows columns two_widths"]:
        return self.reduction(self.norm(neighbours))


class Swin(ShiftedWindowTransformer):
    """Says what is in a picture by attention in shifted windows."""

    def attention(
        self, config: ShiftedWindowConfig, width: int, num_heads: int, side: int, axis: str
    ) -> BiasedWindowAttention:
        return BiasedWindowAttention(width, num_heads, side, axis=axis, dropout_rate=config.attention_dropout_rate)

    def residual(self, config: ShiftedWindowConfig, width: int, depth_rate: float) -> PreNorm:
        return PreNorm(width, config.dropout_rate, epsilon=config.norm_epsilon, depth_rate=depth_rate)

    def merging(self, width: int, epsilon: float) -> NormedMerging:
        return NormedMerging(width, epsilon)


models.register("swin")(ModelEntry(SwinConfig, Swin, "Liu et al. 2021", family="classifier"))

_SHAPES = {
    "tiny": (96, (2, 2, 6, 2), (3, 6, 12, 24), 0.2),
    "small": (96, (2, 2, 18, 2), (3, 6, 12, 24), 0.3),
    "base": (128, (2, 2, 18, 2), (4, 8, 16, 32), 0.5),
    "large": (192, (2, 2, 18, 2), (6, 12, 24, 48), 0.5),
}


def _size(shape: str, window_size: int, image_size: int) -> Callable[[], SwinConfig]:
    width, num_blocks, num_heads, rate = _SHAPES[shape]

    def size() -> SwinConfig:
        """A published size of Swin."""
        return SwinConfig(
            image_size=image_size,
            window_size=window_size,
            width=width,
            num_blocks=num_blocks,
            num_heads=num_heads,
            stochastic_depth_rate=rate,
        )

    return size


for _shape in _SHAPES:
    sizes.register(f"swin_{_shape}_patch4_window7_224")(_size(_shape, 7, 224))
for _shape in ("base", "large"):
    sizes.register(f"swin_{_shape}_patch4_window12_384")(_size(_shape, 12, 384))
