"""Words with lines: which are drawn, how strong, and from where to where."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from regard.core.errors import ConfigError
from regard.plots import draw_words
from regard.plots.words import MAX_WORDS

from .looking import box, texts


def lines(figure) -> LineCollection:
    (found,) = (each for each in figure.axes[0].collections if isinstance(each, LineCollection))
    return found


def ends(figure) -> list[tuple[float, float]]:
    """Heights of both ends of each line, faintest first."""
    return [(float(path.vertices[0, 1]), float(path.vertices[-1, 1])) for path in lines(figure).get_paths()]


def heights(figure) -> dict[str, float]:
    return {text.get_text(): float(text.get_position()[1]) for text in texts(figure)}


def test_lines_go_from_the_word_that_looks_to_those_it_looks_at_the_strongest_last():
    weights = np.array([[0.0, 0.7, 0.3], [1.0, 0.0, 0.0]])
    figure = draw_words(weights, ["x", "y"], ["a", "b", "c"])
    at = heights(figure)
    assert np.allclose(ends(figure), [(at["x"], at["c"]), (at["x"], at["b"]), (at["y"], at["a"])])
    assert np.all(np.diff(lines(figure).get_linewidths()) > 0)
    alphas = lines(figure).get_colors()[:, 3]
    assert np.all(np.diff(alphas) > 0)
    assert alphas[-1] == pytest.approx(1.0)


def test_nothing_is_no_line_and_next_to_nothing_is_none_either():
    figure = draw_words(np.array([[0.0, 0.99, 0.01]]), ["x"], ["a", "b", "c"])
    assert len(ends(figure)) == 1
    assert not ends(draw_words(np.zeros((2, 3)), ["x", "y"], ["a", "b", "c"]))


def test_lines_of_one_word_only():
    weights = np.full((2, 3), 1 / 3)
    figure = draw_words(weights, ["x", "y"], ["a", "b", "c"], query=1)
    assert np.allclose([start for start, _ in ends(figure)], heights(figure)["y"])
    assert len(ends(figure)) == 3


def test_one_scale_for_pictures_that_are_compared():
    alone = draw_words(np.array([[0.2]]), ["x"], ["a"])
    compared = draw_words(np.array([[0.2]]), ["x"], ["a"], largest=1.0)
    assert lines(compared).get_linewidths()[0] < lines(alone).get_linewidths()[0]


def test_lines_lie_between_the_words():
    figure = draw_words(np.eye(2), ["a very long word", "x"], ["y", "another very long word"])
    figure.canvas.draw()
    at = {text.get_text(): box(text) for text in texts(figure)}
    page = figure.axes[0].transData
    for path in lines(figure).get_paths():
        left, right = page.transform(path.vertices[[0, -1]])[:, 0]
        assert left > at["a very long word"].x1
        assert right < at["another very long word"].x0


def test_what_cannot_be_drawn():
    with pytest.raises(ConfigError, match=r"1 query words.*2 key words"):
        draw_words(np.zeros((2, 1)), ["x"], ["a", "b"])
    with pytest.raises(ConfigError, match="no word 2"):
        draw_words(np.zeros((2, 1)), ["x", "y"], ["a"], query=2)
    with pytest.raises(ConfigError, match="NaN"):
        draw_words(np.full((1, 1), np.nan), ["x"], ["a"])
    with pytest.raises(ConfigError, match=f"at most {MAX_WORDS}"):
        draw_words(np.zeros((1, MAX_WORDS + 1)), ["x"], ["a"] * (MAX_WORDS + 1))
