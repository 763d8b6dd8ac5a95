from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import Polygon

from regard.core.errors import ConfigError
from regard.plots import save
from regard.plots.windows import draw_windows

PICTURE = np.random.default_rng(0).integers(0, 256, (20, 30), dtype=np.uint8)
WHOLE = [[0.0, 0.0], [30.0, 0.0], [30.0, 20.0], [0.0, 20.0]]
OUTSIDE = [[-10.0, 5.0], [15.0, -7.0], [40.0, 9.0], [12.0, 25.0]]


def frames(figure) -> list[np.ndarray]:
    return [patch.get_xy()[:4] for axes in figure.axes for patch in axes.patches if isinstance(patch, Polygon)]


def test_a_frame_is_where_the_window_comes_from(tmp_path: Path) -> None:
    figure = draw_windows(PICTURE, np.array([WHOLE, OUTSIDE]), title="two windows")
    whole, outside = frames(figure)
    (image,) = (image for axes in figure.axes for image in axes.images)
    left, right, bottom, top = image.get_extent()
    np.testing.assert_allclose(whole, [[left, top], [right, top], [right, bottom], [left, bottom]])
    scale = (right - left) / 30
    np.testing.assert_allclose(outside, np.array([left, top]) + np.array(OUTSIDE) * scale)
    assert scale == pytest.approx((bottom - top) / 20)
    written = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert {"head 0", "head 1"} <= set(written)
    assert save(figure, tmp_path / "windows.png").stat().st_size > 1000


def test_one_window_needs_no_name() -> None:
    figure = draw_windows(PICTURE, np.array([WHOLE]), dark=True)
    assert "head 0" not in [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.mark.parametrize("windows", [np.zeros((0, 4, 2)), np.zeros((1, 3, 2)), np.full((1, 4, 2), np.nan)])
def test_what_is_no_window_is_refused(windows: np.ndarray) -> None:
    with pytest.raises(ConfigError, match="four corners"):
        draw_windows(PICTURE, windows)
