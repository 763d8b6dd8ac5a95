"""Labels, colours, fonts and lines of text."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontEntry, fontManager

from regard.plots import draw_alignment
from regard.plots.fonts import fonts
from regard.plots.labels import shown
from regard.plots.palette import DARK, LIGHT, ceiling
from regard.plots.sheet import weight_map
from regard.plots.style import styled, text_size, wrapped


@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("dog", "dog"),
        ("", "∅"),
        ("  ", "␣␣"),
        ("a\nb\t", "a␊b␉"),
        ("\x85\x7f", "��"),
        ("\u202e", "∅"),
        ("\u202eabc", "abc"),
        ("\ud800", "�"),
        ("x" * 18, "x" * 18),
        ("x" * 19, "x" * 17 + "…"),
        ("你" * 10, "你" * 8 + "…"),
        ("e\u0301" * 18, "e\u0301" * 18),
        ("$x_1$", "$x_1$"),
    ],
)
def test_labels(token, label):
    assert shown(token) == label


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=30))
def test_labels_are_never_empty_and_always_short_printable_text(token):
    label = shown(token, 7)
    assert label
    assert len([letter for letter in label if letter.isalnum()]) <= 7
    assert not any(ord(letter) < 0x20 for letter in label)
    label.encode("utf-8")


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_the_map_starts_at_the_background_and_its_lightness_goes_one_way(palette):
    assert palette.weights[0] == palette.background
    lightness = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b, _ in weight_map(palette)(range(0, 512, 16))]
    steps = [after - before for before, after in pairwise(lightness)]
    assert all(step > 0 for step in steps) or all(step < 0 for step in steps)
    assert to_rgb(palette.outline) != to_rgb(palette.weights[-1])


@pytest.mark.parametrize(
    ("largest", "top"), [(0.0, 1.0), (0.01, 0.02), (0.2, 0.2), (0.51, 0.7), (1.0, 1.0), (1.5, 1.5)]
)
def test_ceiling(largest, top):
    assert ceiling(largest) == top


def test_lines_are_wrapped_to_a_width_and_cut_after_some():
    with styled():
        lines = wrapped("one two three four five six seven eight nine ten", 12, 1.0).split("\n")
        assert len(lines) == 3
        assert lines[-1].endswith(" …")
        assert all(text_size(line.removesuffix(" …"), 12)[0] <= 1.0 for line in lines)
        assert wrapped("one two", 12, 5.0) == "one two"
        assert wrapped("", 12, 5.0) == ""
        unbroken = wrapped("x" * 10_000, 12, 1.0)
        assert text_size(unbroken, 12)[0] < 1.4


def test_a_font_with_the_letters_is_chosen_where_one_is_installed(tmp_path, monkeypatch):
    letter = "\U00010380"  # Ugaritic
    pen = TTGlyphPen(None)
    for corner in ((0, 0), (0, 500), (500, 500)):
        (pen.lineTo if corner != (0, 0) else pen.moveTo)(corner)
    pen.closePath()
    glyph = pen.glyph()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "alpa"])
    builder.setupCharacterMap({ord(letter): "alpa"})
    builder.setupGlyf({".notdef": glyph, "alpa": glyph})
    builder.setupHorizontalMetrics({".notdef": (600, 0), "alpa": (600, 0)})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": "Tiny Ugaritic", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(tmp_path / "tiny.ttf")
    (tmp_path / "damaged.ttf").write_bytes(b"no font")
    entries = [
        FontEntry(fname=str(tmp_path / f"{name}.ttf"), name=family, style="normal", weight=400)
        for name, family in (("damaged", "Noto Sans Damaged"), ("tiny", "Tiny Ugaritic"))
    ]
    without = fonts([letter])
    monkeypatch.setattr(fontManager, "ttflist", [*fontManager.ttflist, *entries])
    assert "Tiny Ugaritic" not in without
    assert "Tiny Ugaritic" in fonts([f"a{letter}"])
    assert fonts(["Ünïcödé"]) == ["DejaVu Sans"]
    draw_alignment(np.ones((1, 1)), [letter], ["b"])
