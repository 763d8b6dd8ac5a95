"""Files: the format by the ending, the same bytes every time, whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import regard.plots
from regard.core.errors import ConfigError
from regard.plots import draw_alignment, save


def picture():
    return draw_alignment(
        np.array([[0.9, 0.1], [0.2, 0.8]]), ["Hund", "läuft"], ["dog", "runs"], title="A dog", links=[(0, 0)]
    )


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89P")]
)
def test_the_ending_chooses_the_format_and_bytes_do_not_change(tmp_path, ending, start):
    first = save(picture(), tmp_path / "deep" / f"first.{ending}")
    second = save(picture(), str(tmp_path / f"second.{ending}"))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(start)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", f"second.{ending}"]


def test_text_in_svg_stays_text(tmp_path):
    root = ElementTree.parse(save(picture(), tmp_path / "a.svg")).getroot()
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"A dog", "Hund", "läuft", "dog", "runs", ".90"} <= texts


@pytest.mark.parametrize("name", ["a.gif", "a", "a.html"])
def test_an_unknown_ending_names_the_three(tmp_path, name):
    with pytest.raises(ConfigError, match=r"\.png, \.svg, \.pdf"):
        save(picture(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = save(picture(), tmp_path / "a.png")
    before = path.read_bytes()
    broken = picture()

    def fail(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(broken, "savefig", fail)
    with pytest.raises(OSError, match="no space"):
        save(broken, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_matplotlib_is_loaded_only_to_draw_and_pyplot_never(tmp_path):
    script = (
        "import sys, regard.plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import numpy\n"
        "from regard.plots import draw_alignment, save\n"
        f"save(draw_alignment(numpy.ones((1, 1)), ['a'], ['b']), {str(tmp_path / 'a.png')!r})\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert callable(save) and callable(regard.plots.save)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_unknown_name_of_the_room():
    assert not hasattr(regard.plots, "draw_nothing")
