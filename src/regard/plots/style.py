"""One figure style for all pictures, whatever the user's matplotlibrc says, without a display and without pyplot.

Sizes are inches and points throughout: a picture is laid out from the measured size of its labels, so that nothing
overlaps and no space is left over. They are chosen for a slide: shown on the whole of one, even captions are legible.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from matplotlib import style as matplotlib_style
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.font_manager import FontProperties

from regard.plots.fonts import fonts
from regard.plots.labels import visible

DOTS_PER_INCH = 150
TITLE_SIZE = 15.0
NAME_SIZE = 11.5
"""Points of what names a map, an axis or a tick."""

_SETTINGS: dict[str, Any] = {
    "text.parse_math": False,
    "text.usetex": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "regard",
    "pdf.fonttype": 42,
    "figure.dpi": DOTS_PER_INCH,
    "savefig.dpi": "figure",
    "savefig.bbox": "standard",
}


@contextmanager
def styled(texts: Iterable[str] = ()) -> Iterator[None]:
    """Matplotlib's defaults with our settings, and fonts that have the letters of `texts`."""
    with no_glyph_warnings(), matplotlib_style.context(["default", {**_SETTINGS, "font.family": fonts(texts)}]):
        yield


@contextmanager
def no_glyph_warnings() -> Iterator[None]:
    """Matplotlib warns of each letter that no font has; the foot of the picture says it once (`missing_font`)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s)Glyph .* missing from font", category=UserWarning)
        yield


def text_size(text: str, points: float) -> tuple[float, float]:
    """Width and height in inches of one or more lines, in the current style."""
    font = FontProperties(size=points)
    sizes = [_ruler().get_text_width_height_descent(line, font, ismath=False) for line in text.split("\n")]
    width, height = max(width for width, _, _ in sizes), max(height for _, height, _ in sizes)
    return width / 72, (height + (len(sizes) - 1) * 1.25 * points) / 72


@lru_cache(maxsize=1)
def _ruler() -> RendererAgg:
    return RendererAgg(1, 1, 72)


def longest(texts: Sequence[str], points: float) -> float:
    """Width in inches of the widest text."""
    return max((text_size(text, points)[0] for text in texts), default=0.0)


def wrapped(text: str, points: float, width: float, lines: int = 3) -> str:
    """The text in lines of at most `width` inches, the last one with an ellipsis where there would be more."""
    done: list[str] = []
    line = ""
    for word in _pieces(text, points, width):
        longer = f"{line} {word}".strip()
        if line and text_size(longer, points)[0] > width:
            done.append(line)
            line = word
            if len(done) == lines:
                return "\n".join(done) + " …"
        else:
            line = longer
    return "\n".join([*done, line])


def _pieces(text: str, points: float, width: float) -> Iterator[str]:
    """Words, and parts of words where one alone is wider than a line (a Chinese sentence has no spaces)."""
    for word in map(visible, text.split()):
        whole = text_size(word, points)[0]
        size = len(word) if whole <= width else max(1, int(len(word) * width / whole))
        for start in range(0, len(word), size or 1):
            yield word[start : start + size]
