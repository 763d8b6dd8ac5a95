"""Words with lines between them: on the left those that look, on the right those that are looked at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from torch import Tensor

from regard.core.errors import ConfigError
from regard.plots.labels import shown
from regard.plots.matrix import checked
from regard.plots.palette import palette
from regard.plots.sheet import new_sheet
from regard.plots.style import NAME_SIZE, longest, styled

MAX_WORDS = 150
FAINTEST = 0.02
"""Lines of less than this part of the largest weight are left out."""

_BETWEEN = 3.4
_TALLEST, _LOWEST = 0.36, 0.15  # inches from word to word
_WHOLE = 6.2
_GAP = 0.12
_HEADING = 0.3


def draw_words(
    weights: Float[np.ndarray | Tensor, "queries keys"],
    query_words: Sequence[str],
    key_words: Sequence[str],
    *,
    query: int | None = None,
    roles: tuple[str, str] = ("looks", "is looked at"),
    title: str | None = None,
    largest: float | None = None,
    dark: bool = False,
) -> Figure:
    """A line from each word to each that it looks at, the wider and stronger the larger the weight.

    With `query`, only the lines of that word are drawn. `roles` are the names of the two columns. `largest` is the
    weight of the widest line, for pictures that are compared.
    """
    table = checked(weights, query_words, key_words, MAX_WORDS, "A picture of words")
    if query is not None and not 0 <= query < len(query_words):
        raise ConfigError(f"There is no word {query} among the {len(query_words)} that look, counted from 0.")
    colours = palette(dark)
    left_words, right_words = [shown(word, 24) for word in query_words], [shown(word, 24) for word in key_words]
    texts = [*left_words, *right_words, *roles, title or ""]
    count = max(len(left_words), len(right_words), 1)
    step = min(_TALLEST, max(_LOWEST, _WHOLE / count))
    points = min(15.0, step * 44)
    with styled(texts):
        left_width = max(longest(left_words, points), longest(roles[:1], NAME_SIZE))
        right_width = max(longest(right_words, points), longest(roles[1:], NAME_SIZE))
        width = left_width + _BETWEEN + right_width
        sheet = new_sheet(width, _HEADING + count * step, title or "", colours, texts)
        page, top = sheet.axes, sheet.top + _HEADING
        start, end = sheet.left + left_width, sheet.left + left_width + _BETWEEN
        for words, x, side, role in ((left_words, start, "right", roles[0]), (right_words, end, "left", roles[1])):
            page.text(x, sheet.top, role, size=NAME_SIZE, color=colours.muted, ha=side, va="top")
            for place, word in enumerate(words):
                strong = query is None or words is right_words or place == query
                colour = colours.ink if strong else colours.muted
                page.text(x, _height(place, len(words), count, step, top), word, size=points, color=colour, ha=side,
                          va="center_baseline")  # fmt: skip
        most = float(table.max(initial=0.0)) if largest is None else largest
        rows = range(len(left_words)) if query is None else [query]
        drawn = sorted(
            (float(table[row, column]), row, column)
            for row in rows
            for column in range(len(right_words))
            if table[row, column] > 0 and table[row, column] >= FAINTEST * most
        )
        lines = [
            _curve(
                (start + _GAP, _height(row, len(left_words), count, step, top)),
                (end - _GAP, _height(column, len(right_words), count, step, top)),
            )
            for _, row, column in drawn
        ]
        strengths = np.array([min(1.0, weight / most) for weight, _, _ in drawn])
        page.add_collection(
            LineCollection(
                lines,
                colors=[(*to_rgb(colours.mark), 0.12 + 0.88 * strength) for strength in strengths],
                linewidths=0.4 + min(7.0, 16 * step) * strengths,
                capstyle="round",
            )
        )
    return sheet.figure


def _height(place: int, own: int, count: int, step: float, top: float) -> float:
    """The shorter column stands in the middle of the longer one."""
    return top + (place + 0.5 + (count - own) / 2) * step


def _curve(start: tuple[float, float], end: tuple[float, float]) -> Float[np.ndarray, "points 2"]:
    """A line that leaves and arrives level, so that neighbours can be told apart."""
    along = np.linspace(0.0, 1.0, 33)
    eased = along**2 * (3 - 2 * along)
    return np.stack([start[0] + (end[0] - start[0]) * along, start[1] + (end[1] - start[1]) * eased], axis=1)
