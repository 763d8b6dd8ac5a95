"""Stand-alone self-attention (Ramachandran et al. 2019; deck A, eq. 2 and 3): a layer in the place of a convolution.

    y_ij = sum over ab of softmax_ab(q_ij . k_ab + q_ij . r_{a-i,b-j}) v_ab      ab in the k x k window around ij

with q = W_Q x, k = W_K x, v = W_V x; r is an embedding of the row offset beside one of the column offset, half of a
head's width each. Heads share the channels evenly, each with its own part of r. Scores are not divided by sqrt(d).

The first layer of a network sees raw pixels, which say little one by one. `SpatiallyAwareAttention` attends within
blocks of the picture (k = 4 in the paper) and has values that know where in the block they stand, as weights of a
convolution do:

    v_ab = (sum over m of p(a, b, m) W_V^m) x_ab,   p(a, b, m) = softmax_m((row_a + column_b) . mixture_m)

What the paper leaves open: windows that reach beyond the picture (here those places are not attended to), whether heads
share r (here not), and whether the first layer has relative positions too (here not: its values have positions).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.local import attend_locally
from regard.attention.multihead import head_size
from regard.core.context import context_of
from regard.core.errors import ConfigError
from regard.core.relations import SparseRelation, masked_softmax
from regard.core.tap import Tap


class StandAloneSelfAttention(nn.Module):
    """From `width` to `width` channels; a stride is an average over stride x stride positions after it (the paper)."""

    def __init__(self, width: int, num_heads: int, window: int, *, stride: int = 1, axis: str) -> None:
        super().__init__()
        head_width = head_size(width, num_heads)
        if head_width < 2:
            raise ConfigError(
                f"{num_heads} heads of {width} channels have {head_width} each, but rows and columns need at least "
                f"one of their own. Take fewer heads."
            )
        self.num_heads = num_heads
        self.window = window
        self.stride = stride
        self.projection = nn.Conv2d(width, 3 * width, 1, bias=False)
        self.row_offsets = nn.Parameter(torch.randn(num_heads, head_width - head_width // 2, window) * head_width**-0.5)
        self.column_offsets = nn.Parameter(torch.randn(num_heads, head_width // 2, window) * head_width**-0.5)
        self.tap = Tap(axis, axis)

    def forward(self, features: Float[Tensor, "batch width height wide"]) -> Float[Tensor, "batch width rows columns"]:
        projected = self.projection(features).chunk(3, dim=1)
        queries, keys, values = (part.unflatten(1, (self.num_heads, -1)) for part in projected)
        context = attend_locally(
            queries, keys, values, window=self.window, bias=self._offset_scores(queries), tap=self.tap
        )
        context = context.flatten(1, 2)
        return F.avg_pool2d(context, self.stride, ceil_mode=True) if self.stride > 1 else context

    def _offset_scores(
        self, queries: Float[Tensor, "batch heads width height wide"]
    ) -> Float[Tensor, "batch heads places height wide"]:
        """q . r for each place of the window: that of its row and that of its column."""
        of_rows, of_columns = queries.split([self.row_offsets.shape[1], self.column_offsets.shape[1]], dim=2)
        rows = torch.einsum("bgdhw,gdr->bgrhw", of_rows, self.row_offsets)
        columns = torch.einsum("bgdhw,gdc->bgchw", of_columns, self.column_offsets)
        return (rows[:, :, :, None] + columns[:, :, None]).flatten(2, 3)


class SpatiallyAwareAttention(nn.Module):
    """Every pixel attends to the pixels of its own block; values are mixtures that depend on the place in the block."""

    def __init__(
        self, channels: int, width: int, num_heads: int, block_size: int, num_mixtures: int, *, axis: str
    ) -> None:
        super().__init__()
        head_size(width, num_heads)
        self.num_heads = num_heads
        self.block_size = block_size
        self.query_projection = nn.Linear(channels, width, bias=False)
        self.key_projection = nn.Linear(channels, width, bias=False)
        self.value_weights = nn.Parameter(torch.randn(num_mixtures, width, channels) * channels**-0.5)
        self.rows = nn.Parameter(torch.randn(block_size, width))
        self.columns = nn.Parameter(torch.randn(block_size, width))
        self.mixtures = nn.Parameter(torch.randn(num_mixtures, width) * width**-0.5)
        self.tap = Tap(axis, axis)

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch outputs height width"]:
        height, width = images.shape[-2:]
        blocks = self._blocks(images)
        queries, keys, values = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(2, 3)
            for part in (self.query_projection(blocks), self.key_projection(blocks), self._values(blocks))
        )
        pixels = self._pixels(height, width).to(images.device)
        scores = queries @ keys.transpose(-1, -2)
        weights = masked_softmax(scores, (pixels >= 0)[:, None, None, :])
        if self.tap.open:
            self.tap.emit(lambda: self._relation(weights.detach(), pixels, height * width))
        if self.tap.edited:
            relation = self.tap.change(self._relation(weights, pixels, height * width))
            context = context_of(relation, values.transpose(1, 2)[:, :, *self._order(pixels)])
            return context.transpose(2, 3).flatten(1, 2).unflatten(2, (height, width))
        context = (weights.to(values.dtype) @ values).transpose(2, 3).flatten(3)
        return self._picture(context, height, width)

    def _values(
        self, blocks: Float[Tensor, "batch blocks pixels channels"]
    ) -> Float[Tensor, "batch blocks pixels outputs"]:
        places = (self.rows[:, None] + self.columns).flatten(0, 1)
        shares = (places @ self.mixtures.T).softmax(dim=-1)
        weights = torch.einsum("pm,moc->poc", shares, self.value_weights)
        return torch.einsum("bnpc,poc->bnpo", blocks, weights)

    def _blocks(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch blocks pixels channels"]:
        """Blocks row by row, each with its pixels row by row; the last ones are filled up."""
        size = self.block_size
        height, width = images.shape[-2:]
        cut = F.pad(images, (0, -width % size, 0, -height % size)).unfold(2, size, size).unfold(3, size, size)
        return cut.flatten(4).flatten(2, 3).movedim(1, -1)

    def _pixels(self, height: int, width: int) -> Tensor:
        """Which pixel stands where in which block, (blocks, pixels); -1 is filled up."""
        size = self.block_size
        places = F.pad(
            torch.arange(height * width).view(height, width), (0, -width % size, 0, -height % size), value=-1
        )
        return places.unfold(0, size, size).unfold(1, size, size).flatten(2).flatten(0, 1)

    def _picture(
        self, blocks: Float[Tensor, "batch blocks pixels outputs"], height: int, width: int
    ) -> Float[Tensor, "batch outputs height width"]:
        """The inverse of `_blocks`, without what was filled up."""
        size = self.block_size
        columns = -(-width // size)
        picture = blocks.unflatten(2, (size, size)).unflatten(1, (-1, columns)).transpose(2, 3)
        return picture.flatten(3, 4).flatten(1, 2).movedim(-1, 1)[..., :height, :width]

    @staticmethod
    def _order(pixels: Int[Tensor, "blocks places"]) -> tuple[Tensor, Tensor]:
        """In which block, and at which place of it, each pixel of the picture stands."""
        real = (pixels >= 0).nonzero()
        blocks, places = real[pixels[pixels >= 0].argsort()].unbind(1)
        return blocks, places

    @staticmethod
    def _relation(
        weights: Float[Tensor, "batch blocks heads pixels pixels"], pixels: Tensor, num_pixels: int
    ) -> SparseRelation:
        """In the order of the picture's pixels, each with the pixels of its block."""
        blocks, places = SpatiallyAwareAttention._order(pixels)
        keys = pixels[blocks]
        values = weights.transpose(1, 2)[:, :, blocks, places]
        return SparseRelation(keys.expand(*values.shape[:2], -1, -1), values, num_pixels)
