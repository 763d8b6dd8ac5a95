"""Where a model looks in a picture: for one position that looks, head by head; for a sentence, word by word.

The position may be a word, a patch, an object's box or the class token. A patch or a box is outlined in the picture.
"""

from __future__ import annotations

import base64
import binascii
import io

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.figure import Figure
from PIL import Image, UnidentifiedImageError

from regard.core.axes import Axis, Boxes, Grid
from regard.core.errors import ConfigError, RecordingError
from regard.plots.labels import shown
from regard.plots.panels import Box, draw_panels
from regard.plots.view import chosen, position
from regard.recording import RecordedMap, Recording


def draw_overlay(
    recording: Recording,
    address: str,
    *,
    example: int = 0,
    query: int | str | None = None,
    title: str | None = None,
    largest: float | None = None,
    dark: bool = False,
) -> Figure:
    """The picture, the mean of the heads and each head; `query` is the position that looks, by number or by label.

    Without one it is the class token where there is one; else all positions together, as the mean of their rows.
    """
    recorded = recording[address].example(example)
    grid, queries = picture_axis(recorded), recorded.query_axes[0] if recorded.query_axes else None
    if query is None and isinstance(queries, Grid) and queries.extras:
        query = 0  # the class token
    place = None if query is None else position(recorded, query)
    weights = _looking(recorded, place)
    looking = f"the mean of all {recorded.queries}" if place is None else name_of_query(queries, place)
    picture = picture_of(recording, example)
    maps = {f"head {head}": on_patches(grid, row) for head, row in enumerate(weights)}
    maps = (
        {"mean of heads": on_patches(grid, weights.mean(axis=0)), **maps}
        if len(weights) > 1
        else {"attention": maps["head 0"]}
    )
    return draw_panels(
        picture,
        maps,
        title=title if title is not None else f"{address}: where {looking} looks",
        boxes=[] if place is None else outlined(queries, place, grid, picture),
        largest=largest,
        dark=dark,
    )


def draw_strip(
    recording: Recording,
    address: str,
    *,
    example: int = 0,
    head: int | None = None,
    title: str | None = None,
    dark: bool = False,
) -> Figure:
    """The picture once for each word of its caption (or other query), in order, with where that word looks.

    It shows one head, or the mean of all (Xu et al. 2015, figure 3).
    """
    recorded = recording[address].example(example)
    grid = picture_axis(recorded)
    rows = chosen(recorded, head)
    queries = recorded.query_axes[0] if recorded.query_axes else None
    names = queries.labels() if queries is not None else [str(number) for number in range(len(rows))]
    which = "mean of heads" if head is None and recorded.shape[1] > 1 else f"head {head or 0}"
    counted = [name if names.count(name) == 1 else f"{name} ({n})" for n, name in enumerate(map(shown, names))]
    return draw_panels(
        picture_of(recording, example),
        {name: on_patches(grid, row) for name, row in zip(counted, rows, strict=True)},
        title=title if title is not None else f"{address}, {which}: where {recorded.queries} looks, one by one",
        dark=dark,
    )


def picture_axis(recorded: RecordedMap) -> Grid:
    """The patches that the map's keys are."""
    keys = recorded.key_axes[0] if recorded.key_axes else None
    if not isinstance(keys, Grid):
        kind = "nothing known" if keys is None else f"a {keys.kind} axis"
        raise ConfigError(f"{recorded.address} looks at {kind} and not at a picture; draw its heads instead.")
    return keys


def _looking(recorded: RecordedMap, place: int | None) -> Float[np.ndarray, "heads keys"]:
    """What each head gives to each key, from one query or on average over all."""
    if place is not None:
        return recorded.weights(example=0, rows=place).numpy(force=True)
    return recorded.weights(example=0).mean(dim=1).numpy(force=True)


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


def name_of_query(queries: Axis | None, query: int) -> str:
    if queries is None:
        return f"position {query}"
    label = shown(queries.label(query), 30)
    return f"patch {label}" if isinstance(queries, Grid) and query >= len(queries.extras) else label


def on_patches(grid: Grid, row: Float[np.ndarray, "keys"]) -> Float[np.ndarray, "rows columns"]:
    """The row of a map as the picture lies; what goes to extra tokens is left out."""
    return row[len(grid.extras) :].reshape(grid.rows, grid.columns)


def outlined(queries: Axis | None, place: int, grid: Grid, picture: UInt8[np.ndarray, "height width 3"]) -> list[Box]:
    """The patch or the box that looks, in pixels of the picture as it is kept."""
    across, down = picture.shape[1] / grid.image_width, picture.shape[0] / grid.image_height
    if isinstance(queries, Grid) and place >= len(queries.extras):
        box = queries.box(place)
    elif isinstance(queries, Boxes) and queries.corners:
        box = queries.corners[place]
    else:
        return []
    return [(box[0] * across, box[1] * down, box[2] * across, box[3] * down)]
