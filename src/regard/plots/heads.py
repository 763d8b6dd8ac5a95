"""All heads of one tap side by side, on one scale and with one set of words, so that they can be compared."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from regard.plots.labels import shown
from regard.plots.matrix import GAP, ColumnLabels, draw_cells, draw_row_labels
from regard.plots.palette import ceiling, palette
from regard.plots.sheet import COLOUR_BAR_WIDTH, bar_height, colour_bar, new_sheet, weight_scale
from regard.plots.style import NAME_SIZE, longest, styled
from regard.plots.view import view
from regard.recording import Recording

MAX_POSITIONS = 512

# Inches that all maps together aim at, and the smallest cell that still has room for a word at its side.
_WHOLE_WIDTH, _WHOLE_HEIGHT = 13.0, 7.0
_SMALLEST_LABELLED = 0.1
_SPACE = 0.16
_NAME_HEIGHT = 0.28


def draw_heads(
    recording: Recording,
    address: str,
    *,
    example: int = 0,
    title: str | None = None,
    largest: float | None = None,
    dark: bool = False,
) -> Figure:
    """Each head as a small map: queries from top to bottom, keys from left to right.

    Where there are too many positions for words at the sides, colours go by the square root of the weight, because
    attention that is spread over many keys would be invisible otherwise. `largest` is the weight of the last colour,
    for pictures that are compared.
    """
    drawn = view(recording, address, example, MAX_POSITIONS, "a picture of heads")
    num_heads, num_rows, num_columns = drawn.weights.shape
    rows, columns = [shown(text, 14) for text in drawn.rows], [shown(text, 14) for text in drawn.columns]
    colours = palette(dark)
    across, cell = _arranged(num_heads, max(1, num_rows), max(1, num_columns))
    down = math.ceil(num_heads / across)
    many = cell < _SMALLEST_LABELLED
    if many:
        rows, columns = [], []
    heading = title if title is not None else f"{address}: {drawn.queries} (rows) to {drawn.keys} (columns)"
    texts = [*rows, *columns, heading]
    heads = [f"head {head}" if num_heads > 1 else "" for head in range(num_heads)]
    with styled(texts):
        points = min(12.0, max(6.5, cell * 36))
        names = ColumnLabels.fit(columns, cell, points) if columns else None
        width, height = num_columns * cell, num_rows * cell
        above = names.height if names else GAP
        before = longest(rows, points) + GAP if rows else 0.0
        name_height = _NAME_HEIGHT if num_heads > 1 else 0.0
        step_across = max(width, longest(heads, NAME_SIZE)) + _SPACE
        step_down = height + name_height + _SPACE / 2
        edge = before + across * step_across - _SPACE
        after = max(0.15 + COLOUR_BAR_WIDTH, (names.overhang if names else 0.0))
        below = max(down * step_down - _SPACE / 2, bar_height(down * step_down))

        sheet = new_sheet(edge + after, above + below, heading, colours, texts)
        page, left, top = sheet.axes, sheet.left + before, sheet.top + above
        most = float(drawn.weights.max(initial=0.0)) if largest is None else largest
        scale = weight_scale(ceiling(most), square_root=many)
        for head, weights in enumerate(drawn.weights):
            row, column = divmod(head, across)
            map_left, map_top = left + column * step_across, top + row * step_down
            draw_cells(page, weights, map_left, map_top, cell, scale, colours)
            middle, under = map_left + width / 2, map_top + height + 0.05
            page.text(middle, under, heads[head], size=NAME_SIZE, color=colours.muted, ha="center", va="top")
            if row == 0 and names:
                names.draw(page, map_left, map_top, cell, colours.ink)
            if column == 0:
                draw_row_labels(page, rows, map_left, map_top, cell, points, colours.ink)
        colour_bar(sheet, sheet.left + edge + 0.15, top, bar_height(down * step_down), scale, colours)
    return sheet.figure


def _arranged(heads: int, rows: int, columns: int) -> tuple[int, float]:
    """Maps in a row, and the side of a cell in inches: the arrangement that leaves the cells largest."""

    def cell(across: int) -> float:
        down = math.ceil(heads / across)
        return min(0.32, _WHOLE_WIDTH / (across * columns), _WHOLE_HEIGHT / (down * rows))

    # Places that stay empty count against an arrangement; of equals, the one nearest to the shape of a slide.
    best = max(
        range(1, heads + 1),
        key=lambda n: (
            round(cell(n) * (1 - 0.4 * (-heads % n) / heads), 6),
            -abs(math.log(n * columns / (math.ceil(heads / n) * rows * 1.6))),
        ),
    )
    return best, cell(best)
