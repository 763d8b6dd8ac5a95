"""Windows of other people's models, put back on their grid as a `GroupedRelation`.

A layer that has a `window_size` (and perhaps a `shift_size`) and is given a grid cuts it into windows: Swin and Swin V2
of transformers, timm and torchvision, the blocks of SAM. An index is filled up, rolled and cut like the grid was; where
the numbers do not come out, the relation stays as it was heard, a window an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from regard.core.grouped import GroupedRelation
from regard.core.relations import Relation
from regard.recording.foreign.layers import Running

PADDING = "padding"
"""The place that stands for all filling, the first one where there is any."""


@dataclass(frozen=True)
class Cut:
    """How a grid is cut into windows; timm rolls it before filling it up, all others after that."""

    rows: int
    columns: int
    window: tuple[int, int]
    shift: tuple[int, int]
    rolls_first: bool

    @property
    def filling(self) -> tuple[int, int]:
        return -self.rows % self.window[0], -self.columns % self.window[1]

    @property
    def extras(self) -> int:
        return int(any(self.filling))

    def places(self, device: torch.device) -> Int[Tensor, "windows places"]:
        """Where on the grid each place of each window lies; -1 in the filling."""
        index = torch.arange(self.rows * self.columns, device=device).reshape(self.rows, self.columns)
        down, right = self.filling
        back = tuple(-shift for shift in self.shift)
        if self.rolls_first:
            index = index.roll(back, dims=(0, 1))
        index = F.pad(index, (0, right, 0, down), value=-1)
        if not self.rolls_first:
            index = index.roll(back, dims=(0, 1))
        windows = index.unflatten(1, (-1, self.window[1])).unflatten(0, (-1, self.window[0])).transpose(1, 2)
        return windows.flatten(2, 3).flatten(0, 1)


def on_the_grid(relation: Relation, layers: Sequence[Running]) -> tuple[Relation, Cut | None]:
    """The relation over the whole grid, with how it was cut, if the layer or one around it cuts windows."""
    for layer in reversed(layers):
        cut = _cut(layer)
        if cut is None:
            continue
        places = cut.places(torch.device("cpu"))
        windows, area = places.shape
        if (relation.num_queries, relation.num_keys) == (area, area) and relation.batch == _examples(layer) * windows:
            queries = torch.where(places < 0, places, places + cut.extras)
            size = cut.extras + cut.rows * cut.columns
            return GroupedRelation(relation, queries, places + cut.extras, size, size), cut
    return relation, None


def cut_of(relation: Relation, layers: Sequence[Running]) -> Cut | None:
    """How the grid was cut that a relation already stands on."""
    for layer in reversed(layers):
        cut = _cut(layer)
        if cut is not None and relation.num_keys == cut.extras + cut.rows * cut.columns:
            return cut
    return None


def _cut(layer: Running) -> Cut | None:
    window = _pair(getattr(layer.module, "window_size", None))
    grid = _grid(layer)
    if window is None or grid is None or not all(window):
        return None
    shift = _pair(getattr(layer.module, "shift_size", 0)) or (0, 0)
    library = type(layer.module).__module__.split(".")[0]
    if library == "torchvision":
        # Its shift is left out, direction by direction, where one window covers the grid.
        padded = [size + -size % side for size, side in zip(grid, window, strict=True)]
        shift = tuple(0 if w >= size else s for s, w, size in zip(shift, window, padded, strict=True))  # type: ignore[assignment]
    return Cut(*grid, window, shift, rolls_first=library == "timm")


def _grid(layer: Running) -> tuple[int, int] | None:
    """Rows and columns: of an input (batch, rows, columns, width), or told beside one without them."""
    inputs = layer.args[0] if layer.args else layer.kwargs.get("hidden_states")
    if not isinstance(inputs, Tensor):
        return None
    if inputs.dim() == 4:
        return inputs.shape[1], inputs.shape[2]
    told = layer.args[1] if len(layer.args) > 1 else layer.kwargs.get("input_dimensions")
    pair = _pair(told)
    return pair if inputs.dim() == 3 and pair is not None and inputs.shape[1] == pair[0] * pair[1] else None


def _examples(layer: Running) -> int:
    inputs = layer.args[0] if layer.args else layer.kwargs["hidden_states"]
    return len(inputs)


def _pair(value: Any) -> tuple[int, int] | None:
    if isinstance(value, int):
        return value, value
    if isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(part, int) for part in value):
        return value[0], value[1]
    return None
