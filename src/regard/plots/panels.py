"""A picture and, beside it, the same picture under one map of attention after another, all on one scale.

Weights are drawn as they are, one flat colour a patch and never smoothed, because between patches nothing was computed.
What is not looked at stays grey, so that no attention is visibly none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from regard.core.errors import ConfigError
from regard.plots.labels import shown
from regard.plots.palette import Palette, ceiling, palette
from regard.plots.sheet import COLOUR_BAR_WIDTH, bar_height, colour_bar, new_sheet, weight_map, weight_scale
from regard.plots.style import DOTS_PER_INCH, NAME_SIZE, longest, styled

MAX_PANELS = 150

Box = tuple[float, float, float, float]
"""Left, top, right, bottom, in pixels of the picture."""

_WHOLE_WIDTH, _WHOLE_HEIGHT = 11.0, 6.2  # inches that all panels together aim at: a slide's proportions
_WIDEST, _NARROWEST = 3.2, 1.3
_SPACE = 0.14
_NAME_HEIGHT = 0.3
_FAINT = 0.35
_MANY_PATCHES = 100


def draw_panels(
    picture: UInt8[np.ndarray, "height width 3"],
    maps: Mapping[str, Float[np.ndarray, "_ _"]],
    *,
    title: str = "",
    boxes: Collection[Box] = (),
    largest: float | None = None,
    dark: bool = False,
) -> Figure:
    """The picture first, then each map over it with its name below; a map has a weight for each patch of the picture.

    Where there are many patches colours go by the square root of the weight, so that thin attention is seen, too.
    `boxes` are outlined in the picture itself: the patch or the object that looks. `largest` is the weight of the last
    colour, for pictures that are compared.
    """
    _check(picture, maps)
    colours = palette(dark)
    names = ["picture", *(shown(name, 22) for name in maps)]
    across, width, height = _arranged(len(names), picture.shape[0] / picture.shape[1])
    down = math.ceil(len(names) / across)
    texts = [*names, title]
    with styled(texts):
        step_across = max(width, longest(names, NAME_SIZE)) + _SPACE
        step_down = height + _NAME_HEIGHT + _SPACE / 2
        edge = across * step_across - _SPACE
        below = max(down * step_down - _SPACE / 2, bar_height(height))
        sheet = new_sheet(edge + 0.15 + COLOUR_BAR_WIDTH, below, title, colours, texts)
        most = max((float(one.max(initial=0.0)) for one in maps.values()), default=0.0) if largest is None else largest
        many = max((one.size for one in maps.values()), default=0) > _MANY_PATCHES
        scale = weight_scale(ceiling(most), square_root=many)
        pixels = _sized(picture, width, height)
        painted = [pixels, *(_painted(pixels, one, scale, colours) for one in maps.values())]
        for place, (name, image) in enumerate(zip(names, painted, strict=True)):
            row, column = divmod(place, across)
            left, top = sheet.left + column * step_across, sheet.top + row * step_down
            left += (step_across - _SPACE - width) / 2
            extent = (left, left + width, top + height, top)
            sheet.axes.imshow(image, extent=extent, interpolation="nearest", aspect="auto")
            middle, under = left + width / 2, top + height + 0.06
            sheet.axes.text(middle, under, name, size=NAME_SIZE, color=colours.muted, ha="center", va="top")
            if place == 0:
                _outline(sheet.axes, boxes, extent, picture.shape[:2], colours)
        colour_bar(sheet, sheet.left + edge + 0.15, sheet.top, bar_height(height), scale, colours)
    return sheet.figure


def _check(picture: UInt8[np.ndarray, "height width 3"], maps: Mapping[str, np.ndarray]) -> None:
    if len(maps) >= MAX_PANELS:
        raise ConfigError(
            f"{len(maps)} maps are more than the {MAX_PANELS - 1} of one picture. Choose fewer heads or fewer words."
        )
    for name, weights in maps.items():
        if weights.ndim != 2 or not weights.size:
            raise ConfigError(f"The map {name!r} has the shape {weights.shape}; it needs a weight a patch, row by row.")
        if not np.isfinite(weights).all():
            raise ConfigError(f"The weights of the map {name!r} are not all finite, so they cannot be drawn.")


def _arranged(count: int, ratio: float) -> tuple[int, float, float]:
    """Panels in a row, and a panel's width and height in inches: as large as fits a slide, within reason."""

    def width(across: int) -> float:
        down = math.ceil(count / across)
        room = _WHOLE_HEIGHT / down - _NAME_HEIGHT - _SPACE
        return min(_WIDEST, _WIDEST / ratio, _WHOLE_WIDTH / across - _SPACE, room / ratio)

    across = max(range(1, count + 1), key=lambda n: (round(width(n) * (1 - 0.4 * (-count % n) / count), 6), -n))
    fitting = width(across)
    if max(fitting, fitting * ratio) < _NARROWEST:
        fitting = _NARROWEST / max(1.0, ratio)
        across = max(1, min(count, int(_WHOLE_WIDTH / (fitting + _SPACE))))
    return across, fitting, fitting * ratio


def _sized(
    picture: UInt8[np.ndarray, "height width 3"], width: float, height: float
) -> UInt8[np.ndarray, "new_height new_width 3"]:
    """The picture with as many pixels as it is drawn with, so that edges of patches are where they should be."""
    size = (max(1, round(width * DOTS_PER_INCH)), max(1, round(height * DOTS_PER_INCH)))
    method = Image.Resampling.BOX if picture.shape[1] > size[0] else Image.Resampling.NEAREST
    return np.asarray(Image.fromarray(picture).resize(size, method))


def _painted(
    picture: UInt8[np.ndarray, "height width 3"],
    places: Float[np.ndarray, "rows columns"],
    scale: Normalize,
    colours: Palette,
) -> Float[np.ndarray, "height width 3"]:
    """The picture in faint grey, and each patch in its colour, the stronger the more it is looked at."""
    height, width = picture.shape[:2]
    rows = np.arange(height) * places.shape[0] // height
    columns = np.arange(width) * places.shape[1] // width
    values = places[rows][:, columns]
    grey = ((picture / 255.0) @ np.array([0.299, 0.587, 0.114]))[..., None]
    faint = (1 - _FAINT) * np.array(to_rgb(colours.background)) + _FAINT * grey
    map_: Colormap = weight_map(colours)
    colour = np.asarray(map_(scale(values)))[..., :3]
    strength = np.sqrt(values / float(scale.vmax or 1.0)).clip(0.0, 1.0)[..., None]
    return np.clip((1 - strength) * faint + strength * colour * (0.6 + 0.4 * grey), 0.0, 1.0)


def _outline(
    axes: Axes,
    boxes: Collection[Box],
    extent: tuple[float, float, float, float],
    size: tuple[int, ...],
    colours: Palette,
) -> None:
    """Boxes of the picture's pixels, at their place in the panel; what lies outside the picture is cut off."""
    left, right, bottom, top = extent
    across, down = (right - left) / size[1], (bottom - top) / size[0]
    for box in boxes:
        x0, x1 = (left + across * min(max(x, 0.0), size[1]) for x in (box[0], box[2]))
        y0, y1 = (top + down * min(max(y, 0.0), size[0]) for y in (box[1], box[3]))
        axes.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=colours.outline, linewidth=2.2))
