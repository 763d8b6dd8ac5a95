"""All heads of one tap side by side, on one scale and with one set of words, so that they can be compared."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from regard.plots.labels import shown
from regard.plots.matrix import GAP, ColumnLabels, draw_cells, draw_row_labels
from regard.plots.palette import ceiling, palette
from regard.plots.style import (
    COLOUR_BAR_WIDTH,
    MARGIN,
    TITLE_SIZE,
    colour_bar,
    longest,
    new_figure,
    sheet,
    styled,
    text_size,
    weight_scale,
    wrapped,
)
from regard.plots.view import view
from regard.recording import Recording

MAX_POSITIONS = 512

# Inches that all maps together aim at, and the smallest cell that still has room for a word at its side.
_WHOLE_WIDTH, _WHOLE_HEIGHT = 13.0, 7.0
_SMALLEST_LABELLED = 0.1
_SPACE = 0.16
_NAME_HEIGHT = 0.24


def draw_heads(
    recording: Recording, address: str, *, example: int = 0, title: str | None = None, dark: bool = False
) -> Figure:
    """Each head as a small map: queries from top to bottom, keys from left to right.

    Where there are too many positions for words at the sides, colours go by the square root of the weight, because
    attention that is spread over many keys would be invisible otherwise.
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
    heading = title if title is not None else f"{address}: where {drawn.queries} looks in {drawn.keys}"
    with styled([*rows, *columns, heading]):
        points = min(11.0, max(6.5, cell * 34))
        names = ColumnLabels.fit(columns, cell, points) if columns else None
        width, height = num_columns * cell, num_rows * cell
        above = names.height if names else GAP
        left = MARGIN + (longest(rows, points) + GAP if rows else 0.0)
        name_height = _NAME_HEIGHT if num_heads > 1 else 0.0
        step_across, step_down = width + _SPACE, height + name_height + _SPACE / 2
        edge = left + across * step_across - _SPACE
        right = max(edge + 0.15 + COLOUR_BAR_WIDTH, edge + (names.overhang if names else 0.0))
        lines = wrapped(heading, TITLE_SIZE, max(right - MARGIN, 4.0))
        heading_width, heading_height = text_size(lines, TITLE_SIZE) if lines else (0.0, 0.0)
        top = MARGIN + (heading_height + 0.15 if lines else 0.0) + above
        bar_height = min(2.4, max(1.0, down * step_down - name_height))
        bottom = max(top + down * step_down - _SPACE / 2, top + bar_height)

        figure = new_figure(max(right, MARGIN + heading_width) + MARGIN, bottom + MARGIN, colours)
        page = sheet(figure)
        scale = weight_scale(ceiling(float(drawn.weights.max(initial=0.0))), square_root=many)
        page.text(MARGIN, MARGIN, lines, size=TITLE_SIZE, color=colours.ink, va="top")
        for head, weights in enumerate(drawn.weights):
            row, column = divmod(head, across)
            map_left, map_top = left + column * step_across, top + row * step_down
            draw_cells(page, weights, map_left, map_top, cell, scale, colours)
            name = f"head {head}" if num_heads > 1 else ""
            middle = map_left + width / 2
            page.text(middle, map_top + height + 0.05, name, size=9, color=colours.muted, ha="center", va="top")
            if row == 0 and names:
                names.draw(page, map_left, map_top, cell, colours.ink)
            if column == 0:
                draw_row_labels(page, rows, map_left, map_top, cell, points, colours.ink)
        colour_bar(figure, edge + 0.15, top, bar_height, scale, colours)
    return figure


def _arranged(heads: int, rows: int, columns: int) -> tuple[int, float]:
    """Maps in a row, and the side of a cell in inches: the arrangement that leaves the cells largest."""

    def cell(across: int) -> float:
        down = math.ceil(heads / across)
        return min(0.32, _WHOLE_WIDTH / (across * columns), _WHOLE_HEIGHT / (down * rows))

    # Of equally large cells, the arrangement nearest to the shape of a slide.
    best = max(
        range(1, heads + 1),
        key=lambda n: (round(cell(n), 6), -abs(math.log(n * columns / (math.ceil(heads / n) * rows * 1.6)))),
    )
    return best, cell(best)
