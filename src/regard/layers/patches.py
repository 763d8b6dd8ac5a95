"""A picture as a grid of tokens: every patch becomes a vector by one linear map (Dosovitskiy et al. 2021).

    z_rc = W vec(patch_rc) + b

which is a convolution whose stride is its kernel. A patch of one pixel makes every pixel a token.
"""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from regard.core.errors import DataError


class PatchEmbedding(nn.Module):
    """Cuts a picture into patches without overlap; its height and width must be multiples of the patch."""

    def __init__(self, channels: int, width: int, patch_size: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Conv2d(channels, width, patch_size, patch_size)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of patches that a picture of this size has."""
        size = self.patch_size
        if height % size or width % size or not height or not width:
            smaller, larger = (
                f"{change(height, size)} x {change(width, size)}" for change in (_multiple_below, _multiple_above)
            )
            raise DataError(
                f"A picture of {height} x {width} pixels cannot be cut into patches of {size} x {size}. "
                f"Resize or crop it to a multiple of {size}, such as {smaller} or {larger}."
            )
        return height // size, width // size

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch rows columns size"]:
        self.grid(*images.shape[2:])
        return self.projection(images).permute(0, 2, 3, 1)


class OverlappingPatches(nn.Module):
    """Patches that reach over almost half their neighbours, one every `stride` pixels (MViT); pictures of any size."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.projection = nn.Conv2d(channels, width, 2 * stride - 1, stride, padding=stride - 1)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns; the last ones may lie beyond the picture's edge."""
        return -(-height // self.stride), -(-width // self.stride)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch rows columns size"]:
        return self.projection(images).permute(0, 2, 3, 1)


def pad_grid(
    grid: Shaped[Tensor, "batch rows columns width"], multiple: int
) -> Shaped[Tensor, "batch padded_rows padded_columns width"]:
    """With zeros at the bottom and on the right, up to a multiple in both directions."""
    rows, columns = grid.shape[1:3]
    return F.pad(grid, (0, 0, 0, -columns % multiple, 0, -rows % multiple))


def _multiple_below(size: int, unit: int) -> int:
    return max(size // unit, 1) * unit


def _multiple_above(size: int, unit: int) -> int:
    return (size // unit + 1) * unit
