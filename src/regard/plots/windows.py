"""The windows of a spatial transformer on the picture that they are cut out of, a frame for each head.

A frame is where the corners of the window come from: turned, stretched or slanted as the window is. The edge that the
network sees as the upper one is drawn twice as thick. What lies outside of the picture is drawn outside of it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from PIL import Image

from regard.core.errors import ConfigError
from regard.plots.matrix import as_array
from regard.plots.palette import palette
from regard.plots.sheet import new_sheet
from regard.plots.style import NAME_SIZE, styled

_WHOLE_WIDTH, _WHOLE_HEIGHT = 9.0, 6.2
_STROKES = ("-", "--", ":", "-.")
"""Heads are told apart by strokes as well as by their numbers."""


def draw_windows(
    picture: UInt8[np.ndarray, "height width *channels"],
    windows: Float[np.ndarray, "heads corners xy"],
    *,
    title: str | None = None,
    dark: bool = False,
) -> Figure:
    """`windows` are the four corners of each head's window in pixels, clockwise from the upper left."""
    corners = as_array(windows)
    if corners.ndim != 3 or corners.shape[1:] != (4, 2) or not len(corners) or not np.isfinite(corners).all():
        raise ConfigError(f"Windows are four corners (x, y) for each head; these have the shape {corners.shape}.")
    pixels = np.asarray(Image.fromarray(picture).convert("RGB"))
    height, width = pixels.shape[:2]
    low = np.minimum(corners.min(axis=(0, 1)), 0.0)
    high = np.maximum(corners.max(axis=(0, 1)), [width, height])
    per_pixel = min(_WHOLE_WIDTH / (high[0] - low[0]), _WHOLE_HEIGHT / (high[1] - low[1]))
    across, down = (high - low) * per_pixel
    colours = palette(dark)
    with styled([title or ""]):
        sheet = new_sheet(across, down, title or "", colours, [])
        page = sheet.axes
        corner = np.array([sheet.left, sheet.top]) - low * per_pixel
        extent = (corner[0], corner[0] + width * per_pixel, corner[1] + height * per_pixel, corner[1])
        # Paler than it is, so that frames stand out on any picture.
        shown = 0.75 * pixels / 255 + 0.25 * (0.0 if dark else 1.0)
        page.imshow(shown, extent=extent, interpolation="nearest", aspect="auto")
        for head, window in enumerate(corners):
            places = corner + window * per_pixel
            stroke = _STROKES[head % len(_STROKES)]
            page.add_patch(Polygon(places, fill=False, edgecolor=colours.outline, linewidth=1.8, linestyle=stroke))
            page.plot(*places[:2].T, color=colours.outline, linewidth=3.6, solid_capstyle="butt")
            if len(corners) > 1:
                left, top = places[0]
                box = {"facecolor": colours.background, "edgecolor": colours.outline, "pad": 2.0}
                page.text(left, top, f"head {head}", size=NAME_SIZE, color=colours.ink, va="center", bbox=box)
    return sheet.figure
