"""Reading parallel text: two files line by line, or one file with tab-separated columns, plain or gzip.

Text comes out in Unicode's composed form (NFC) with single plain spaces between words, whatever kinds of blank were in
the file. A tab-separated file is read without quoting and without a header; its first two columns are the two sides
and further columns are ignored. In two files a tab is a blank like any other.

A line is ill-formed when it is not UTF-8, holds control characters, lacks a column, has an empty side, is over-long,
or has no partner in the other file. Each kind is counted in the `ReadReport`, and refused or skipped as asked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

from regard.core.errors import DataError
from regard.data.lines import LONGEST_LINE, check_file, read_lines
from regard.data.report import OnBad, Problem, ReadReport

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_VISIBLE = re.compile(r"[^\s\u00ad\u200b-\u200f\u2060\ufeff]")
_END: Final = b"\n"  # no line holds it, so it can stand for the end of the shorter file


@dataclass(frozen=True)
class TextPair:
    """A sentence, its translation, and the line (from 1) where they stand."""

    source: str
    target: str
    line: int


@dataclass(frozen=True)
class PairPaths:
    """Where parallel text is: two files, or one tab-separated file when `target` is None."""

    source: Path
    target: Path | None = None

    @classmethod
    def parse(cls, text: str) -> PairPaths:
        """`PATH` is a tab-separated file, `SOURCE,TARGET` are two files; a comma may also be part of a name."""
        whole = Path(text).expanduser()
        commas = [place for place, letter in enumerate(text) if letter == ","]
        if whole.exists() or not commas:
            return cls(whole)
        splits = [(Path(text[:place]).expanduser(), Path(text[place + 1 :]).expanduser()) for place in commas]
        found = [split for split in splits if split[0].is_file() and split[1].is_file()]
        if len(found) != 1 and len(splits) > 1:
            raise DataError(f"{text!r} has {len(commas)} commas; write SOURCE,TARGET with names that have none.")
        return cls(*(found or splits)[0])

    def __str__(self) -> str:
        return str(self.source) if self.target is None else f"{self.source},{self.target}"

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.source,) if self.target is None else (self.source, self.target)

    def absolute(self) -> PairPaths:
        return PairPaths(self.source.absolute(), self.target and self.target.absolute())


def normalise(text: str) -> str:
    """NFC, and exactly one plain space where there was any blank."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def read_pairs(
    paths: PairPaths, *, on_bad: OnBad = "refuse", max_words: int | None = None, report: ReadReport | None = None
) -> Iterator[TextPair]:
    """The well-formed pairs in file order, read as they are asked for.

    A file that cannot be read is refused at once. Ill-formed lines are refused, or skipped and counted in `report`,
    when they are reached; that no pair at all was found is an error in both cases.
    """
    for path in paths.files:
        check_file(path)
    return _read(paths, on_bad, max_words, ReadReport() if report is None else report)


def _read(paths: PairPaths, on_bad: OnBad, max_words: int | None, report: ReadReport) -> Iterator[TextPair]:
    pairs = 0
    rows = _tsv_rows(paths.source) if paths.target is None else _file_rows(paths.source, paths.target)
    for line, row in enumerate(rows, 1):
        report.lines += 1
        pair = row if isinstance(row, Problem) else _check(row, paths, line, max_words)
        if isinstance(pair, Problem):
            report.add(pair, on_bad)
        else:
            pairs += 1
            yield pair
    if pairs == 0:
        raise DataError(f"{paths} holds no usable pair of sentences: {report.summary()}")


def _file_rows(source: Path, target: Path) -> Iterator[tuple[str, str] | Problem]:
    """The two sides of every line; once one file has ended, the surplus of the other."""
    for line, (left, right) in enumerate(zip_longest(read_lines(source), read_lines(target), fillvalue=_END), 1):
        if left == _END or right == _END:
            shorter, longer = (source, target) if left == _END else (target, source)
            yield Problem("unequal", str(longer), line, f"{shorter} ends after {line - 1:,} lines, this file goes on")
            continue
        left_text, right_text = _decode(left, source, line), _decode(right, target, line)
        if isinstance(left_text, Problem):
            yield left_text
        elif isinstance(right_text, Problem):
            yield right_text
        else:
            yield left_text, right_text


def _tsv_rows(path: Path) -> Iterator[tuple[str, str] | Problem]:
    for line, raw in enumerate(read_lines(path), 1):
        text = _decode(raw, path, line)
        if isinstance(text, Problem):
            yield text
            continue
        columns = text.split("\t")
        if len(columns) >= 2:
            yield columns[0], columns[1]
        elif _VISIBLE.search(text):
            yield Problem(
                "columns", str(path), line, "the line has one column; two are needed, with a tab between them"
            )
        else:
            yield "", ""


def _decode(raw: bytes | None, path: Path, line: int) -> str | Problem:
    if raw is None:
        return Problem("words", str(path), line, f"the line is longer than {LONGEST_LINE:,} bytes")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return Problem("encoding", str(path), line, f"byte {error.start + 1} is not UTF-8 (0x{raw[error.start]:02x})")
    control = _CONTROL.search(text)
    if control:
        where = f"character {control.start() + 1} is the control character U+{ord(control[0]):04X}"
        return Problem("control", str(path), line, where)
    return text


def _check(row: tuple[str, str], paths: PairPaths, line: int, max_words: int | None) -> TextPair | Problem:
    pair = TextPair(normalise(row[0]), normalise(row[1]), line)
    for side, text, path in (("source", pair.source, paths.files[0]), ("target", pair.target, paths.files[-1])):
        if not _VISIBLE.search(text):
            return Problem("empty", str(path), line, f"the {side} side is empty")
        if max_words is not None and (num_words := text.count(" ") + 1) > max_words:
            return Problem(
                "words", str(path), line, f"the {side} side has {num_words:,} words, more than {max_words:,}"
            )
    return pair
