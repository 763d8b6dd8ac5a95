"""All layers by all heads as thumbnails: one row a tap, one column a head, one scale."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from regard.core.errors import ConfigError
from regard.plots.labels import shown
from regard.plots.palette import Palette, ceiling, palette
from regard.plots.style import (
    COLOUR_BAR_WIDTH,
    MARGIN,
    TITLE_SIZE,
    colour_bar,
    longest,
    new_figure,
    sheet,
    shrunk,
    styled,
    text_size,
    weight_map,
    weight_scale,
    wrapped,
)
from regard.plots.view import View, matching, view
from regard.recording import Recording

MAX_POSITIONS = 1024
MAX_THUMBNAILS = 1024

_SPACE = 0.09
_LABEL_SIZE = 10.0


def draw_layers(
    recording: Recording,
    *,
    example: int = 0,
    taps: str = "*cross*",
    title: str | None = None,
    dark: bool = False,
) -> Figure:
    """Thumbnails of every head of the taps whose address matches; each is a map, queries from top to bottom."""
    addresses = matching(recording, taps)
    most_heads = max(recording[address].shape[1] for address in addresses)
    if len(addresses) * most_heads > MAX_THUMBNAILS:
        raise ConfigError(
            f"{len(addresses)} taps of up to {most_heads} heads are more than the {MAX_THUMBNAILS} thumbnails of one "
            f"picture. Choose fewer taps with a pattern such as taps={addresses[0]!r}."
        )
    views = [view(recording, address, example, MAX_POSITIONS, "a picture of layers") for address in addresses]
    side = max(0.35, min(1.1, 12.0 / most_heads, 9.0 / len(addresses)))
    sizes = [_size(one, side) for one in views]
    step = max(0.3, *(width for width, _ in sizes)) + _SPACE
    heights = [max(0.22, height) for _, height in sizes]
    colours = palette(dark)
    heading = title if title is not None else "Every layer (rows) by every head (columns)"
    labels = [shown(address, 36) for address in addresses]
    with styled([heading, *labels]):
        left = MARGIN + longest(labels, _LABEL_SIZE) + 0.1
        edge = left + most_heads * step - _SPACE
        right = edge + 0.15 + COLOUR_BAR_WIDTH
        lines = wrapped(heading, TITLE_SIZE, max(right - MARGIN, 4.0))
        heading_width, heading_height = text_size(lines, TITLE_SIZE) if lines else (0.0, 0.0)
        top = MARGIN + (heading_height + 0.12 if lines else 0.0) + 0.22
        inside = sum(heights) + (len(heights) - 1) * _SPACE
        bar_height = min(2.4, max(1.0, inside))

        figure = new_figure(
            max(right, MARGIN + heading_width) + MARGIN, top + max(inside, bar_height) + MARGIN, colours
        )
        page = sheet(figure)
        largest = max(float(one.weights.max(initial=0.0)) for one in views)
        scale = weight_scale(ceiling(largest), square_root=True)
        page.text(MARGIN, MARGIN, lines, size=TITLE_SIZE, color=colours.ink, va="top")
        for head in range(most_heads):
            middle = left + head * step + (step - _SPACE) / 2
            page.text(middle, top - 0.06, str(head), size=9, color=colours.muted, ha="center", va="baseline")
        above = top
        for label, drawn, (width, height), place in zip(labels, views, sizes, heights, strict=True):
            middle = above + place / 2
            page.text(left - 0.1, middle, label, size=_LABEL_SIZE, color=colours.ink, ha="right", va="center_baseline")
            for head, weights in enumerate(drawn.weights):
                # A map that is narrower than others sits in the middle of its place.
                x, y = left + head * step + (step - _SPACE - width) / 2, middle - height / 2
                _draw_thumbnail(page, weights, (x, x + width, y + height, y), side, scale, colours)
            above += place + _SPACE
        colour_bar(figure, edge + 0.15, top, bar_height, scale, colours)
    return figure


def _size(drawn: View, side: float) -> tuple[float, float]:
    """Width and height in inches of a thumbnail whose longer side is `side`."""
    _, rows, columns = drawn.weights.shape
    cell = side / max(1, rows, columns)
    return columns * cell, rows * cell


def _draw_thumbnail(
    page: Axes,
    weights: Float[np.ndarray, "rows columns"],
    extent: tuple[float, float, float, float],
    side: float,
    scale: Normalize,
    colours: Palette,
) -> None:
    """`extent` is left, right, bottom, top."""
    left, right, bottom, top = extent
    if weights.size:
        page.imshow(
            shrunk(weights, round(side * 128)),
            extent=extent,
            cmap=weight_map(colours),
            norm=scale,
            interpolation="nearest",
            aspect="auto",
        )
    frame = Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor=colours.muted, linewidth=0.5)
    page.add_patch(frame)
