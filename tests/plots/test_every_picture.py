"""What holds for every picture: nothing overlaps or sticks out, it is legible on a slide, every ending opens."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from regard.core.axes import Boxes, Grid, Text
from regard.core.relations import DenseRelation, DotRelation
from regard.layers.positions import sinusoidal_positions
from regard.plots import (
    draw_alignment,
    draw_depth,
    draw_distance,
    draw_entropy,
    draw_heads,
    draw_layers,
    draw_overlay,
    draw_panels,
    draw_positions,
    draw_scan_path,
    draw_strip,
    draw_words,
    save,
)
from regard.plots.palette import palette
from regard.recording import Recording

from .conftest import WEIRD, kept_picture, soft
from .looking import outside, overlaps, rendered, smallest_on_a_slide

SENTENCE = ("The", "agreement", "on", "the", "Donaudampfschifffahrtsgesellschaft", "was", "signed", ".")
CAPTION = ("a", "dog", "runs", "over", "grass")


def looking(caption: tuple[str, ...], grid: Grid, heads: int = 3) -> Recording:
    recording = Recording(outputs={"pictures": [kept_picture(grid.image_height, grid.image_width)]})
    for name, queries in (("decoder.cross", len(caption)), ("encoder.0.attention", len(grid))):
        recording.relations[name] = DenseRelation(soft(1, heads, queries, len(grid)))
        recording.roles[name] = ("caption" if "cross" in name else "image", "image")
    return recording.label(caption=[Text(caption)], image=[grid])


def text_recording(words: tuple[str, ...], layers: int, heads: int) -> Recording:
    recording = Recording()
    generator = torch.Generator().manual_seed(3)
    for layer in range(layers):
        vectors = torch.randn(2, 1, heads, len(words), 5, generator=generator)
        recording.relations[f"encoder.{layer}.attention"] = DotRelation(vectors[0], vectors[1], 0.5)
        recording.roles[f"encoder.{layer}.attention"] = ("source", "source")
    return recording.label(source=[Text(words)])


def _weights(rows: int, columns: int) -> np.ndarray:
    return soft(rows, columns).numpy()


PATH = np.array([[9.0, 9.0], [99.0, 40.0]])
GRID = Grid(7, 7, 56, 56, ("[CLS]",))
PICTURES: dict[str, Callable[[bool], Figure]] = {
    "alignment": lambda dark: draw_alignment(_weights(7, 8), SENTENCE, SENTENCE[1:], title="A title", dark=dark),
    "heads": lambda dark: draw_heads(text_recording(SENTENCE, 1, 8), "encoder.0.attention", dark=dark),
    "layers": lambda dark: draw_layers(text_recording(SENTENCE, 12, 12), taps="*", dark=dark),
    "words": lambda dark: draw_words(_weights(7, 8), SENTENCE[1:], SENTENCE, title="Lines", dark=dark),
    "overlay": lambda dark: draw_overlay(looking(CAPTION, GRID, 12), "encoder.0.attention", dark=dark),
    "strip": lambda dark: draw_strip(looking(CAPTION, GRID), "decoder.cross", dark=dark),
    "distance": lambda dark: draw_distance(text_recording(SENTENCE, 12, 5), dark=dark),
    "entropy": lambda dark: draw_entropy(text_recording(SENTENCE, 12, 5), dark=dark),
    "positions": lambda dark: draw_positions(sinusoidal_positions(53, 64), title="Sinusoids", dark=dark),
    "scan path": lambda dark: draw_scan_path(
        np.full((90, 120, 3), 99, np.uint8), np.array([[9.0, 9.0], [99.0, 40.0]]), dark=dark
    ),
}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", PICTURES)
def test_nothing_overlaps_or_sticks_out_and_all_is_legible_on_a_slide(name, dark):
    figure = PICTURES[name](dark)
    pixels = rendered(figure)
    assert overlaps(figure) == []
    assert outside(figure) == []
    assert smallest_on_a_slide(figure) >= 9.5
    assert np.allclose(pixels[0, 0], to_rgb(palette(dark).background), atol=1 / 255)
    assert len(set(map(bytes, (pixels[::5, ::5] * 255).astype(np.uint8).reshape(-1, 3)))) > 20  # something is drawn


HARD: dict[str, Callable[[], Figure]] = {
    "alignment 1x1": lambda: draw_alignment(np.ones((1, 1)), ["a"], ["b"], title="A title wider than one cell"),
    "alignment weird": lambda: draw_alignment(_weights(14, 14), WEIRD, WEIRD),
    "heads 1x1": lambda: draw_heads(text_recording(("a",), 1, 1), "encoder.0.attention"),
    "heads 61": lambda: draw_heads(text_recording(("word",) * 61, 1, 5), "encoder.0.attention"),
    "heads of one column": lambda: draw_heads(looking(("a",) * 61, Grid(1, 1, 5, 5), 8), "decoder.cross"),
    "words 1x1": lambda: draw_words(np.ones((1, 1)), ["a"], ["b"]),
    "words weird": lambda: draw_words(_weights(14, 14), WEIRD, WEIRD, query=3),
    "words 61 by 7": lambda: draw_words(_weights(61, 7), ["long word"] * 61, ["x"] * 7),
    "words, one side empty": lambda: draw_words(np.zeros((0, 3)), [], ["a", "b", "c"]),
    "flat picture": lambda: draw_overlay(looking(("a",), Grid(1, 19, 17, 301)), "encoder.0.attention"),
    "tall picture": lambda: draw_overlay(looking(("a",), Grid(19, 1, 301, 17)), "encoder.0.attention"),
    "one patch": lambda: draw_overlay(looking(("a",), Grid(1, 1, 1, 1)), "encoder.0.attention"),
    "no map": lambda: draw_panels(np.zeros((3, 5, 3), np.uint8), {}),
    "strip of weird words": lambda: draw_strip(looking(WEIRD, Grid(3, 5, 37, 53)), "decoder.cross"),
    "depth of one": lambda: draw_depth({"a": [0.0]}, "nothing"),
    "distance in one layer": lambda: draw_distance(text_recording(("a", "b"), 1, 1)),
    "depth of 61": lambda: draw_depth({f"blocks.{n}.attention": [float(n), 1.0] for n in range(61)}, "height"),
    "two kinds": lambda: draw_depth(
        {f"{s}.{n}.x": [float(n)] for s in ("a", "b") for n in range(2)}, "y", title="t" * 80
    ),
    "positions 1x1": lambda: draw_positions(np.ones((1, 1))),
    "positions of zero": lambda: draw_positions(np.zeros((3, 5))),
    "scan path on a flat picture": lambda: draw_scan_path(
        np.zeros((17, 301), np.uint8), np.array([[150.0, 9.0]]), title="t"
    ),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_cases(name):
    figure = HARD[name]()
    rendered(figure)
    assert overlaps(figure) == []
    assert outside(figure) == []
    assert max(figure.get_size_inches()) < 21


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
@pytest.mark.parametrize("name", PICTURES)
def test_every_ending_opens_with_the_right_size(tmp_path, name, ending):
    figure = PICTURES[name](False)
    path = save(figure, tmp_path / f"picture{ending}")
    width, height = figure.get_size_inches()
    if ending == ".png":
        with Image.open(path) as image:
            image.load()
            assert image.size == pytest.approx((width * 150, height * 150), abs=1)
    elif ending == ".svg":
        root = ElementTree.parse(path).getroot()
        assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(width * 72, abs=0.1)
    else:
        (corners,) = re.findall(rb"/MediaBox \[([^]]*)\]", path.read_bytes())
        assert [float(part) for part in corners.split()] == pytest.approx([0, 0, width * 72, height * 72], abs=0.1)


def test_a_box_that_looks_is_outlined_and_cut_at_the_edge_of_the_picture():
    recording = looking(CAPTION, GRID)
    recording.axes["caption"] = [Boxes(CAPTION, tuple((8.0, 16.0, 400.0, 40.0) for _ in CAPTION))]
    (frame,) = draw_overlay(recording, "decoder.cross", query="dog").axes[0].patches
    first = draw_overlay(recording, "decoder.cross", query="dog").axes[0].images[0].get_extent()
    side = first[1] - first[0]
    assert frame.get_x() == pytest.approx(first[0] + side * 8 / 56)
    assert frame.get_y() == pytest.approx(first[3] + side * 16 / 56)
    assert frame.get_x() + frame.get_width() == pytest.approx(first[1])
    assert frame.get_height() == pytest.approx(side * 24 / 56)
