"""One figure style for all pictures, whatever the user's matplotlibrc says, without a display and without pyplot.

Sizes are inches and points throughout: a picture is laid out from the measured size of its labels, so that nothing
overlaps and no space is left over.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from matplotlib import style as matplotlib_style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager
from matplotlib.ft2font import FT2Font

from regard.plots.labels import visible
from regard.plots.palette import Palette

if TYPE_CHECKING:
    from matplotlib.backend_bases import RendererBase

DOTS_PER_INCH = 150
MARGIN = 0.15
TITLE_SIZE = 14.0

_BASE_FONT = "DejaVu Sans"
# Tried in this order for letters that the base font lacks; after them any installed font.
_PREFERRED = ("Noto Sans CJK", "Noto Sans", "Source Han Sans", "PingFang", "Hiragino", "Microsoft YaHei", "WenQuanYi")

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


class Picture(Figure):
    """A figure that draws letters without a font as boxes, without a warning for each of them."""

    def draw(self, renderer: RendererBase) -> None:
        with _no_glyph_warnings():
            super().draw(renderer)


@contextmanager
def styled(texts: Iterable[str] = ()) -> Iterator[None]:
    """Matplotlib's defaults with our settings, and fonts that have the letters of `texts`."""
    with _no_glyph_warnings(), matplotlib_style.context(["default", {**_SETTINGS, "font.family": fonts(texts)}]):
        yield


@contextmanager
def _no_glyph_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s)Glyph .* missing from font", category=UserWarning)
        yield


def fonts(texts: Iterable[str]) -> list[str]:
    """The base font, then as few installed fonts as have the letters that it lacks, then whatever is there."""
    missing = {ord(letter) for text in texts for letter in text} - _letters_of(_family_file(_BASE_FONT))
    chosen = [_BASE_FONT]
    for family, path in _candidates() if missing else ():
        if found := missing & _letters_of(path):
            chosen.append(family)
            missing -= found
        if not missing:
            break
    return chosen


def _candidates() -> tuple[tuple[str, str], ...]:
    # The Last Resort font has a box for every letter; matplotlib falls back to it by itself.
    upright = {
        (entry.name, entry.fname)
        for entry in fontManager.ttflist
        if entry.style == "normal" and entry.weight == 400 and not entry.name.startswith("Last Resort")
    }

    def rank(candidate: tuple[str, str]) -> tuple[int, str, str]:
        places = [place for place, name in enumerate(_PREFERRED) if candidate[0].startswith(name)]
        return min(places, default=len(_PREFERRED)), *candidate

    return tuple(sorted(upright, key=rank))


def _family_file(family: str) -> str:
    return fontManager.findfont(FontProperties(family=family))


@lru_cache(maxsize=4096)
def _letters_of(path: str) -> frozenset[int]:
    """Code points that a font can draw at any size; none for a file that is damaged or holds bitmaps only."""
    try:
        font = FT2Font(path)
        font.set_size(10.0, 72)
        return frozenset(font.get_charmap())
    except (RuntimeError, OSError):
        return frozenset()


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


def new_figure(width: float, height: float, colours: Palette) -> Picture:
    return Picture(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor=colours.background, layout=None)


def inch_axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes placed by inches from the top left corner of the figure, without any frame."""
    whole_width, whole_height = figure.get_size_inches()
    bottom = whole_height - top - height
    axes = figure.add_axes((left / whole_width, bottom / whole_height, width / whole_width, height / whole_height))
    axes.set_axis_off()
    return axes


def sheet(figure: Figure) -> Axes:
    """Axes that cover the figure, in inches from its top left corner: for text, frames and thumbnails."""
    width, height = figure.get_size_inches()
    axes = inch_axes(figure, 0.0, 0.0, width, height)
    axes.set_xlim(0.0, width)
    axes.set_ylim(height, 0.0)
    return axes


def weight_map(colours: Palette) -> LinearSegmentedColormap:
    return LinearSegmentedColormap.from_list("regard", list(colours.weights), N=512)


def weight_scale(largest: float, *, square_root: bool = False) -> Normalize:
    """From weight to place on the map; the square root shows thin attention over many positions."""
    return PowerNorm(0.5, 0.0, largest, clip=True) if square_root else Normalize(0.0, largest, clip=True)


COLOUR_BAR_WIDTH = 0.75
"""Inches that a colour bar needs with its ticks and name."""


def colour_bar(
    figure: Figure, left: float, top: float, height: float, scale: Normalize, colours: Palette, points: float = 9.0
) -> None:
    """A bar from zero to the largest weight, zero at the bottom."""
    axes = inch_axes(figure, left, top, 0.13, height)
    axes.set_axis_on()
    bar = figure.colorbar(ScalarMappable(scale, weight_map(colours)), cax=axes)
    largest = float(scale.vmax or 1.0)
    ticks = [0.0, largest / 4, largest] if isinstance(scale, PowerNorm) else [0.0, largest / 2, largest]
    bar.set_ticks(ticks, labels=[f"{tick:.3g}" for tick in ticks])
    bar.ax.minorticks_off()
    bar.ax.tick_params(length=2.5, width=0.6, pad=2, labelsize=points, color=colours.muted, labelcolor=colours.muted)
    bar.outline.set(edgecolor=colours.line, linewidth=0.8)
    bar.set_label("attention weight", size=points, color=colours.muted, labelpad=3)


def shrunk(weights: Float[np.ndarray, "rows columns"], limit: int) -> Float[np.ndarray, "fewer_rows fewer_columns"]:
    """The largest weight of each block of cells, so that a single bright cell is not lost between pixels."""
    for axis in (0, 1):
        count = weights.shape[axis]
        if count > limit:
            starts = np.unique(np.linspace(0, count, limit, endpoint=False).astype(int))
            weights = np.maximum.reduceat(weights, starts, axis=axis)
    return weights
