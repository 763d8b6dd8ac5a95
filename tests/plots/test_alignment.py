"""The alignment matrix: what it shows, for which sizes, and what it refuses."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from regard.core.errors import ConfigError
from regard.plots import draw_alignment, save
from regard.plots.alignment import MAX_WORDS
from regard.plots.palette import DARK, LIGHT

from .conftest import WEIRD


def uniform(rows: int, columns: int) -> np.ndarray:
    return np.full((rows, columns), 1 / columns)


def words(count: int, name: str = "word") -> list[str]:
    return [f"{name}{n}" for n in range(count)]


def texts(figure: Figure) -> dict[str, Text]:
    return {text.get_text(): text for text in figure.findobj(Text) if text.get_text()}


def rendered(figure: Figure) -> np.ndarray:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3] / 255


def cell_colours(figure: Figure) -> np.ndarray:
    """The colour in the lower left part of each cell, clear of numbers and edges: rows, columns, rgb."""
    picture = rendered(figure)
    page = figure.axes[0]
    mesh = page.collections[0]
    corners = mesh.get_coordinates()
    points = corners[:-1, :-1] * 0.8 + corners[1:, 1:] * 0.2
    across, up = page.transData.transform(points.reshape(-1, 2)).round().astype(int).T
    return picture[picture.shape[0] - 1 - up, across].reshape(*points.shape[:2], 3)


def test_rows_are_target_words_and_columns_source_words():
    weights = np.array([[0.0, 1.0, 0.0], [0.3, 0.0, 0.7]])
    figure = draw_alignment(weights, ["a", "b", "c"], ["x", "y"])
    colours = cell_colours(figure)
    brightness = colours.mean(axis=-1)
    assert np.array_equal(brightness.argsort(axis=1)[:, 0], [1, 2])  # the darkest cell is the heaviest
    shown = texts(figure)
    assert shown["x"].get_position()[1] < shown["y"].get_position()[1]
    assert shown["a"].get_position()[0] < shown["b"].get_position()[0] < shown["c"].get_position()[0]


@pytest.mark.parametrize(("dark", "palette"), [(False, LIGHT), (True, DARK)])
def test_zero_is_the_background(dark, palette):
    colours = cell_colours(draw_alignment(np.array([[0.0, 1.0]]), ["a", "b"], ["x"], dark=dark))
    assert np.allclose(colours[0, 0], to_rgb(palette.background), atol=1 / 255)
    assert np.allclose(colours[0, 1], to_rgb(palette.weights[-1]), atol=1 / 255)


@pytest.mark.parametrize("shape", [(1, 1), (1, 13), (13, 1), (5, 7), (60, 60), (MAX_WORDS, 2)])
def test_any_shape_is_drawn_with_all_labels_inside_the_picture(shape):
    rows, columns = words(shape[0], "ziel"), words(shape[1], "quelle")
    figure = draw_alignment(uniform(*shape), columns, rows, title="A title that is a good deal longer than one word")
    rendered(figure)
    shown = texts(figure)
    whole = figure.bbox
    boxes = {name: shown[name].get_window_extent() for name in [*rows, *columns]}
    for name, box in boxes.items():
        assert box.x0 >= 0, name
        assert box.y0 >= 0, name
        assert box.x1 <= whole.x1, name
        assert box.y1 <= whole.y1, name
    for upper, lower in pairwise(rows):
        assert not boxes[upper].overlaps(boxes[lower])


def test_a_tensor_is_as_good_as_an_array():
    weights = torch.tensor([[0.25, 0.75]], requires_grad=True)
    assert ".75" in texts(draw_alignment(weights, ["a", "b"], ["x"]))


def test_values_are_printed_only_where_they_are_few():
    few = texts(draw_alignment(np.array([[0.875, 0.125, 0.0]]), words(3), ["x"]))
    assert ".88" in few
    assert ".00" not in few
    assert not any(name.startswith(".") for name in texts(draw_alignment(uniform(30, 29), words(29), words(30))))


def test_links_are_outlined_at_target_row_and_source_column():
    plain = draw_alignment(uniform(2, 3), words(3), words(2, "w"))
    linked = draw_alignment(uniform(2, 3), words(3), words(2, "w"), links={(2, 0), (1, 1)})
    outlined = [patch for patch in linked.axes[0].patches if to_rgb(patch.get_edgecolor()) == to_rgb(LIGHT.outline)]
    assert not any(to_rgb(patch.get_edgecolor()) == to_rgb(LIGHT.outline) for patch in plain.axes[0].patches)
    middles = {(patch.get_x() + patch.get_width() / 2, patch.get_y() + patch.get_height() / 2) for patch in outlined}
    shown = texts(linked)
    rows = [shown["w0"].get_position()[1], shown["w1"].get_position()[1]]
    first, second = (min(middles, key=lambda middle: abs(middle[1] - row)) for row in rows)
    assert first[1] == pytest.approx(rows[0])
    assert second[1] == pytest.approx(rows[1])
    assert first[0] > second[0]
    assert "word link" in shown


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (0, 0)])
def test_no_words_on_one_side(rows, columns):
    figure = draw_alignment(np.zeros((rows, columns)), words(columns), words(rows))
    rendered(figure)
    assert any(name.endswith("words") for name in texts(figure))


@pytest.mark.parametrize(("ending", "dark"), [("png", False), ("png", True), ("svg", False), ("pdf", True)])
def test_weird_tokens_are_drawn_without_a_warning(tmp_path, ending, dark):
    size = len(WEIRD)
    figure = draw_alignment(uniform(size, size), WEIRD, WEIRD, title="\x00 $\\frac 你好 " + "x" * 5000, dark=dark)
    assert save(figure, tmp_path / f"weird.{ending}").stat().st_size > 1000
    assert max(figure.get_size_inches()) < 20


def test_drawing_without_our_saving_is_quiet_too():
    figure = draw_alignment(uniform(1, 2), ["你好", "$"], ["世界"])
    figure.savefig(io.BytesIO(), format="png")


def test_the_users_matplotlibrc_changes_nothing(tmp_path):
    import matplotlib

    before = save(draw_alignment(uniform(2, 2), words(2), words(2)), tmp_path / "a.png").read_bytes()
    with matplotlib.rc_context({"font.family": "serif", "lines.linewidth": 9, "image.cmap": "jet", "figure.dpi": 30}):
        figure = draw_alignment(uniform(2, 2), words(2), words(2))
        assert save(figure, tmp_path / "b.png").read_bytes() == before


@pytest.mark.parametrize("count", [MAX_WORDS + 1, 10_000])
def test_too_many_words_are_refused_with_the_limit(count):
    with pytest.raises(ConfigError, match=f"at most {MAX_WORDS} words"):
        draw_alignment(np.zeros((2, count)), words(count), words(2))


def test_weights_that_do_not_fit_the_words():
    with pytest.raises(ConfigError, match=r"\(3, 2\).*2 target words.*3 source words"):
        draw_alignment(np.zeros((3, 2)), words(3), words(2))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_must_be_finite(value):
    with pytest.raises(ConfigError, match="finite"):
        draw_alignment(np.array([[value]]), ["a"], ["b"])


@pytest.mark.parametrize("link", [(3, 0), (0, 2), (-1, 0)])
def test_a_link_outside_the_matrix(link):
    with pytest.raises(ConfigError, match=f"{link[0]}-{link[1]}"):
        draw_alignment(uniform(2, 3), words(3), words(2), links=[link])
