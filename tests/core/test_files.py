"""Files are there whole or not at all, and nothing is left beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.core.files import atomic_path, write_json, write_text


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_text("old")
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".bin"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "weights.bin"
    path.write_text("old")

    def write_half() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "both.txt"
    with atomic_path(path) as one, atomic_path(path) as other:
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_are_made_and_text_is_utf8(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "été.txt", "été\n")
    assert (tmp_path / "a" / "b" / "été.txt").read_bytes() == "été\n".encode()


def test_json_is_readable_by_people(tmp_path: Path) -> None:
    write_json(tmp_path / "value.json", {"mot": "été", "sizes": [2, 3]})
    text = (tmp_path / "value.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"mot": "été", "sizes": [2, 3]}
    assert "été" in text
    assert text.endswith("}\n")


def test_what_json_cannot_hold_leaves_the_old_file(tmp_path: Path) -> None:
    write_json(tmp_path / "value.json", 1)
    with pytest.raises(TypeError):
        write_json(tmp_path / "value.json", {"model": object()})
    assert json.loads((tmp_path / "value.json").read_text()) == 1
