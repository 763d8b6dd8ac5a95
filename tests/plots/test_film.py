"""Films: frames, times, one scale, exact background, what ffmpeg gets and what happens without it."""

from __future__ import annotations

import stat

import pytest
import torch
from matplotlib import animation
from matplotlib.figure import Figure
from PIL import Image

from regard.core.errors import ConfigError
from regard.core.relations import DenseRelation
from regard.plots import draw_training, write_film
from regard.plots.palette import LIGHT
from regard.recording import Recording

from .looking import words


def at(sharpness: float) -> Recording:
    scores = sharpness * torch.eye(5).expand(1, 2, 5, 5)
    return Recording({"cross": DenseRelation(scores.softmax(-1))}, {"cross": ("target", "source")})


STEPS = [(0, at(0.0)), (10, at(2.0)), (2000, at(9.0))]


def test_a_training_is_drawn_on_one_scale_with_its_steps():
    figures = list(draw_training(STEPS, "cross"))
    assert [words(figure)[0] for figure in figures] == [f"cross after {step} steps" for step in ("0", "10", "2,000")]
    assert len({mesh.norm.vmax for figure in figures for mesh in figure.axes[0].collections}) == 1


def test_a_gif_has_all_frames_their_times_and_the_exact_background(tmp_path):
    path = write_film(tmp_path / "film.gif", draw_training(STEPS, "cross"), seconds=0.5)
    with Image.open(path) as film:
        assert film.n_frames == 3
        assert film.info["loop"] == 0
        assert film.width % 2 == film.height % 2 == 0
        times = []
        for number in range(3):
            film.seek(number)
            times.append(film.info["duration"])
            assert film.convert("RGB").getpixel((1, 1)) == tuple(bytes.fromhex(LIGHT.background[1:]))
    assert times == [500, 500, 2000]
    assert [file.name for file in tmp_path.iterdir()] == ["film.gif"]


def test_figures_of_different_sizes_are_laid_on_the_background_of_the_largest(tmp_path):
    figures = [Figure(figsize=(1.01, 2), facecolor="red"), Figure(figsize=(2, 1), facecolor="blue")]
    path = write_film(tmp_path / "film.gif", figures)
    with Image.open(path) as film:
        assert film.size == (200, 200)
        assert film.convert("RGB").getpixel((199, 199)) == (255, 0, 0)
        film.seek(1)
        assert film.convert("RGB").getpixel((199, 199)) == (0, 0, 255)


@pytest.fixture
def coder(tmp_path, monkeypatch):
    """A program in the place of ffmpeg: it keeps its arguments and what it reads, or fails."""

    def install(script: str) -> None:
        program = tmp_path / "bin" / "ffmpeg"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(animation.FFMpegWriter, "bin_path", classmethod(lambda cls: str(program)))

    return install


def test_an_mp4_is_what_ffmpeg_makes_of_all_pixels(tmp_path, coder):
    coder(f'for last; do :; done; echo "$@" > {tmp_path}/arguments; cat > "$last"')
    figures = [Figure(figsize=(0.5, 0.3), facecolor=colour) for colour in ("red", "blue")]
    pixels = write_film(tmp_path / "film.mp4", figures, seconds=0.25).read_bytes()
    frame = 50 * 30 * 3
    assert pixels[: frame * 2] == b"\xff\0\0" * (50 * 30) + b"\0\0\xff" * (50 * 30)
    assert len(pixels) == frame * (1 + 4)  # the last one stays longer
    arguments = (tmp_path / "arguments").read_text().split()
    assert arguments[arguments.index("-s") + 1] == "50x30"
    assert arguments[arguments.index("-r") + 1] == "4"


def test_an_mp4_that_fails_says_why_and_leaves_nothing(tmp_path, coder):
    coder("echo 'Unknown encoder h264' >&2; exit 1")
    with pytest.raises(ConfigError, match="Unknown encoder h264"):
        write_film(tmp_path / "film.mp4", draw_training(STEPS, "cross"))
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_without_ffmpeg_there_is_no_mp4(tmp_path, monkeypatch):
    monkeypatch.setattr(animation.FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    with pytest.raises(ConfigError, match="needs ffmpeg"):
        write_film(tmp_path / "film.mp4", draw_training(STEPS, "cross"))


def test_films_that_cannot_be(tmp_path):
    with pytest.raises(ConfigError, match="at least one picture"):
        write_film(tmp_path / "film.gif", [])
    with pytest.raises(ConfigError, match=r"\.gif or \.mp4"):
        write_film(tmp_path / "film.png", draw_training(STEPS, "cross"))
    with pytest.raises(ConfigError, match="seconds"):
        write_film(tmp_path / "film.gif", draw_training(STEPS, "cross"), seconds=0.0)
    assert not list(tmp_path.iterdir())
