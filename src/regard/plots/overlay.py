"""Where a model looks in a picture: the picture, and over it, patch by patch, the attention of each head.

Weights are drawn as they are, one flat colour a patch and never smoothed, because between patches nothing was computed.
What is not looked at stays grey, so that no attention is visibly none.
"""

from __future__ import annotations

import base64
import binascii
import io
import math

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.figure import Figure
from PIL import Image, UnidentifiedImageError

from regard.core.axes import Axis, Grid
from regard.core.errors import ConfigError, RecordingError
from regard.plots.palette import ceiling, palette
from regard.plots.style import (
    COLOUR_BAR_WIDTH,
    MARGIN,
    TITLE_SIZE,
    colour_bar,
    new_figure,
    sheet,
    styled,
    text_size,
    weight_map,
    weight_scale,
    wrapped,
)
from regard.recording import RecordedMap, Recording

_PANEL_WIDTH = 1.9
_WHOLE_WIDTH = 12.0
_SPACE = 0.14
_NAME_HEIGHT = 0.24
_FAINT = 0.35


def draw_overlay(
    recording: Recording,
    address: str,
    *,
    example: int = 0,
    query: int | None = None,
    title: str | None = None,
    dark: bool = False,
) -> Figure:
    """The picture, the mean of the heads and each head; `query` is the position that looks.

    Without one it is the class token where there is one; else all positions together, as the mean of their rows.
    """
    recorded = recording[address].example(example)
    grid, weights, looking = picture_weights(recorded, query)
    picture = picture_of(recording, example)
    heads = np.concatenate([weights.mean(axis=0, keepdims=True), weights]) if len(weights) > 1 else weights
    names = ["mean of heads", *(f"head {head}" for head in range(len(weights)))] if len(weights) > 1 else [""]
    maps = [head[len(grid.extras) :].reshape(grid.rows, grid.columns) for head in heads]
    colours = palette(dark)
    width, height = _panel(grid)
    across = max(1, min(len(maps) + 1, int((_WHOLE_WIDTH + _SPACE) / (width + _SPACE))))
    down = math.ceil((len(maps) + 1) / across)
    heading = title if title is not None else f"{address}: where {looking} looks"
    with styled([heading]):
        edge = MARGIN + across * (width + _SPACE) - _SPACE
        right = edge + 0.15 + COLOUR_BAR_WIDTH
        lines = wrapped(heading, TITLE_SIZE, max(right - MARGIN, 4.0))
        heading_width, heading_height = text_size(lines, TITLE_SIZE)
        top = MARGIN + heading_height + 0.15
        bottom = top + down * (height + _NAME_HEIGHT + _SPACE)
        figure = new_figure(max(right, MARGIN + heading_width) + MARGIN, bottom + MARGIN, colours)
        page = sheet(figure)
        page.text(MARGIN, MARGIN, lines, size=TITLE_SIZE, color=colours.ink, va="top")
        scale = weight_scale(ceiling(max(float(one.max(initial=0.0)) for one in maps)))
        painted = [picture, *(_painted(picture, scale(one), weight_map(colours)) for one in maps)]
        for place, (name, image) in enumerate(zip(["picture", *names], painted, strict=True)):
            row, column = divmod(place, across)
            left, above = MARGIN + column * (width + _SPACE), top + row * (height + _NAME_HEIGHT + _SPACE)
            extent = (left, left + width, above + height, above)
            page.imshow(image, extent=extent, interpolation="nearest", aspect="auto")
            middle = left + width / 2
            page.text(middle, above + height + 0.05, name, size=9, color=colours.muted, ha="center", va="top")
        page.set_xlim(0.0, figure.get_size_inches()[0])
        page.set_ylim(figure.get_size_inches()[1], 0.0)
        colour_bar(figure, edge + 0.15, top, max(1.0, min(2.4, height)), scale, colours)
    return figure


def picture_weights(recorded: RecordedMap, query: int | None) -> tuple[Grid, Float[np.ndarray, "heads keys"], str]:
    """The axis of the picture, for each head what the query gives to each of its positions, and the query's name."""
    keys = recorded.key_axes[0] if recorded.key_axes else None
    if not isinstance(keys, Grid):
        kind = "nothing known" if keys is None else f"a {keys.kind} axis"
        raise ConfigError(f"{recorded.address} looks at {kind} and not at a picture; draw its heads instead.")
    queries = recorded.query_axes[0] if recorded.query_axes else None
    if query is None and isinstance(queries, Grid) and queries.extras:
        query = 0
    if query is None:
        rows = recorded.weights(example=0)
        return keys, rows.mean(dim=1).numpy(force=True), f"the mean of all {recorded.queries}"
    weights = recorded.weights(example=0, rows=query).numpy(force=True)
    return keys, weights, _name(queries, query)


def picture_of(recording: Recording, example: int) -> UInt8[np.ndarray, "height width 3"]:
    """The picture that was looked at, from what the recording holds."""
    pictures = recording.outputs.get("pictures")
    if not isinstance(pictures, list) or not 0 <= example < len(pictures):
        raise RecordingError(f"The recording holds no picture {example}, so nothing can be drawn over it.")
    try:
        with Image.open(io.BytesIO(base64.b64decode(pictures[example], validate=True))) as image:
            return np.asarray(image.convert("RGB"))
    except (UnidentifiedImageError, OSError, ValueError, TypeError, binascii.Error) as error:
        raise RecordingError(f"The picture {example} of the recording cannot be read: {error}.") from error


def _name(queries: Axis | None, query: int) -> str:
    return f"position {query}" if queries is None else queries.label(query)


def _panel(grid: Grid) -> tuple[float, float]:
    """Width and height in inches of a picture, in its own proportions."""
    ratio = grid.image_height / grid.image_width
    return (_PANEL_WIDTH, _PANEL_WIDTH * ratio) if ratio <= 1.5 else (_PANEL_WIDTH * 1.5 / ratio, _PANEL_WIDTH * 1.5)


def _painted(
    picture: UInt8[np.ndarray, "height width 3"], places: Float[np.ndarray, "rows columns"], colours: object
) -> Float[np.ndarray, "height width 3"]:
    """The picture in grey, and each patch in its colour, the stronger the more it is looked at."""
    height, width = picture.shape[:2]
    rows = np.arange(height) * places.shape[0] // height
    columns = np.arange(width) * places.shape[1] // width
    values = np.ma.filled(places, 0.0)[rows][:, columns]
    grey = (picture / 255.0) @ np.array([0.299, 0.587, 0.114])
    faint = 1 - (1 - grey[..., None].repeat(3, axis=2)) * _FAINT
    colour = np.asarray(colours(values))[..., :3]  # type: ignore[operator]
    strength = np.sqrt(values)[..., None]
    return np.clip((1 - strength) * faint + strength * colour * (0.55 + 0.45 * grey[..., None]), 0.0, 1.0)
