"""Lines of bytes: what ends one, what is too long, and what is no text file at all."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from regard.core.errors import DataError
from regard.data import lines
from regard.data.lines import check_file, read_lines


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    content = "a\u2028b\x0bc\x85d\x0ce\rf\nsecond\n".encode()
    assert list(read_lines(write(tmp_path / "t", content))) == ["a\u2028b\x0bc\x85d\x0ce\rf".encode(), b"second"]


@pytest.mark.parametrize("content", [b"a\nb", b"a\nb\n", b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb\n"])
def test_line_ends_and_byte_order_mark_are_taken_off(tmp_path: Path, content: bytes) -> None:
    assert list(read_lines(write(tmp_path / "t", content))) == [b"a", b"b"]


def test_empty_lines_are_lines(tmp_path: Path) -> None:
    assert list(read_lines(write(tmp_path / "t", b"\na\n\n"))) == [b"", b"a", b""]
    assert list(read_lines(write(tmp_path / "none", b""))) == []


def test_gzip_is_told_by_its_bytes_and_not_by_its_name(tmp_path: Path) -> None:
    assert list(read_lines(write(tmp_path / "t.txt", gzip.compress(b"a\nb\n")))) == [b"a", b"b"]
    assert list(read_lines(write(tmp_path / "t.gz", b"a\nb\n"))) == [b"a", b"b"]


@pytest.mark.parametrize("packed", [False, True])
def test_an_endless_line_is_passed_over_and_the_next_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 8)
    content = b"1234567\n12345678\n" + b"x" * 100 + b"\nlast\n" + b"y" * 23
    path = write(tmp_path / "t", gzip.compress(content) if packed else content)
    assert list(read_lines(path)) == [b"1234567", None, None, b"last", None]


def test_a_damaged_gzip_file_is_named_with_the_line(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(os.urandom(499).hex().encode() + b"\n" for _ in range(997)))
    path = write(tmp_path / "cut.gz", whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cut\.gz cannot be read to its end, from somewhere after line [34]\d\d:"):
        list(read_lines(path))


def test_a_gzip_file_with_a_bad_checksum_is_damaged(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"a\nb\n"))
    packed[-5] ^= 1
    with pytest.raises(DataError, match="to its end, from somewhere after line 0"):
        list(read_lines(write(tmp_path / "bad.gz", bytes(packed))))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("text\n".encode("utf-16"), "is UTF-16"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"BZh91AY", "bzip2"),
        (b"\xfd7zXZ\x00", "xz"),
        (b"\x28\xb5\x2f\xfdrest", "zstd"),
    ],
)
def test_what_is_no_text_says_what_it_is(tmp_path: Path, content: bytes, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        check_file(write(tmp_path / "file", content))


def test_a_missing_file_suggests_the_nearest(tmp_path: Path) -> None:
    write(tmp_path / "train.en", b"a\n")
    with pytest.raises(DataError, match=r"Did you mean .*/train\.en\?"):
        check_file(tmp_path / "trian.en")
    with pytest.raises(DataError, match=r"There is no file .*/zzzz\.$"):
        check_file(tmp_path / "zzzz")
    with pytest.raises(DataError, match=r"folder .*/nowhere does not exist either"):
        check_file(tmp_path / "nowhere" / "train.en")


def test_folders_and_pipes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        check_file(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="no regular file"):
        check_file(tmp_path / "pipe")
