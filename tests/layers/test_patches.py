"""Patches: the convolution is the linear map of the paper, and what cannot be cut is refused."""

from __future__ import annotations

import pytest
import torch

from regard.core.errors import DataError
from regard.layers.patches import PatchEmbedding, pad_grid

CHANNELS, WIDTH, PATCH = 3, 11, 5


def test_a_patch_by_hand() -> None:
    layer = PatchEmbedding(CHANNELS, WIDTH, PATCH)
    images = torch.randn(2, CHANNELS, 2 * PATCH, 3 * PATCH)
    patches = layer(images)
    assert patches.shape == (2, 2, 3, WIDTH)
    for row in range(2):
        for column in range(3):
            piece = images[:, :, row * PATCH : (row + 1) * PATCH, column * PATCH : (column + 1) * PATCH]
            wanted = piece.flatten(1) @ layer.projection.weight.flatten(1).T + layer.projection.bias
            torch.testing.assert_close(patches[:, row, column], wanted)


def test_pixels_as_patches() -> None:
    images = torch.randn(2, CHANNELS, 7, 3)
    assert PatchEmbedding(CHANNELS, WIDTH, 1)(images).shape == (2, 7, 3, WIDTH)


@pytest.mark.parametrize(
    ("height", "width", "advice"), [(17, 15, "15 x 15 or 20 x 20"), (15, 3, "15 x 5 or 20 x 5"), (0, 5, "5 x 5")]
)
def test_what_cannot_be_cut(height: int, width: int, advice: str) -> None:
    layer = PatchEmbedding(CHANNELS, WIDTH, PATCH)
    with pytest.raises(DataError, match=rf"{height} x {width} pixels cannot be cut .* 5 x 5\. .* such as {advice}"):
        layer(torch.randn(1, CHANNELS, height, width))
    with pytest.raises(DataError, match="cannot be cut"):
        layer.grid(height, width)


@pytest.mark.parametrize(("rows", "columns", "padded"), [(5, 7, (6, 9)), (6, 3, (6, 3)), (1, 2, (3, 3))])
def test_padding_is_at_the_bottom_right(rows: int, columns: int, padded: tuple[int, int]) -> None:
    grid = torch.randn(2, rows, columns, WIDTH)
    whole = pad_grid(grid, 3)
    assert whole.shape == (2, *padded, WIDTH)
    assert torch.equal(whole[:, :rows, :columns], grid)
    assert whole.count_nonzero() == grid.count_nonzero()
