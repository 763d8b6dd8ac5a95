"""`regard serve`: what it finds, what its models answer, that the lines it gives do the same, and that it ends."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.cli.live import live_model
from regard.cli.serve import found, steps
from regard.core.errors import ConfigError, RecordingError, RegardError
from regard.explorer.asking import Question, QuestionError
from regard.recipes.run import open_run

from .conftest import Command

SENTENCE = "The cat sleeps ."


def running(lines: str) -> str:
    """What the lines print."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(lines, "copied", "exec"), {})
    return printed.getvalue().strip()


EDITS = {
    "none": (),
    "mute": ({"address": "decoder.0.cross", "edit": "mute", "heads": [1]},),
    "several": (
        {"address": "decoder.0.cross", "edit": "mute"},
        {"address": "encoder.0.attention", "edit": "swap", "heads": [0, 1]},
        {"address": "encoder.0.attention", "edit": "uniform", "heads": [2]},
        {"address": "decoder.1.attention", "edit": "keep", "heads": [3]},
    ),
    "freeze": (
        {
            "address": "encoder.0.attention",
            "edit": "freeze",
            "heads": [0],
            "like": Question(text="The dog sees it ."),
        },
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_translator_answers_and_the_lines_do_the_same(trained: dict[str, Path], name: str) -> None:
    model = live_model(open_run(trained["transformer"]))
    sentence = SENTENCE if name != "freeze" else "The cat eats it ."
    question = Question(text=sentence, edits=EDITS[name])
    recording = model.look(question)
    assert recording.outputs["source"] == sentence
    assert running(model.python(question)) == recording.outputs["translation"].strip()
    if name == "mute":
        assert float(recording["decoder.0.cross"].weights(example=0, head=1).abs().max()) == 0
        assert float(recording["decoder.0.cross"].weights(example=0, head=0).abs().max()) > 0
    # Nothing of the edits stays.
    again = model.look(Question(text=sentence))
    assert float(again["decoder.0.cross"].weights(example=0, head=1).sum()) > 0


@pytest.mark.parametrize("name", ["none", "mute"])
def test_a_classifier_answers_and_the_lines_do_the_same(
    trained: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    pixels = np.random.default_rng(3).integers(0, 255, (37, 41, 3), dtype=np.uint8)
    Image.fromarray(pixels).save("mine.png")
    model = live_model(open_run(trained["vit-shapes"]))
    edits = () if name == "none" else ({"address": "encoder.0.attention", "edit": "mute", "heads": [0]},)
    question = Question(picture=Path("mine.png").read_bytes(), name="mine.png", edits=edits)
    best = model.look(question).outputs["predictions"][0]
    said, probability = running(model.python(question)).rsplit(" ", 1)
    assert said == best["class"]
    assert float(probability) == pytest.approx(best["probability"], rel=1e-5)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"address": "decoder.0.cross", "edit": "remove"}, "no edit 'remove'"),
        ({"address": "decoder.0.cross", "edit": "swap", "heads": [1]}, "between two heads"),
        ({"address": "decoder.7.cross", "edit": "mute"}, "decoder.7.cross"),
        ({"address": "decoder.0.cross", "edit": "mute", "heads": [99]}, "99"),
    ],
)
def test_edits_that_cannot_be(trained: dict[str, Path], edit: dict, said: str) -> None:
    model = live_model(open_run(trained["transformer"]))
    with pytest.raises(RegardError, match=said):
        model.look(Question(text=SENTENCE, edits=(edit,)))


def test_code_cannot_be_slipped_into_the_lines(trained: dict[str, Path]) -> None:
    model = live_model(open_run(trained["transformer"]))
    evil = '"); raise SystemExit("'
    assert evil not in model.python(Question(text=evil)).replace(repr(evil), "")
    with pytest.raises(QuestionError):
        model.python(Question(text="a", edits=({"address": "a", "edit": evil},)))
    lines = model.python(Question(text="a", edits=({"address": evil, "edit": "mute"},)))
    assert evil not in lines.replace(repr(evil), "")


def test_what_is_found(regard: Command, trained: dict[str, Path], run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "film"
    for name in ("step-20", "step-100", "step-3", "other"):
        regard("look", run, SENTENCE, "--out", folder / f"{name}.regard")
    assert [(one.name, one.step) for one in steps(folder)] == [
        ("step-3.regard", 3),
        ("step-20.regard", 20),
        ("step-100.regard", 100),
        ("other.regard", None),
    ]
    recordings, models = found((folder, folder / "other.regard", run, trained["vit-shapes"]), "auto")
    assert [one.name for one in recordings][-1] == "other.regard"
    assert [model.reads for model in models] == ["text", "picture"]


def test_what_cannot_be_served(trained: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.regard").write_bytes(b"nothing")
    for places, kind, said in (
        ((), ConfigError, "Name what to show"),
        ((tmp_path / "nowhere",), RecordingError, "nowhere"),
        ((tmp_path / "empty",), RecordingError, "holds no .regard file"),
        ((tmp_path / "broken.regard",), RecordingError, "broken.regard"),
        ((trained["cho"],), ConfigError, "no attention"),
    ):
        with pytest.raises(kind, match=said):
            found(places, "auto")


def test_a_port_that_is_taken(regard: Command, run: Path, tmp_path: Path) -> None:
    import socket

    regard("look", run, SENTENCE, "--out", tmp_path / "a.regard")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result = regard("serve", tmp_path / "a.regard", "--port", other.getsockname()[1])
    assert result.code == 2
    assert "is taken" in result.err


@pytest.mark.parametrize("wanted", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_and_ends_cleanly(regard: Command, run: Path, tmp_path: Path, wanted: signal.Signals) -> None:
    regard("look", run, SENTENCE, "--out", tmp_path / "a.regard")
    command = [sys.executable, "-m", "regard.cli.main", "serve", str(tmp_path / "a.regard"), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ, text=True) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        url = json.loads(server.stdout.readline())["url"]
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url + "api/contents") as answer:
            assert json.load(answer)["recordings"][0]["name"] == "a.regard"
        server.send_signal(wanted)
        assert server.wait(20) in (0, -wanted)
        assert "Traceback" not in server.stderr.read()
