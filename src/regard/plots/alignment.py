"""The alignment matrix: which source words a translation looked at, word by word (Bahdanau et al. 2015, figure 3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from regard.core.errors import ConfigError
from regard.plots.labels import shown
from regard.plots.matrix import GAP, ColumnLabels, checked, draw_cells, draw_row_labels, draw_values
from regard.plots.palette import Palette, ceiling, palette
from regard.plots.sheet import COLOUR_BAR_WIDTH, bar_height, colour_bar, new_sheet, weight_scale
from regard.plots.style import NAME_SIZE, longest, styled

MAX_WORDS = 150
MAX_PRINTED_VALUES = 100

_LARGEST_CELL, _SMALLEST_CELL = 0.46, 0.16
_WHOLE = 7.0  # inches that the cells of the longer side aim at


def draw_alignment(
    weights: Float[np.ndarray | Tensor, "targets sources"],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    *,
    title: str | None = None,
    links: Collection[tuple[int, int]] | None = None,
    largest: float | None = None,
    dark: bool = False,
) -> Figure:
    """Target words from top to bottom, source words from left to right, a cell the darker the larger its weight.

    `links` are pairs (source word, target word), which get an outline. `largest` is the weight of the last colour, for
    pictures that are compared; left out, it goes by these weights.
    """
    table = checked(weights, target_tokens, source_tokens, MAX_WORDS, "An alignment matrix", ("target", "source"))
    _check_links(links or (), len(source_tokens), len(target_tokens))
    colours = palette(dark)
    columns, rows = [shown(token) for token in source_tokens], [shown(token) for token in target_tokens]
    texts = [*columns, *rows, title or ""]
    with styled(texts):
        cell = min(_LARGEST_CELL, max(_SMALLEST_CELL, _WHOLE / max(1, *table.shape)))
        points = min(13.0, max(7.0, cell * 30))
        names = ColumnLabels.fit(columns, cell, points)
        width, height = len(columns) * cell, max(len(rows) * cell, _LARGEST_CELL)
        before = max(longest(rows, points) + GAP, 0.25)
        after = max(names.overhang, 0.15 + COLOUR_BAR_WIDTH)
        legend = 0.32 if links else 0.0
        below = max(height + legend, bar_height(height))

        sheet = new_sheet(before + width + after, names.height + below, title or "", colours, texts)
        page, left, top = sheet.axes, sheet.left + before, sheet.top + names.height
        scale = weight_scale(ceiling(float(table.max(initial=0.0)) if largest is None else largest))
        names.draw(page, left, top, cell, colours.ink)
        draw_row_labels(page, rows, left, top, cell, points, colours.ink)
        draw_cells(page, table, left, top, cell, scale, colours)
        if table.size <= MAX_PRINTED_VALUES and cell >= 0.4:
            draw_values(page, table, left, top, cell, scale, colours)
        if not table.size:
            side = "target" if not rows else "source"
            page.text(left, top + height / 2, f"no {side} words", size=points, color=colours.muted, va="center")
        if links:
            _draw_links(page, links, left, top, cell, len(rows), colours)
        colour_bar(sheet, left + width + 0.15, top, bar_height(height), scale, colours)
    return sheet.figure


def _draw_links(
    page: Axes,
    links: Collection[tuple[int, int]],
    left: float,
    top: float,
    cell: float,
    num_rows: int,
    colours: Palette,
) -> None:
    inset, line = 0.05 * cell, max(1.0, 4.5 * cell)
    side = cell - 2 * inset
    for source, target in sorted(links):
        corner = (left + source * cell + inset, top + target * cell + inset)
        page.add_patch(Rectangle(corner, side, side, fill=False, edgecolor=colours.outline, linewidth=line))
    below = top + num_rows * cell + 0.13
    page.add_patch(Rectangle((left, below), 0.13, 0.13, fill=False, edgecolor=colours.outline, linewidth=1.6))
    page.text(left + 0.21, below + 0.065, "word link", size=NAME_SIZE, color=colours.muted, va="center_baseline")


def _check_links(links: Collection[tuple[int, int]], num_sources: int, num_targets: int) -> None:
    for source, target in links:
        if not (0 <= source < num_sources and 0 <= target < num_targets):
            raise ConfigError(
                f"The link {source}-{target} is outside the matrix of {num_sources} source and {num_targets} target "
                f"words; links are pairs (source word, target word), counted from 0."
            )
