"""What every picture is drawn on: a figure with a heading, a foot that says which font is missing, and a colour bar."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LinearSegmentedColormap, Normalize, PowerNorm
from matplotlib.figure import Figure

from regard.plots.fonts import missing_font
from regard.plots.palette import Palette
from regard.plots.style import DOTS_PER_INCH, NAME_SIZE, TITLE_SIZE, no_glyph_warnings, text_size, wrapped

if TYPE_CHECKING:
    from matplotlib.backend_bases import RendererBase

MARGIN = 0.15
COLOUR_BAR_WIDTH = 0.9
"""Inches that a colour bar needs with its ticks and name."""

FOOT = "foot"
"""The mark of the sentence about fonts; an SVG is read with the fonts of the reader and goes without it."""

_NARROWEST_HEADING = 4.0
_FOOT_SIZE = 9.0


class Picture(Figure):
    """A figure that draws letters without a font as boxes, without a warning for each of them."""

    def draw(self, renderer: RendererBase) -> None:
        with no_glyph_warnings():
            super().draw(renderer)


@dataclass(frozen=True)
class Sheet:
    """A figure and axes that cover it, in inches from its top left corner: for text, frames and maps."""

    figure: Picture
    axes: Axes
    left: float
    """Where the room under the heading begins."""
    top: float


def new_sheet(width: float, height: float, heading: str, colours: Palette, texts: Iterable[str]) -> Sheet:
    """A sheet with room for `width` x `height` inches under its heading; `texts` are all labels that it will hold."""
    lines = wrapped(heading, TITLE_SIZE, max(width, _NARROWEST_HEADING)) if heading else ""
    foot = missing_font([*texts, heading])
    heading_width, heading_height = text_size(lines, TITLE_SIZE) if lines else (0.0, 0.0)
    top = MARGIN + (heading_height + 0.17 if lines else 0.0)
    whole_width = max(width, heading_width) + 2 * MARGIN
    foot = wrapped(foot, _FOOT_SIZE, max(whole_width - 2 * MARGIN, 2.0), lines=9)
    foot_width, foot_height = text_size(foot, _FOOT_SIZE) if foot else (0.0, 0.0)
    whole_width = max(whole_width, foot_width + 2 * MARGIN)
    whole_height = top + height + MARGIN + (foot_height + MARGIN if foot else 0.0)
    figure = Picture(figsize=(whole_width, whole_height), dpi=DOTS_PER_INCH, facecolor=colours.background, layout=None)
    axes = inch_axes(figure, 0.0, 0.0, whole_width, whole_height)
    axes.set_axis_off()
    axes.set_xlim(0.0, whole_width)
    axes.set_ylim(whole_height, 0.0)
    axes.set_autoscale_on(False)
    if lines:
        axes.text(MARGIN, MARGIN, lines, size=TITLE_SIZE, color=colours.ink, ha="left", va="top")
    if foot:
        below = whole_height - MARGIN
        axes.text(MARGIN, below, foot, size=_FOOT_SIZE, color=colours.muted, ha="left", va="bottom", gid=FOOT)
    return Sheet(figure, axes, MARGIN, top)


def inch_axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes placed by inches from the top left corner of the figure."""
    whole_width, whole_height = figure.get_size_inches()
    bottom = whole_height - top - height
    return figure.add_axes((left / whole_width, bottom / whole_height, width / whole_width, height / whole_height))


def colour_map(stops: Iterable[str]) -> LinearSegmentedColormap:
    return LinearSegmentedColormap.from_list("regard", list(stops), N=512)


def weight_map(colours: Palette) -> LinearSegmentedColormap:
    """From the background for zero to the colour of the largest weight."""
    return colour_map(colours.weights)


def weight_scale(largest: float, *, square_root: bool = False) -> Normalize:
    """From weight to place on the map; the square root shows thin attention over many positions."""
    return PowerNorm(0.5, 0.0, largest, clip=True) if square_root else Normalize(0.0, largest, clip=True)


def bar_height(height: float) -> float:
    """Inches for a colour bar beside something of this height, ticks and name included: never less than they need."""
    return min(2.6, max(1.5, height))


def colour_bar(
    sheet: Sheet,
    left: float,
    top: float,
    height: float,
    scale: Normalize,
    colours: Palette,
    name: str = "attention weight",
) -> None:
    """A bar from zero to the largest weight, zero at the bottom."""
    axes = inch_axes(sheet.figure, left, top, 0.14, height)
    bar = sheet.figure.colorbar(ScalarMappable(scale, weight_map(colours)), cax=axes)
    largest = float(scale.vmax or 1.0)
    ticks = [0.0, largest / 4, largest] if isinstance(scale, PowerNorm) else [0.0, largest / 2, largest]
    bar.set_ticks(ticks, labels=[f"{tick:.3g}" for tick in ticks])
    finish_bar(bar, name, colours)


def finish_bar(bar: Colorbar, name: str, colours: Palette) -> None:
    """The look of ticks and name, alike for every bar."""
    bar.ax.minorticks_off()
    bar.ax.tick_params(length=2.5, width=0.6, pad=2, labelsize=NAME_SIZE - 1)
    bar.ax.tick_params(color=colours.muted, labelcolor=colours.muted)
    bar.outline.set(edgecolor=colours.line, linewidth=0.8)
    bar.set_label(name, size=NAME_SIZE, color=colours.muted, labelpad=3)
