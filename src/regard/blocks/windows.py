"""Attention inside windows of a grid, every second time shifted (Liu et al. 2021).

A grid of any size is filled up with zeros at the bottom and on the right to whole windows, rolled by the shift to the
upper left, cut into windows, and put together again the same way. After rolling, a window may hold places that are not
neighbours on the grid: those look only at their own kind (`allow`). Where one window covers the whole grid in a
direction there is no shift in that direction.

The filling is attended to like any place, as in torchvision, `transformers` and the authors' code for detection; its
keys and values are the projections of zero. Its weights are recorded together as one extra place, named "padding".
(timm rolls before it fills up, and so agrees only where nothing is filled up.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.kernels import attend, attend_to
from regard.attention.multihead import Heads, merge_heads
from regard.core.axes import Grid
from regard.core.context import context_in_groups
from regard.core.grouped import GroupedRelation
from regard.core.linear import Linear
from regard.core.masks import Allow
from regard.core.relations import DotRelation
from regard.core.tap import Tap
from regard.layers.patches import pad_grid


@dataclass(frozen=True)
class Windows:
    """How a grid of rows x columns is cut into windows of side x side places."""

    rows: int
    columns: int
    side: int
    shift: int

    @property
    def padded(self) -> tuple[int, int]:
        """Rows and columns of the grid that is filled up to whole windows."""
        return self.rows + -self.rows % self.side, self.columns + -self.columns % self.side

    @property
    def shifts(self) -> tuple[int, int]:
        """How far the grid is rolled upwards and to the left."""
        down, right = (self.shift if size > self.side else 0 for size in self.padded)
        return down, right

    @property
    def has_padding(self) -> bool:
        return self.padded != (self.rows, self.columns)

    def cut(self, grid: Float[Tensor, "batch rows columns width"]) -> Float[Tensor, "batch_windows places width"]:
        """The windows of all examples, those of one example together."""
        return self._cut_padded(pad_grid(grid, self.side))

    def join(self, windows: Float[Tensor, "batch_windows places width"]) -> Float[Tensor, "batch rows columns width"]:
        """The grid whose windows these are, without its filling."""
        rows, columns = self.padded
        grid = windows.unflatten(0, (-1, rows // self.side, columns // self.side)).unflatten(3, (self.side, self.side))
        grid = grid.transpose(2, 3).flatten(3, 4).flatten(1, 2)
        return grid.roll(self.shifts, dims=(1, 2))[:, : self.rows, : self.columns]

    def places(self, device: torch.device | None = None) -> Int[Tensor, "windows places"]:
        """Where on the grid each place of each window is; -1 in the filling."""
        places = torch.arange(self.rows * self.columns, device=device).reshape(1, self.rows, self.columns, 1)
        return self._cut_padded(pad_grid(places + 1, self.side))[..., 0] - 1

    def allow(self, batch: int, device: torch.device | None = None) -> Allow:
        """Only pairs of places that the roll has left neighbours."""
        if not any(self.shifts):
            return Allow()
        regions = torch.zeros(1, *self.padded, 1, dtype=torch.int64, device=device)
        for dim, (size, shift) in enumerate(zip(self.padded, self.shifts, strict=True), start=1):
            wrapped = (torch.arange(size, device=device) < shift).long()
            regions = 2 * regions + wrapped.reshape(-1, *(1,) * (3 - dim))
        inside = self._cut_padded(regions)[..., 0]
        together = inside[:, :, None] == inside[:, None, :]
        return Allow(pairs=_for_each_example(together, batch))

    def relation(self, inside: DotRelation) -> GroupedRelation:
        """What was computed inside the windows, as a relation over the grid; "padding", if any, is its first place."""
        places = self.places(inside.queries.device)
        extras = int(self.has_padding)
        num_places = extras + self.rows * self.columns
        queries = torch.where(places < 0, places, places + extras)
        return GroupedRelation(inside, queries, places + extras, num_places, num_places)

    def axis(self, cell: int) -> Grid:
        """The places of that relation, each of cell x cell pixels; the last ones may lie beyond the picture's edge."""
        extras = ("padding",) if self.has_padding else ()
        return Grid(self.rows, self.columns, self.rows * cell, self.columns * cell, extras)

    def _cut_padded(self, grid: Tensor) -> Tensor:
        down, right = self.shifts
        grid = grid.roll((-down, -right), dims=(1, 2))
        grid = grid.unflatten(1, (-1, self.side)).unflatten(3, (-1, self.side))
        return grid.transpose(2, 3).flatten(3, 4).flatten(0, 2)


def _for_each_example(
    together: Bool[Tensor, "windows queries keys"], batch: int
) -> Bool[Tensor, "batch_windows 1 queries keys"]:
    return together.expand(batch, *together.shape).flatten(0, 1)[:, None]


class WindowAttention(nn.Module, ABC):
    """Multi-head self-attention inside windows; how scores are made and biased is the subclass's."""

    def __init__(self, width: int, num_heads: int, scale: float, *, axis: str, dropout_rate: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.scale = scale
        self.dropout_rate = dropout_rate
        self.output = Linear(width, width)
        self.tap = Tap(axis, axis)

    @abstractmethod
    def project(self, inputs: Float[Tensor, "windows places width"]) -> tuple[Heads, Heads, Heads]:
        """Queries, keys and values; scores are `scale` times their dot products."""

    @abstractmethod
    def bias(self) -> Float[Tensor, "1 heads places places"]:
        """What is added to the scores of every window."""

    def forward(
        self, inputs: Float[Tensor, "batch rows columns width"], windows: Windows
    ) -> Float[Tensor, "batch rows columns width"]:
        queries, keys, values = self.project(windows.cut(inputs))
        allow, bias = windows.allow(len(inputs), inputs.device), self.bias()
        rate = self.dropout_rate if self.training else 0.0
        if self.tap.edited:
            context = self._edited(windows.relation(DotRelation(queries, keys, self.scale, allow, bias)), values, rate)
        else:
            context = attend(queries, keys, values, allow=allow, bias=bias, scale=self.scale, dropout_rate=rate)
        if self.tap.open:
            inside = DotRelation(queries.detach(), keys.detach(), self.scale, allow, bias.detach())
            self.tap.emit(lambda: windows.relation(inside), values, context)
        return windows.join(self.output(merge_heads(context)))

    def _edited(self, grouped: GroupedRelation, values: Heads, dropout_rate: float) -> Heads:
        """The context of what the edits leave: inside windows if they leave windows, else over the whole grid."""
        relation = self.tap.change(grouped)
        if isinstance(relation, GroupedRelation):
            return attend_to(relation.inner, values, dropout_rate)
        return context_in_groups(relation, values, grouped.query_places, grouped.key_places, dropout_rate)
