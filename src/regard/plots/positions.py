"""Positional encodings as the lectures show them (deck D): the matrix, its dot products, and where the information is.

The third picture asks after how many dimensions two positions can be told apart: the variance of <p_t, p_t'>, taken
over the first k dimensions only, when the distance |t - t'| is drawn evenly from 0 to 49. Where the curve no longer
rises, further dimensions say nothing about the distance.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from torch import Tensor

from regard.core.errors import ConfigError
from regard.plots.matrix import as_array
from regard.plots.palette import Palette, palette
from regard.plots.sheet import Sheet, colour_map, finish_bar, inch_axes, new_sheet
from regard.plots.style import NAME_SIZE, styled

MAX_POSITIONS = 1024
DISTANCES = 50
"""How many distances the variance is taken over."""

_SIDE = 3.2  # inches of a panel
_LEFT, _BAR, _RIGHT, _BELOW, _ABOVE = 0.8, 0.35, 0.75, 0.6, 0.32


def draw_positions(
    encodings: Float[np.ndarray | Tensor, "positions width"], *, title: str | None = None, dark: bool = False
) -> Figure:
    """The matrix (a row a position), the dot products of all pairs, and the variance of those by dimensions used."""
    table = _checked(encodings)
    colours = palette(dark)
    curve = variance_by_width(table)
    names = ("encodings", "dot products", "variance of dot products")
    with styled([title or "", *names]):
        panel = _LEFT + _SIDE + _RIGHT
        sheet = new_sheet(3 * panel, _ABOVE + _SIDE + _BELOW, title or "", colours, [])
        spots = [(sheet.left + number * panel + _LEFT, sheet.top + _ABOVE) for number in range(3)]
        for name, (left, top) in zip(names, spots, strict=True):
            sheet.axes.text(left + _SIDE / 2, top - 0.1, name, size=NAME_SIZE + 1, color=colours.ink, ha="center")
        _draw_map(sheet, table, spots[0], ("dimension k", "position t"), colours)
        _draw_map(sheet, table @ table.T, spots[1], ("position t′", "position t"), colours)
        axes = inch_axes(sheet.figure, *spots[2], _SIDE + _BAR, _SIDE)
        _draw_curve(axes, curve, colours)
    return sheet.figure


def variance_by_width(table: Float[np.ndarray, "positions width"]) -> Float[np.ndarray, "width"]:
    """Var <p_t^{1..k}, p_t'^{1..k}> for k = 1 .. width, each distance equally likely, and each pair of a distance."""
    count, width = table.shape
    distances = range(min(DISTANCES, count))
    first, second = np.zeros(width), np.zeros(width)
    for distance in distances:
        products = np.cumsum(table[distance:] * table[: count - distance], axis=1)
        first += products.mean(axis=0) / len(distances)
        second += (products**2).mean(axis=0) / len(distances)
    return np.maximum(second - first**2, 0.0)


def _draw_map(
    sheet: Sheet,
    table: Float[np.ndarray, "rows columns"],
    spot: tuple[float, float],
    names: tuple[str, str],
    colours: Palette,
) -> None:
    """Numbers of both signs, with zero the background, and a bar beside them."""
    axes = inch_axes(sheet.figure, *spot, _SIDE, _SIDE)
    rows, columns = table.shape
    most = float(np.abs(table).max()) or 1.0
    scale, colour_of = Normalize(-most, most), colour_map(colours.signed)
    axes.imshow(table, cmap=colour_of, norm=scale, interpolation="nearest", aspect="auto",
                extent=(0, columns, rows, 0))  # fmt: skip
    _finish(axes, names, colours)
    bar_axes = inch_axes(sheet.figure, spot[0] + _SIDE + 0.1, spot[1], 0.12, _SIDE)
    bar = sheet.figure.colorbar(ScalarMappable(scale, colour_of), cax=bar_axes)
    bar.set_ticks([-most, 0.0, most], labels=[f"{tick:.3g}" for tick in (-most, 0.0, most)])
    finish_bar(bar, "", colours)


def _draw_curve(axes: Axes, curve: Float[np.ndarray, "width"], colours: Palette) -> None:
    axes.plot(np.arange(1, len(curve) + 1), curve, color=colours.mark, linewidth=2.4)
    axes.set_xlim(0, len(curve))
    axes.set_ylim(0.0, float(curve.max()) * 1.08 or 1.0)
    axes.grid(color=colours.line, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_facecolor(colours.background)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    _finish(axes, ("dimensions used, k", ""), colours)


def _finish(axes: Axes, names: tuple[str, str], colours: Palette) -> None:
    axes.locator_params(axis="x", nbins=5, steps=[1, 2, 5, 10], integer=True)
    axes.tick_params(labelsize=NAME_SIZE - 1, color=colours.muted, labelcolor=colours.muted, length=3)
    axes.set_xlabel(names[0], size=NAME_SIZE, color=colours.muted)
    axes.set_ylabel(names[1], size=NAME_SIZE, color=colours.muted)
    for spine in axes.spines.values():
        spine.set_color(colours.muted)


def _checked(encodings: Float[np.ndarray | Tensor, "positions width"]) -> Float[np.ndarray, "positions width"]:
    table = as_array(encodings)
    if table.ndim != 2 or not table.size:
        raise ConfigError(f"Encodings are a table of positions by dimensions; these have the shape {table.shape}.")
    if len(table) > MAX_POSITIONS:
        raise ConfigError(
            f"{len(table):,} positions are more than the {MAX_POSITIONS:,} of one picture; draw the first of them, "
            f"such as encodings[:{MAX_POSITIONS}]."
        )
    if not np.isfinite(table).all():
        raise ConfigError("Encodings must be finite numbers; these hold NaN or infinity.")
    return table
