"""Positional encodings as deck D shows them, and scan paths."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.patches import Circle, FancyArrowPatch

from regard.core.errors import ConfigError
from regard.layers.positions import sinusoidal_positions
from regard.plots import draw_positions, draw_scan_path
from regard.plots.positions import MAX_POSITIONS, variance_by_width
from regard.plots.scan_path import MAX_FIXATIONS

from .looking import words


def test_matrix_and_dot_products_are_drawn_with_zero_in_the_middle():
    table = sinusoidal_positions(11, 6)
    figure = draw_positions(table)
    matrix, products = (axes.images[0] for axes in figure.axes if axes.images)
    assert np.allclose(matrix.get_array(), table)
    assert np.allclose(products.get_array(), table.double() @ table.double().T)
    for image in (matrix, products):
        assert image.norm.vmin == -image.norm.vmax
        assert np.allclose(image.cmap(image.norm(0.0))[:3], 1.0, atol=0.02)


def test_variance_against_all_pairs():
    table = np.random.default_rng(1).normal(size=(7, 5))
    # Each distance has the same weight, whatever the number of its pairs.
    for width in range(1, 6):
        partial = table[:, :width] @ table[:, :width].T
        by_distance = [np.diagonal(partial, distance) for distance in range(7)]
        mean = np.mean([diagonal.mean() for diagonal in by_distance])
        expected = np.mean([(diagonal**2).mean() for diagonal in by_distance]) - mean**2
        assert variance_by_width(table)[width - 1] == pytest.approx(expected)


def test_what_the_deck_says_of_128_dimensions():
    """The information is in the first fifty dimensions or so: there the curve has done most of its way."""
    curve = variance_by_width(sinusoidal_positions(100, 128).double().numpy())
    assert curve[49] / curve[-1] > 0.75
    assert curve[63] / curve[-1] > 0.95
    assert curve[19] / curve[-1] < 0.2


def test_encodings_that_cannot_be_drawn():
    with pytest.raises(ConfigError, match=f"{MAX_POSITIONS:,}"):
        draw_positions(np.zeros((MAX_POSITIONS + 1, 2)))
    with pytest.raises(ConfigError, match="finite"):
        draw_positions(np.full((2, 3), np.nan))
    with pytest.raises(ConfigError, match="shape"):
        draw_positions(np.zeros((0, 3)))


PICTURE = np.full((30, 60, 3), 128, np.uint8)


def test_fixations_are_numbered_discs_joined_by_arrows():
    path = np.array([[10.0, 20.0], [50.0, 10.0], [30.0, 15.0]])
    figure = draw_scan_path(PICTURE, path)
    page = figure.axes[0]
    discs = [patch for patch in page.patches if isinstance(patch, Circle)]
    arrows = [patch for patch in page.patches if isinstance(patch, FancyArrowPatch)]
    assert [word for word in words(figure) if word.isdecimal()] == ["1", "2", "3"]
    assert len(arrows) == 2
    left, right, bottom, top = page.images[0].get_extent()
    places = np.array([disc.center for disc in discs])
    assert np.allclose((places[:, 0] - left) / (right - left) * 60, path[:, 0])
    assert np.allclose((places[:, 1] - top) / (bottom - top) * 30, path[:, 1])
    assert discs[0].get_facecolor() != discs[1].get_facecolor()


def test_the_area_of_a_disc_grows_with_the_time():
    figure = draw_scan_path(PICTURE, np.array([[10.0, 20.0, 0.2], [50.0, 10.0, 0.4]]))
    first, second = (patch.radius for patch in figure.axes[0].patches if isinstance(patch, Circle))
    assert (second / first) ** 2 == pytest.approx(2.0)


@pytest.mark.parametrize("mode", [(30, 60), (30, 60, 3), (30, 60, 4)])
def test_pictures_in_grey_in_colours_and_with_transparency(mode):
    assert draw_scan_path(np.zeros(mode, np.uint8), np.array([[1.0, 1.0]])).axes[0].images


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (np.array([[61.0, 2.0]]), "not on the picture of 60 by 30"),
        (np.array([[1.0, np.nan]]), "not on the picture"),
        (np.array([[1.0, 2.0, -1.0]]), "negative"),
        (np.zeros((0, 2)), "at least one"),
        (np.zeros((2, 5)), "shape"),
        (np.zeros((MAX_FIXATIONS + 1, 2)), f"{MAX_FIXATIONS}"),
    ],
)
def test_paths_that_cannot_be_drawn(path, said):
    with pytest.raises(ConfigError, match=said):
        draw_scan_path(PICTURE, path)
