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
from regard.plots.matrix import shrunk
from regard.plots.palette import Palette, ceiling, palette
from regard.plots.sheet import COLOUR_BAR_WIDTH, bar_height, colour_bar, new_sheet, weight_map, weight_scale
from regard.plots.style import NAME_SIZE, longest, styled
from regard.plots.view import View, matching, view
from regard.recording import Recording

MAX_POSITIONS = 1024
MAX_THUMBNAILS = 1024

_SPACE = 0.09
_WHOLE_WIDTH, _WHOLE_HEIGHT = 9.0, 5.4  # inches that all thumbnails together aim at: a slide's proportions


def draw_layers(
    recording: Recording,
    *,
    example: int = 0,
    taps: str = "*cross*",
    title: str | None = None,
    largest: float | None = None,
    dark: bool = False,
) -> Figure:
    """Thumbnails of every head of the taps whose address matches; each is a map, queries from top to bottom.

    `largest` is the weight of the last colour, for pictures that are compared.
    """
    addresses = matching(recording, taps)
    most_heads = max(recording[address].shape[1] for address in addresses)
    if len(addresses) * most_heads > MAX_THUMBNAILS:
        raise ConfigError(
            f"{len(addresses)} taps of up to {most_heads} heads are more than the {MAX_THUMBNAILS} thumbnails of one "
            f"picture. Choose fewer taps with a pattern such as taps={addresses[0]!r}."
        )
    views = [view(recording, address, example, MAX_POSITIONS, "a picture of layers") for address in addresses]
    side = max(0.3, min(1.1, _WHOLE_WIDTH / most_heads - _SPACE, _WHOLE_HEIGHT / len(addresses) - _SPACE))
    sizes = [_size(one, side) for one in views]
    step = max(0.3, *(width for width, _ in sizes)) + _SPACE
    heights = [max(0.24, height) for _, height in sizes]
    colours = palette(dark)
    heading = title if title is not None else "Every layer (rows) by every head (columns)"
    labels = [shown(address, 36) for address in addresses]
    texts = [heading, *labels]
    with styled(texts):
        before = longest(labels, NAME_SIZE) + 0.1
        edge = before + most_heads * step - _SPACE
        inside = sum(heights) + (len(heights) - 1) * _SPACE
        numbers = 0.24  # inches above the maps for the numbers of heads
        height = numbers + max(inside, bar_height(inside))

        sheet = new_sheet(edge + 0.15 + COLOUR_BAR_WIDTH, height, heading, colours, texts)
        page, left, top = sheet.axes, sheet.left + before, sheet.top + numbers
        most = max(float(one.weights.max(initial=0.0)) for one in views) if largest is None else largest
        scale = weight_scale(ceiling(most), square_root=True)
        for head in range(most_heads):
            middle = left + head * step + (step - _SPACE) / 2
            page.text(middle, top - 0.06, str(head), size=NAME_SIZE, color=colours.muted, ha="center", va="baseline")
        above = top
        for label, drawn, (width, map_height), place in zip(labels, views, sizes, heights, strict=True):
            middle = above + place / 2
            page.text(left - 0.1, middle, label, size=NAME_SIZE, color=colours.ink, ha="right", va="center_baseline")
            for head, weights in enumerate(drawn.weights):
                # A map that is narrower than others sits in the middle of its place.
                x, y = left + head * step + (step - _SPACE - width) / 2, middle - map_height / 2
                _draw_thumbnail(page, weights, (x, x + width, y + map_height, y), side, scale, colours)
            above += place + _SPACE
        colour_bar(sheet, sheet.left + edge + 0.15, top, bar_height(inside), scale, colours)
    return sheet.figure


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
