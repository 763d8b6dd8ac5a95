"""Which class is taken for which: a row for each class that pictures are of, a column for each that was said.

Colours and numbers are shares of a row, so that a rare class is seen as well as a common one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from regard.core.errors import ConfigError
from regard.plots.labels import shown
from regard.plots.matrix import GAP, ColumnLabels, draw_cells, draw_row_labels, draw_values
from regard.plots.palette import palette
from regard.plots.sheet import COLOUR_BAR_WIDTH, bar_height, colour_bar, new_sheet, weight_scale
from regard.plots.style import longest, styled

_WHOLE = 9.0
_SMALLEST_LABELLED, _SMALLEST_NUMBERED = 0.1, 0.34
MAX_CLASSES = 1000


def draw_confusion(
    confusion: Int[np.ndarray, "classes classes"] | Sequence[Sequence[int]],
    class_names: Sequence[str],
    *,
    title: str | None = None,
    dark: bool = False,
) -> Figure:
    """The matrix as a picture; `regard eval --json` and `ClassificationRun.evaluate` give both arguments."""
    counts = np.asarray(confusion)
    size = len(class_names)
    if counts.shape != (size, size) or not 1 <= size <= MAX_CLASSES:
        raise ConfigError(
            f"A confusion matrix of {counts.shape} does not fit {size} classes; it has a row and a column for each, "
            f"and is drawn for at most {MAX_CLASSES}."
        )
    shares = shares_of_rows(counts)
    right = float(np.trace(counts)) / max(counts.sum(), 1)
    heading = title if title is not None else f"{100 * right:.1f} % of {counts.sum():,} pictures right; rows are true"
    names = [shown(name, 18) for name in class_names]
    colours = palette(dark)
    cell = min(0.5, _WHOLE / size)
    points = min(11.0, max(6.5, cell * 26))
    labelled = cell >= _SMALLEST_LABELLED
    with styled([*names, heading]):
        columns = ColumnLabels.fit(names, cell, points) if labelled else None
        before = longest(names, points) + GAP if labelled else 0.0
        above = columns.height if columns else GAP
        edge = before + size * cell + (columns.overhang if columns else 0.0) + 0.15
        below = max(size * cell, bar_height(size * cell))
        sheet = new_sheet(edge + COLOUR_BAR_WIDTH, above + below, heading, colours, [*names, heading])
        page, left, top = sheet.axes, sheet.left + before, sheet.top + above
        scale = weight_scale(1.0)
        draw_cells(page, shares, left, top, cell, scale, colours)
        if columns:
            columns.draw(page, left, top, cell, colours.ink)
            draw_row_labels(page, names, left, top, cell, points, colours.ink)
        if cell >= _SMALLEST_NUMBERED:
            draw_values(page, shares, left, top, cell, scale, colours)
        colour_bar(sheet, sheet.left + edge, top, bar_height(size * cell), scale, colours, "share of the class")
    return sheet.figure


def shares_of_rows(counts: Int[np.ndarray, "classes classes"]) -> Float[np.ndarray, "classes classes"]:
    """Each row divided by its sum; a class without pictures has a row of zeros."""
    sums = counts.sum(axis=1, keepdims=True)
    return np.divide(counts, sums, out=np.zeros(counts.shape), where=sums > 0)
