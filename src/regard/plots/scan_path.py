"""A scan path: where the gaze rested on a picture, one fixation after another, numbered from 1."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch
from PIL import Image

from regard.core.errors import ConfigError
from regard.plots.matrix import as_array
from regard.plots.palette import palette
from regard.plots.sheet import new_sheet
from regard.plots.style import DOTS_PER_INCH, styled

MAX_FIXATIONS = 200

_WHOLE_WIDTH, _WHOLE_HEIGHT, _NARROWEST = 9.0, 6.2, 0.8
_RADIUS, _LARGEST_RADIUS = 0.17, 0.5


def draw_scan_path(
    picture: UInt8[np.ndarray, "height width *channels"],
    fixations: Float[np.ndarray, "fixations xy_and_duration"],
    *,
    title: str | None = None,
    dark: bool = False,
) -> Figure:
    """The picture with a numbered disc at each fixation and an arrow from each to the next.

    A fixation is (x, y) in pixels from the top left corner, or (x, y, duration), and then the area of its disc grows
    with the time. The first is filled, so that the path can be read from its beginning.
    """
    pixels = _as_colours(picture)
    points, durations = _checked(fixations, pixels.shape)
    colours = palette(dark)
    height, width = pixels.shape[:2]
    per_pixel = min(_WHOLE_WIDTH / width, _WHOLE_HEIGHT / height)
    across, down = max(width * per_pixel, _NARROWEST), max(height * per_pixel, _NARROWEST)
    with styled([title or ""]):
        sheet = new_sheet(across, down, title or "", colours, [])
        page, left, top = sheet.axes, sheet.left, sheet.top
        size = max(1, round(across * DOTS_PER_INCH)), max(1, round(down * DOTS_PER_INCH))
        method = Image.Resampling.BOX if width > size[0] else Image.Resampling.NEAREST
        shown = np.asarray(Image.fromarray(pixels).resize(size, method))
        # Paler than it is, so that path and numbers stand out on any picture.
        shown = 0.75 * shown / 255 + 0.25 * (0.0 if dark else 1.0)
        page.imshow(shown, extent=(left, left + across, top + down, top), interpolation="nearest", aspect="auto")
        places = np.stack([left + points[:, 0] * across / width, top + points[:, 1] * down / height], axis=1)
        radii = np.clip(_RADIUS * np.sqrt(durations), 0.13, _LARGEST_RADIUS)
        for number in range(len(places) - 1):
            page.add_patch(
                FancyArrowPatch(
                    tuple(places[number]), tuple(places[number + 1]), arrowstyle="-|>", mutation_scale=13,
                    shrinkA=radii[number] * 72, shrinkB=radii[number + 1] * 72, color=colours.outline, linewidth=1.8,
                )
            )  # fmt: skip
        for number, (place, radius) in enumerate(zip(places, radii, strict=True)):
            first = number == 0
            face, ink = (colours.outline, colours.background) if first else (colours.background, colours.ink)
            page.add_patch(
                Circle(tuple(place), radius, facecolor=face, edgecolor=colours.outline, linewidth=1.8, alpha=0.92)
            )
            digits = str(number + 1)
            size_of_digits = float(np.minimum(13.0, radius * 120 / (len(digits) + 0.6)))
            style = {"size": size_of_digits, "color": ink, "weight": "bold", "ha": "center", "va": "center_baseline"}
            page.text(float(place[0]), float(place[1]), digits, style)
    return sheet.figure


def _as_colours(picture: UInt8[np.ndarray, "height width *channels"]) -> UInt8[np.ndarray, "height width 3"]:
    pixels = np.asarray(picture)
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or not pixels.size:
        raise ConfigError(f"A picture is bytes of height by width (by 3); this is {pixels.dtype} of {pixels.shape}.")
    return np.asarray(Image.fromarray(pixels).convert("RGB"))


def _checked(
    fixations: Float[np.ndarray, "fixations xy_and_duration"], size: tuple[int, ...]
) -> tuple[Float[np.ndarray, "fixations 2"], Float[np.ndarray, "fixations"]]:
    """Places, and durations as a part of their mean."""
    table = as_array(fixations)
    if table.ndim != 2 or table.shape[1] not in (2, 3) or not len(table):
        raise ConfigError(
            f"A scan path is a list of (x, y) or (x, y, duration) with at least one entry; this has the shape "
            f"{table.shape}."
        )
    if len(table) > MAX_FIXATIONS:
        raise ConfigError(f"{len(table)} fixations are more than the {MAX_FIXATIONS} of one picture; draw the first.")
    height, width = size[:2]
    for number, fixation in enumerate(table):
        inside = 0 <= fixation[0] <= width and 0 <= fixation[1] <= height
        if not (np.isfinite(fixation).all() and inside and (len(fixation) == 2 or fixation[2] >= 0)):
            raise ConfigError(
                f"Fixation {number} ({', '.join(f'{value:g}' for value in fixation)}) is not on the picture of {width} "
                f"by {height} pixels, or its duration is negative."
            )
    durations = table[:, 2] if table.shape[1] == 3 else np.ones(len(table))
    return table[:, :2], durations / (durations.mean() or 1.0)
