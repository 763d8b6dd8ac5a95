from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.core.errors import ConfigError
from regard.plots import save
from regard.plots.confusion import draw_confusion, shares_of_rows


def texts(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_rows_are_shares() -> None:
    shares = shares_of_rows(np.array([[3, 1, 0], [0, 0, 0], [0, 5, 5]]))
    assert shares.tolist() == [[0.75, 0.25, 0.0], [0.0, 0.0, 0.0], [0.0, 0.5, 0.5]]


def test_names_and_numbers_are_there(tmp_path: Path) -> None:
    figure = draw_confusion([[3, 1, 0], [0, 0, 0], [0, 5, 5]], ["cat", "dog", "ant"])
    written = texts(figure)
    assert sum(text == "dog" for text in written) == 2
    assert ".75" in written
    assert ".25" in written
    assert any("57.1 % of 14 pictures right" in text for text in written)
    assert save(figure, tmp_path / "confusion.png").stat().st_size > 1000


@pytest.mark.parametrize("size", [1, 2, 100, 257])
def test_few_and_many_classes(size: int, tmp_path: Path) -> None:
    figure = draw_confusion(np.eye(size, dtype=int), [f"class {n}" for n in range(size)], dark=True, title="many")
    width, height = figure.get_size_inches()
    assert max(width, height) < 14
    save(figure, tmp_path / "confusion.svg")


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not fit 3 classes"):
        draw_confusion([[1, 2], [3, 4]], ["a", "b", "c"])
