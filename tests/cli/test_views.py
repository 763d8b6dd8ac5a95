"""`regard look --view`, of runs and of recordings that were kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.cli.encodings import encodings_of
from regard.cli.views import VIEWS
from regard.core.errors import ConfigError
from regard.layers.grid_positions import grid_positions
from regard.layers.positions import positions, sinusoidal_positions

from .conftest import Command

SENTENCE = "They stay with the minister ."

# What a picture of each view says, so that one view is not taken for another.
TEXT = {
    "alignment": "attention weight",
    "words": "translation",
    "heads": "head 1",
    "layers": "Every layer (rows)",
    "distance": "mean distance, tokens",
    "entropy": "mean entropy, nats",
    "rollout": "rollout through all layers",
    "positions": "dot products",
}
PICTURE_TEXT = {
    "overlay": "mean of heads",
    "strip": "one by one",
    "heads": "head 1",
    "layers": "Every layer (rows)",
    "distance": "mean distance, pixels",
    "entropy": "mean entropy, nats",
    "rollout": "rollout through all layers",
    "positions": "dot products",
}


@pytest.fixture
def sentence_run(trained: dict[str, Path]) -> Path:
    return trained["transformer"]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "cat.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (37, 53, 3), dtype=np.uint8)).save(path)
    return path


@pytest.fixture
def kept(regard: Command, sentence_run: Path) -> Path:
    assert regard("look", sentence_run, SENTENCE, "--out", "kept.regard").code == 0
    return Path("kept.regard")


@pytest.mark.parametrize("view", TEXT)
def test_views_of_a_sentence(regard: Command, sentence_run: Path, view: str) -> None:
    result = regard("look", sentence_run, SENTENCE, "--view", view, "--out", "a.svg")
    assert result.code == 0, result.err
    assert TEXT[view] in Path("a.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("view", PICTURE_TEXT)
def test_views_of_a_picture(regard: Command, trained: dict[str, Path], picture: Path, view: str) -> None:
    result = regard("look", trained["vit-shapes"], picture, "--view", view, "--out", "a.svg")
    assert result.code == 0, result.err
    assert PICTURE_TEXT[view] in Path("a.svg").read_text(encoding="utf-8")


def test_every_view_is_drawn_above() -> None:
    assert {*TEXT, *PICTURE_TEXT} == {*VIEWS, "positions"}


def test_a_picture_in_the_run_is_named_by_its_view(regard: Command, sentence_run: Path, tmp_path: Path) -> None:
    own = shutil.copytree(sentence_run, tmp_path / "own")
    (file,) = regard("look", own, SENTENCE, "--view", "entropy", "--json").json["files"]
    assert Path(file).name == "they-stay-with-the-minister-entropy.png"


def test_a_head_and_a_query_of_a_tap(regard: Command, sentence_run: Path) -> None:
    options = ("--view", "words", "--tap", "encoder.0.attention", "--head", "1", "--query", "0", "--out", "a.svg")
    assert regard("look", sentence_run, SENTENCE, *options).code == 0
    assert "encoder.0.attention, head 1" in Path("a.svg").read_text(encoding="utf-8")


def test_a_recording_is_looked_at_without_its_model(regard: Command, kept: Path) -> None:
    found = regard("look", kept, "--json").json
    assert found["files"] == ["kept.png"]
    assert found["view"] == "heads"
    taps = {tap["address"]: tap for tap in found["taps"]}
    assert taps["decoder.0.cross"]["queries"] == "target"
    assert taps["decoder.0.cross"]["shape"][:2] == [1, 4]
    assert "decoder.0.cross" in regard("look", kept).out


@pytest.mark.parametrize("view", [view for view in TEXT if view not in ("positions", "words")])
def test_views_of_a_recording(regard: Command, kept: Path, view: str) -> None:
    result = regard("look", kept, "--view", view, "--out", "a.svg", "b.html")
    assert result.code == 0, result.err
    assert TEXT[view] in Path("a.svg").read_text(encoding="utf-8")
    assert Path("b.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_a_pattern_of_a_recording_is_drawn_as_layers(regard: Command, kept: Path) -> None:
    assert regard("look", kept, "--tap", "encoder.*", "--json").json["view"] == "layers"


def test_several_recordings_make_a_film_in_the_order_of_their_steps(regard: Command, kept: Path) -> None:
    names = ["film/step-100.regard", "film/step-20.regard", "film/step-3.regard"]
    Path("film").mkdir()
    for name in names:
        shutil.copy(kept, name)
    result = regard("look", *names, "--tap", "decoder.0.cross", "--out", "film.gif", "--json")
    assert result.json["files"] == ["film.gif"]
    assert result.json["steps"] == [3, 20, 100]
    with Image.open("film.gif") as film:
        assert film.format == "GIF"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--view", "entropie"], 2, "Did you mean 'entropy'?"),
        (["--view", "positions"], 2, "no view called 'positions'"),
        (["--view", "overlay"], 2, "not at a picture"),
        (["--view", "heads", "--tap", "encoder.*"], 2, "Name one address"),
        (["--tap", "decoder.0.cros"], 1, "Did you mean 'decoder.0.cross'?"),
        (["--view", "words", "--query", "zebra"], 2, "no 'zebra'"),
        (["--view", "words", "--head", "7"], 1, "no head 7"),
        (["--example", "1"], 1, "no example 1"),
        (["--out", "a.bmp"], 2, ".png"),
        (["--out", "a.gif", "b.png"], 2, "not b.png"),
    ],
)
def test_looks_at_a_recording_that_cannot_be(
    regard: Command, kept: Path, arguments: list[str], code: int, said: str
) -> None:
    result = regard("look", kept, *arguments)
    assert result.code == code, result.err
    assert said in result.err


def test_a_recording_that_is_none(regard: Command, tmp_path: Path) -> None:
    assert "There is no recording at nowhere.regard" in regard("look", "nowhere.regard").err
    (tmp_path / "bad.regard").write_bytes(b"no recording")
    assert regard("look", "bad.regard").code == 1


def test_views_that_do_not_go_together(regard: Command, sentence_run: Path, run: Path) -> None:
    assert "--heads is short for" in regard("look", sentence_run, SENTENCE, "--heads", "--view", "words").err
    result = regard("look", run, SENTENCE, "--view", "positions")
    assert result.code == 2
    assert "no positional encodings" in result.err


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves", "learned"])
def test_encodings_are_what_the_module_adds(kind: str) -> None:
    module = positions[kind](6, 2, 17)
    name, encodings = encodings_of(module, 6)
    assert name == ""
    assert encodings.shape == (17, 6)
    if kind == "sinusoidal":
        assert np.allclose(encodings, sinusoidal_positions(17, 6))


def test_encodings_of_a_grid_and_of_none() -> None:
    assert encodings_of(grid_positions["sinusoidal"](6, 2, 3, 5, 1), 6)[1].shape == (16, 6)
    with pytest.raises(ConfigError, match="adds nothing"):
        encodings_of(positions["relative"](6, 2, 17), 6)
