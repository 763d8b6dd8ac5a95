"""What is on a figure, for tests: its texts and where they stand, its colours."""

from __future__ import annotations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

SLIDE = (13.33, 7.5)
"""Inches of a slide."""


def rendered(figure: Figure) -> np.ndarray:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3] / 255


def texts(figure: Figure) -> list[Text]:
    """Every text that is seen: labels, names, ticks."""
    found: list[Text] = []
    for axes in figure.axes:
        found += axes.texts
        if axes.axison:
            for axis in (axes.xaxis, axes.yaxis):
                low, high = sorted(axis.get_view_interval())
                found += [
                    tick.label1 if tick.label1.get_visible() else tick.label2
                    for tick in axis.get_major_ticks()
                    if low <= tick.get_loc() <= high and (tick.label1.get_visible() or tick.label2.get_visible())
                ]
                found.append(axis.label)
    return [text for text in found if text.get_visible() and text.get_text()]


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in texts(figure)]


def box(text: Text) -> Bbox:
    return text.get_window_extent()


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of level or upright texts that lie on each other; slanted ones have boxes larger than they are."""
    level = [text for text in texts(figure) if text.get_rotation() in (0.0, 90.0)]
    boxes = [box(text).padded(-0.5) for text in level]
    return [
        (level[first].get_text(), level[second].get_text())
        for first in range(len(level))
        for second in range(first)
        if boxes[first].overlaps(boxes[second])
    ]


def outside(figure: Figure) -> list[str]:
    """Texts that stick out of the picture."""
    whole = figure.bbox.padded(1.0)
    return [
        text.get_text()
        for text in texts(figure)
        for corners in [box(text)]
        if corners.x0 < whole.x0 or corners.y0 < whole.y0 or corners.x1 > whole.x1 or corners.y1 > whole.y1
    ]


def smallest_on_a_slide(figure: Figure) -> float:
    """Points of the smallest text when the figure fills a slide."""
    width, height = figure.get_size_inches()
    return min(text.get_size() for text in texts(figure)) * min(SLIDE[0] / width, SLIDE[1] / height)
