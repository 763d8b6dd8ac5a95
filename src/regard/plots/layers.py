"""All layers by all heads as thumbnails: one row a tap, one column a head, one scale."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from regard.core.errors import ConfigError
from regard.plots.labels import shown
from regard.plots.palette import ceiling, palette
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
from regard.plots.view import matching, view
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
    side = max(0.35, min(1.1, 12.0 / most_heads, 9.0 / len(addresses)))
    pixels = round(side * 128)
    views = [view(recording, address, example, MAX_POSITIONS, "a picture of layers") for address in addresses]
    colours = palette(dark)
    heading = title if title is not None else "Every layer (rows) by every head (columns)"
    labels = [shown(address, 36) for address in addresses]
    with styled([heading, *labels]):
        left = MARGIN + longest(labels, _LABEL_SIZE) + 0.1
        edge = left + most_heads * (side + _SPACE) - _SPACE
        right = edge + 0.15 + COLOUR_BAR_WIDTH
        lines = wrapped(heading, TITLE_SIZE, max(right - MARGIN, 4.0))
        heading_width, heading_height = text_size(lines, TITLE_SIZE) if lines else (0.0, 0.0)
        top = MARGIN + (heading_height + 0.12 if lines else 0.0) + 0.22
        inside = len(addresses) * (side + _SPACE) - _SPACE
        bar_height = min(2.4, max(1.0, inside))

        figure = new_figure(
            max(right, MARGIN + heading_width) + MARGIN, top + max(inside, bar_height) + MARGIN, colours
        )
        page = sheet(figure)
        largest = max(float(one.weights.max(initial=0.0)) for one in views)
        scale = weight_scale(ceiling(largest), square_root=True)
        page.text(MARGIN, MARGIN, lines, size=TITLE_SIZE, color=colours.ink, va="top")
        for head in range(most_heads):
            middle = left + head * (side + _SPACE) + side / 2
            page.text(middle, top - 0.06, str(head), size=9, color=colours.muted, ha="center", va="baseline")
        for place, (label, drawn) in enumerate(zip(labels, views, strict=True)):
            above = top + place * (side + _SPACE)
            page.text(
                left - 0.1,
                above + side / 2,
                label,
                size=_LABEL_SIZE,
                color=colours.ink,
                ha="right",
                va="center_baseline",
            )
            _, num_rows, num_columns = drawn.weights.shape
            cell = side / max(1, num_rows, num_columns)
            width, height = num_columns * cell, num_rows * cell
            for head, weights in enumerate(drawn.weights):
                # A map that is not square sits in the middle of its place.
                x = left + head * (side + _SPACE) + (side - width) / 2
                y = above + (side - height) / 2
                if weights.size:
                    page.imshow(
                        shrunk(weights, pixels),
                        extent=(x, x + width, y + height, y),
                        cmap=weight_map(colours),
                        norm=scale,
                        interpolation="nearest",
                        aspect="auto",
                    )
                page.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=colours.muted, linewidth=0.5))
        colour_bar(figure, edge + 0.15, top, bar_height, scale, colours)
    return figure
