"""Where a patch stands in its picture: what is added to its embedding, or to the scores.

A model is built for a grid of rows x columns, and called with any other. What that means for each kind:

| kind | on another grid |
| --- | --- |
| learned | the table as a picture, resized bicubically with antialiasing (what timm does) |
| learned_unfiltered | the same without antialiasing (what DeiT's authors and `transformers` do) |
| sinusoidal | the formula goes on |
| relative | offsets beyond the largest known one share its bias |
| none | nothing |

Extra tokens (class, distillation) come first; they have learned positions of their own, or none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.registry import Registry
from regard.layers.positions import sinusoidal_positions

grid_positions: Registry[type[GridPositions]] = Registry("kind of grid positions")


class GridPositions(nn.Module, ABC):
    """Adds nothing, or a vector, to each token; may have a bias for scores between tokens."""

    def __init__(self, width: int, num_heads: int, rows: int, columns: int, num_extras: int) -> None:
        super().__init__()
        self.rows = rows
        self.columns = columns
        self.num_extras = num_extras

    @abstractmethod
    def forward(
        self, tokens: Float[Tensor, "batch tokens width"], rows: int, columns: int
    ) -> Float[Tensor, "batch tokens width"]:
        """The tokens of a grid of rows x columns, extras first, with their positions."""

    def bias(self, rows: int, columns: int) -> Float[Tensor, "1 heads tokens tokens"] | None:
        """What is added to the scores of self-attention."""
        return None


@grid_positions.register("none")
class NoGridPositions(GridPositions):
    """Nothing: the model sees a bag of patches"""

    def forward(
        self, tokens: Float[Tensor, "batch tokens width"], rows: int, columns: int
    ) -> Float[Tensor, "batch tokens width"]:
        return tokens


@grid_positions.register("learned")
class LearnedGridPositions(GridPositions):
    """One learned vector a patch, resized with antialiasing for other grids (ViT as in timm)"""

    antialias = True

    def __init__(self, width: int, num_heads: int, rows: int, columns: int, num_extras: int) -> None:
        super().__init__(width, num_heads, rows, columns, num_extras)
        self.table = nn.Parameter(torch.empty(num_extras + rows * columns, width))
        nn.init.trunc_normal_(self.table, std=0.02)

    def forward(
        self, tokens: Float[Tensor, "batch tokens width"], rows: int, columns: int
    ) -> Float[Tensor, "batch tokens width"]:
        if (rows, columns) == (self.rows, self.columns):
            return tokens + self.table
        extras, table = self.table[: self.num_extras], self.table[self.num_extras :]
        picture = table.unflatten(0, (self.rows, self.columns)).permute(2, 0, 1)[None]
        resized = F.interpolate(
            picture, size=(rows, columns), mode="bicubic", antialias=self.antialias, align_corners=False
        )
        return tokens + torch.cat([extras, resized[0].permute(1, 2, 0).flatten(0, 1)])


@grid_positions.register("learned_unfiltered")
class UnfilteredGridPositions(LearnedGridPositions):
    """One learned vector a patch, resized without antialiasing for other grids (DeiT)"""

    antialias = False


@grid_positions.register("sinusoidal")
class SinusoidalGridPositions(GridPositions):
    """The row's sinusoids (deck D's) in one half of the width, the column's in the other; no parameters"""

    def forward(
        self, tokens: Float[Tensor, "batch tokens width"], rows: int, columns: int
    ) -> Float[Tensor, "batch tokens width"]:
        width = tokens.shape[-1]
        of_rows = sinusoidal_positions(rows, width - width // 2)
        of_columns = sinusoidal_positions(columns, width // 2)
        table = torch.cat(
            [of_rows[:, None].expand(-1, columns, -1), of_columns[None].expand(rows, -1, -1)], dim=-1
        ).flatten(0, 1)
        return tokens + F.pad(table, (0, 0, self.num_extras, 0)).to(tokens.device)


@grid_positions.register("relative")
class RelativeGridPositions(GridPositions):
    """A learned bias a head for each offset in rows and columns; none between an extra token and any other"""

    def __init__(self, width: int, num_heads: int, rows: int, columns: int, num_extras: int) -> None:
        super().__init__(width, num_heads, rows, columns, num_extras)
        self.by_offset = nn.Parameter(torch.empty(num_heads, 2 * rows - 1, 2 * columns - 1))
        nn.init.trunc_normal_(self.by_offset, std=0.02)

    def forward(
        self, tokens: Float[Tensor, "batch tokens width"], rows: int, columns: int
    ) -> Float[Tensor, "batch tokens width"]:
        return tokens

    def bias(self, rows: int, columns: int) -> Float[Tensor, "1 heads tokens tokens"]:
        between_patches = offset_bias(self.by_offset, rows, columns)
        return F.pad(between_patches, (self.num_extras, 0, self.num_extras, 0))[None]


def grid_offsets(
    rows: int, columns: int, device: torch.device | None = None
) -> tuple[Int[Tensor, "places places"], Int[Tensor, "places places"]]:
    """For every pair of places of a grid, how many rows and columns the first is below and right of the second."""
    places = torch.arange(rows * columns, device=device)
    row, column = places // columns, places % columns
    return row[:, None] - row[None, :], column[:, None] - column[None, :]


def offset_bias(
    by_offset: Float[Tensor, "heads row_offsets column_offsets"], rows: int, columns: int
) -> Float[Tensor, "heads places places"]:
    """The bias of every pair of places, query minus key, from a table with offset zero in its middle."""
    row_radius, column_radius = (size // 2 for size in by_offset.shape[1:])
    down, right = grid_offsets(rows, columns, by_offset.device)
    down = down.clamp(-row_radius, row_radius) + row_radius
    right = right.clamp(-column_radius, column_radius) + column_radius
    return by_offset[:, down, right]
