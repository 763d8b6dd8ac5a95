"""A map of weights with words at its sides, drawn in inches on a sheet: the part that all pictures share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from torch import Tensor

from regard.core.errors import ConfigError
from regard.plots.palette import Palette
from regard.plots.sheet import weight_map
from regard.plots.style import longest, text_size

GAP = 0.06
"""Inches between a map and its labels."""

# More cells than this are painted as one image; fewer stay vector graphics with edges of their own.
_MAX_VECTOR_CELLS = 4096
_PIXELS_PER_INCH = 128


@dataclass(frozen=True)
class ColumnLabels:
    """How words stand over columns: flat where they fit, else slanted, else upright."""

    texts: Sequence[str]
    points: float
    angle: float
    height: float
    """Inches above the map."""
    overhang: float
    """Inches to the right of the map's edge."""

    @classmethod
    def fit(cls, texts: Sequence[str], cell: float, points: float) -> ColumnLabels:
        width, line = longest(texts, points), text_size("Ág", points)[1]
        if width + 0.08 <= cell:
            return cls(texts, points, 0.0, line + GAP, 0.0)
        if line <= cell * math.sin(math.pi / 4):
            slant = math.sin(math.pi / 4)
            reach = max(
                (text_size(text, points)[0] - (len(texts) - 1 - n) * cell / slant for n, text in enumerate(texts))
            )
            return cls(texts, points, 45.0, (width + line) * slant + GAP, max(0.0, (reach + line) * slant - cell / 2))
        return cls(texts, points, 90.0, width + GAP, 0.0)

    def draw(self, sheet: Axes, left: float, top: float, cell: float, colour: str) -> None:
        flat = self.angle == 0.0
        # A slanted word leans to the right of its foot; half a letter to the left puts it over its column.
        shift = self.points / 72 / 3 if self.angle == 45.0 else 0.0
        for place, text in enumerate(self.texts):
            sheet.text(
                left + (place + 0.5) * cell - shift,
                top - GAP,
                text,
                size=self.points,
                color=colour,
                rotation=self.angle,
                rotation_mode="anchor",
                ha="center" if flat else "left",
                va="center" if self.angle == 90.0 else "baseline",
            )


def draw_row_labels(
    sheet: Axes, texts: Sequence[str], left: float, top: float, cell: float, points: float, colour: str
) -> None:
    """Words to the left of their rows; `left` is the map's edge."""
    for place, text in enumerate(texts):
        sheet.text(
            left - GAP, top + (place + 0.5) * cell, text, size=points, color=colour, ha="right", va="center_baseline"
        )


def draw_cells(
    sheet: Axes,
    weights: Float[np.ndarray, "rows columns"],
    left: float,
    top: float,
    cell: float,
    scale: Normalize,
    colours: Palette,
) -> None:
    """Cells by weight inside a frame; zero is the background."""
    rows, columns = weights.shape
    width, height = columns * cell, rows * cell
    if not weights.size:
        return
    if weights.size <= _MAX_VECTOR_CELLS and cell >= 0.1:
        sheet.pcolormesh(
            left + cell * np.arange(columns + 1),
            top + cell * np.arange(rows + 1),
            weights,
            cmap=weight_map(colours),
            norm=scale,
            edgecolors=colours.line,
            linewidth=min(1.0, 3.0 * cell),
        )
    else:
        sheet.imshow(
            shrunk(weights, max(1, round(_PIXELS_PER_INCH * max(width, height)))),
            extent=(left, left + width, top + height, top),
            cmap=weight_map(colours),
            norm=scale,
            interpolation="nearest",
            aspect="auto",
        )
    sheet.add_patch(Rectangle((left, top), width, height, fill=False, edgecolor=colours.line, linewidth=0.8))


def draw_values(
    sheet: Axes,
    weights: Float[np.ndarray, "rows columns"],
    left: float,
    top: float,
    cell: float,
    scale: Normalize,
    colours: Palette,
) -> None:
    """The weights as numbers in their cells, small ones in small type; what rounds to zero is left blank."""
    colour_of = weight_map(colours)
    dark_ink, light_ink = "#10151c", "#ffffff"
    for (row, column), weight in np.ndenumerate(weights):
        if weight < 0.005:
            continue
        red, green, blue, _ = colour_of(scale(weight))
        bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.55
        sheet.text(
            left + (column + 0.5) * cell,
            top + (row + 0.5) * cell,
            f"{weight:.2f}".removeprefix("0"),
            size=cell * (19 if weight >= 0.1 * (scale.vmax or 1.0) else 15),
            color=dark_ink if bright else light_ink,
            ha="center",
            va="center_baseline",
        )


def shrunk(weights: Float[np.ndarray, "rows columns"], limit: int) -> Float[np.ndarray, "fewer_rows fewer_columns"]:
    """The largest weight of each block of cells, so that a single bright cell is not lost between pixels."""
    for axis in (0, 1):
        count = weights.shape[axis]
        if count > limit:
            starts = np.unique(np.linspace(0, count, limit, endpoint=False).astype(int))
            weights = np.maximum.reduceat(weights, starts, axis=axis)
    return weights


def checked(
    weights: Float[np.ndarray | Tensor, "rows columns"],
    rows: Sequence[str],
    columns: Sequence[str],
    limit: int,
    what: str,
    sides: tuple[str, str] = ("query", "key"),
) -> Float[np.ndarray, "rows columns"]:
    """The weights as an array, if there is one for each pair of words, and not too many words for a picture."""
    table = as_array(weights)
    expected = (len(rows), len(columns))
    if max(expected) > limit:
        raise ConfigError(
            f"{what} shows at most {limit} words a side, and this one has {expected[0]:,} {sides[0]} and "
            f"{expected[1]:,} {sides[1]} words. Draw a part of it, such as the first {limit} words of both."
        )
    if table.shape != expected:
        raise ConfigError(
            f"The weights have the shape {table.shape}, but there are {expected[0]} {sides[0]} words (rows) and "
            f"{expected[1]} {sides[1]} words (columns)."
        )
    if not np.isfinite(table).all():
        raise ConfigError(f"{what} is drawn of finite weights; these hold NaN or infinity.")
    return table


def as_array(values: object) -> Float[np.ndarray, "*shape"]:
    """Whatever holds numbers (a tensor on any device, in bfloat16, with a gradient) as an array."""
    return values.detach().double().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values, dtype=float)
