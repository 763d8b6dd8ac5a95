from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from regard.cli.output import matrix
from regard.cli.translation.look import slug
from regard.recording import Recording

from .conftest import Command

SENTENCE = "The cat sleeps ."


def test_what_a_person_sees(regard: Command, own_run: Path) -> None:
    result = regard("look", own_run, SENTENCE, "--decoding.max-length", "9")
    assert result.code == 0
    assert result.out.startswith(f"{SENTENCE}\n")
    assert "alignment: " in result.out
    picture = own_run / "look" / "the-cat-sleeps.png"
    assert f"wrote {picture}" in result.out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_json(regard: Command, own_run: Path) -> None:
    found = regard("look", own_run, SENTENCE, "--json").json
    assert found["source"] == SENTENCE
    assert len(found["weights"]) == len(found["target_words"])
    assert all(len(row) == len(found["source_words"]) == 5 for row in found["weights"])
    assert all(abs(sum(row) - 1) < 1e-2 for row in found["weights"])
    assert found["files"]


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF"), ("a.html", b"<!doctype html>")]
)
def test_files_by_their_ending(regard: Command, run: Path, name: str, start: bytes) -> None:
    result = regard("look", run, SENTENCE, "--out", f"there/{name}", "--dark")
    assert result.code == 0
    assert Path("there", name).read_bytes().lower().startswith(start.lower())


def test_the_recording_itself(regard: Command, run: Path) -> None:
    assert regard("look", run, SENTENCE, "--out", "a.regard", "b.svg").code == 0
    recording = Recording.load("a.regard")
    assert recording.outputs["source"] == SENTENCE
    labels = recording.axes["source"][0].labels()  # words that sixty sentences did not hold are unknown
    assert [labels[0], *labels[3:]] == ["The", ".", "<eos>"]
    assert Path("b.svg").exists()


def test_a_translation_that_is_given(regard: Command, run: Path) -> None:
    found = regard("look", run, SENTENCE, "--target", "Le chat dort .", "--out", "a.svg", "--json").json
    assert found["translation"] == "Le chat dort ."
    assert found["target_words"] == ["Le", "chat", "dort", "."]
    assert found["log_probability"] < 0


def test_the_models_own_translation_when_given_has_its_own_probability(regard: Command, run: Path) -> None:
    own = regard("look", run, SENTENCE, "--out", "a.svg", "--decoding.max-length", "6", "--json").json
    given = regard("look", run, SENTENCE, "--target", own["translation"], "--out", "a.svg", "--json").json
    assert given["weights"] == own["weights"]
    if own["finished"]:
        assert given["log_probability"] == pytest.approx(own["log_probability"], rel=1e-3)


def test_several_heads_get_a_picture_of_their_own(regard: Command, trained: dict[str, Path], tmp_path: Path) -> None:
    run = trained["transformer"]
    assert regard("look", run, SENTENCE, "--heads", "--out", "heads.svg").code == 0
    assert regard("look", run, SENTENCE, "--tap", "decoder.0.cross", "--out", "one.svg").code == 0
    assert regard("look", run, SENTENCE, "--tap", "encoder.*", "--out", "layers.svg").code == 0
    assert all(Path(name).stat().st_size > 1000 for name in ("heads.svg", "one.svg", "layers.svg"))


def test_without_a_name_there_are_two_pictures_for_several_heads(
    regard: Command, trained: dict[str, Path], tmp_path: Path
) -> None:
    run = shutil.copytree(trained["transformer"], tmp_path / "own")
    files = regard("look", run, SENTENCE, "--json").json["files"]
    assert [Path(file).name for file in files] == ["the-cat-sleeps.png", "the-cat-sleeps-heads.png"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([SENTENCE, "--tap", "decoder.cros"], 1, "Nothing was recorded at 'decoder.cros'"),
        ([SENTENCE, "--tap", "encoder.*"], 2, "encoder.*"),
        ([SENTENCE, "--out", "a.bmp"], 2, ".png, .svg, .pdf, .html, .regard"),
        ([""], 1, "empty"),
        (["zzz qqq"], 1, "knows no word"),
        ([SENTENCE, "--target", " "], 1, "empty"),
        ([], 2, "SENTENCE"),
    ],
)
def test_what_cannot_be(regard: Command, run: Path, arguments: list[str], code: int, said: str) -> None:
    result = regard("look", run, *arguments)
    assert result.code == code
    assert said in result.err


def test_a_model_without_attention(regard: Command, trained: dict[str, Path]) -> None:
    result = regard("look", trained["cho"], SENTENCE)
    assert result.code == 2
    assert "no attention" in result.err


def test_a_run_folder_that_cannot_be_written_to(regard: Command, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Path.mkdir

    def refuse(self: Path, *arguments: object, **options: object) -> None:
        if self.name == "look":
            raise PermissionError(13, "Permission denied", str(self))
        make(self, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", refuse)
    result = regard("look", run, SENTENCE)
    assert result.code == 1
    assert "choose another place" in result.err


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("The cat sleeps .", "the-cat-sleeps"),
        ("../../etc/passwd", "etc-passwd"),
        ("...", "sentence"),
        ("Où est l'été ?", "où-est-l-été"),
        ("word " * 99, "-".join(["word"] * 9)),
    ],
)
def test_names_of_files(sentence: str, name: str) -> None:
    assert slug(sentence) == name


def test_the_matrix_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    drawn = matrix(np.array([[1.0, 0.0], [0.0, 0.5]]), ["ab", "c"], ["x", "yy"])
    assert drawn.splitlines() == ["   a", "   b c", " x ██", "yy   ▓▓"]
    assert "too wide" in matrix(np.ones((1, 60)), ["a"] * 60, ["x"])
