"""The lines of a text file as bytes, one at a time, whatever the size of the file or of a line.

Only a line feed ends a line. Python's own text reading would also break at U+2028, form feeds and the like, which
do occur inside sentences, and two parallel files would slip out of step from there on. Whether a file is gzip is
read from its first bytes, not from its name.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from regard.core.errors import DataError, nearest

LONGEST_LINE = 1 << 20
"""Bytes, its end included; a longer line is passed over without being held in memory."""

_BLOCK = 1 << 16
_GZIP = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_NOT_TEXT = {
    b"\xff\xfe": "is UTF-16; convert it with `iconv -f UTF-16 -t UTF-8`",
    b"\xfe\xff": "is UTF-16; convert it with `iconv -f UTF-16 -t UTF-8`",
    b"PK\x03\x04": "is a zip archive; unpack it first",
    b"BZh": "is compressed with bzip2; unpack it first, or compress it with gzip",
    b"\xfd7zXZ\x00": "is compressed with xz; unpack it first, or compress it with gzip",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd; unpack it first, or compress it with gzip",
}


def check_file(path: Path) -> None:
    """Refuses what is no readable text file, and says which file was probably meant."""
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a text file. Name the file inside it.")
    if not path.exists():
        raise DataError(f"There is no file {path}.{_suggestion(path)}")
    if not path.is_file():
        raise DataError(f"{path} is no regular file. It is read more than once, so save it to a file first.")
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    for magic, sentence in _NOT_TEXT.items():
        if start.startswith(magic):
            raise DataError(f"{path} {sentence}.")


def read_lines(path: Path) -> Iterator[bytes | None]:
    """Each line without its end (LF or CRLF) and without a byte order mark; None for one over `LONGEST_LINE`."""
    number = 0
    with _open(path) as file:
        try:
            while line := file.readline(LONGEST_LINE + 1):
                if number == 0:
                    line = line.removeprefix(_UTF8_MARK)
                number += 1
                if len(line) <= LONGEST_LINE:
                    yield line.removesuffix(b"\n").removesuffix(b"\r")
                else:
                    while not line.endswith(b"\n") and (line := file.readline(LONGEST_LINE)):
                        pass
                    yield None
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(
                f"{path} cannot be read to its end, from somewhere after line {number:,}: {error}. Fetch it anew."
            ) from error


def _open(path: Path) -> io.BufferedReader:
    with path.open("rb") as file:
        zipped = file.read(2) == _GZIP
    if not zipped:
        return path.open("rb")
    return io.BufferedReader(cast(io.RawIOBase, gzip.open(path, "rb")), _BLOCK)


def _suggestion(path: Path) -> str:
    """The nearest existing name beside a missing file, or the folder that is missing already."""
    folder = path.parent
    if not folder.is_dir():
        return f" The folder {folder} does not exist either."
    close = nearest(path.name, [entry.name for entry in folder.iterdir() if entry.is_file()])
    return f" Did you mean {folder / close}?" if close else ""
