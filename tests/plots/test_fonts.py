"""Letters of all scripts: their order, and a sentence at the foot where a font is missing."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.font_manager import fontManager

from regard.plots import draw_alignment, save
from regard.plots.fonts import missing_font

from .looking import rendered, words


@pytest.fixture
def only_dejavu(monkeypatch):
    """As on a machine without any other font."""
    monkeypatch.setattr(fontManager, "ttflist", [font for font in fontManager.ttflist if font.name == "DejaVu Sans"])


@pytest.mark.usefixtures("only_dejavu")
@pytest.mark.parametrize(
    ("text", "script", "font"),
    [
        ("你好", "Chinese", "Noto Sans CJK"),
        ("ひらがな", "Japanese", "Noto Sans CJK"),
        ("한국어", "Korean", "Noto Sans CJK"),
        ("नमस्ते", "Devanagari", "Noto Sans Devanagari"),
        ("🚀", "emoji", "Noto Emoji"),
    ],
)
def test_the_foot_names_the_font_that_is_missing(text, script, font):
    said = missing_font(["abc", text])
    assert script in said
    assert font in said
    assert said in " ".join(words(draw_alignment(np.ones((1, 1)), [text], ["a"]))).replace("\n", " ")


@pytest.mark.usefixtures("only_dejavu")
@pytest.mark.parametrize("text", ["naïve", "e\u0301", "שלום", "مرحبا", "a\u200d", "\ufe0f", "Ωμέγα", "Привет", "∅␣…"])
def test_letters_that_can_be_drawn_need_no_foot(text):
    assert missing_font([text]) == ""


@pytest.mark.usefixtures("only_dejavu")
def test_an_svg_goes_without_the_foot_because_its_readers_fonts_draw_it(tmp_path):
    figure = draw_alignment(np.ones((1, 1)), ["你好"], ["a"])
    text = save(figure, tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "你好" in text
    assert "no font on this machine" not in text
    assert any("no font on this machine" in word.replace("\n", " ") for word in words(figure))


def test_hebrew_runs_from_right_to_left():
    """The full stop ends the word, so in Hebrew it stands at its left."""

    def half_with_more_ink(word: str) -> str:
        figure = draw_alignment(np.zeros((1, 1)), ["x"], [word])
        (label,) = (text for text in figure.axes[0].texts if text.get_text() == word)
        pixels = rendered(figure)
        box = label.get_window_extent()
        rows = slice(pixels.shape[0] - int(box.y1) - 1, pixels.shape[0] - int(box.y0))
        ink = (1 - pixels[rows, int(box.x0) : int(box.x1) + 1]).sum(axis=(0, 2))
        middle = len(ink) // 2
        return "right" if ink[middle:].sum() > ink[:middle].sum() else "left"

    assert half_with_more_ink("ש....") == "right"
    assert half_with_more_ink("m....") == "left"
