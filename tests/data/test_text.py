"""Parallel text: every kind of ill-formed line, skipped and refused, and everything that is to be understood."""

from __future__ import annotations

import gzip
import itertools
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import DataError
from regard.data import lines
from regard.data.report import NUM_EXAMPLES, ReadReport
from regard.data.text import PairPaths, TextPair, normalise, read_pairs


def tsv(folder: Path, content: str | bytes) -> PairPaths:
    path = folder / "data.tsv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return PairPaths(path)


def files(folder: Path, source: str | bytes, target: str | bytes) -> PairPaths:
    paths = PairPaths(folder / "data.en", folder / "data.fr")
    for path, content in zip(paths.files, (source, target), strict=True):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return paths


GOOD = "one\tun\n"
BAD_ROWS = {
    "encoding": b"a\xff\tb",
    "control": b"a\x00b\tc",
    "columns": b"alone",
    "empty": b"\tb",
    "words": b"a\t1 2 3 4 5 6 7 8",
}


def test_two_files_and_columns_give_the_same(tmp_path: Path) -> None:
    expected = [TextPair("one", "un", 1), TextPair("two", "deux", 2)]
    assert list(read_pairs(files(tmp_path, "one\ntwo\n", "un\ndeux"))) == expected
    assert list(read_pairs(tsv(tmp_path, "one\tun\ntwo\tdeux\tignored\tas well\n"))) == expected
    packed = tsv(tmp_path, gzip.compress(b"one\tun\r\ntwo\tdeux\r\n"))
    assert list(read_pairs(packed)) == expected


def test_blanks_and_composition_are_normalised(tmp_path: Path) -> None:
    paths = files(tmp_path, "\ufeff cafe\u0301\u00a0 noir\u2009! \r\n", "a\tb\u2028c\n")
    assert list(read_pairs(paths)) == [TextPair("café noir !", "a b c", 1)]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_each_kind_is_skipped_and_counted(tmp_path: Path, kind: str) -> None:
    report = ReadReport()
    content = GOOD.encode() + BAD_ROWS[kind] + b"\n" + GOOD.encode()
    pairs = list(read_pairs(tsv(tmp_path, content), on_bad="skip", max_words=7, report=report))
    assert [pair.line for pair in pairs] == [1, 3]
    assert report.skipped == {kind: 1}
    assert (report.lines, report.pairs) == (3, 2)
    assert (report.examples[kind][0].line, report.examples[kind][0].kind) == (2, kind)
    assert "line 2" in report.summary()


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_each_kind_is_refused_with_file_and_line(tmp_path: Path, kind: str) -> None:
    content = GOOD.encode() + BAD_ROWS[kind] + b"\n"
    with pytest.raises(DataError, match=r"data\.tsv, line 2: .*\. Correct the file, or let"):
        list(read_pairs(tsv(tmp_path, content), on_bad="refuse", max_words=7))


@pytest.mark.parametrize("letter", ["\x0b", "\x0c", "\x1c", "\x1f", "\x7f", "\x85", "\x9f", "\r"])
def test_control_characters_are_named(tmp_path: Path, letter: str) -> None:
    with pytest.raises(DataError, match=f"character 2 is the control character U\\+{ord(letter):04X}"):
        list(read_pairs(tsv(tmp_path, f"a{letter}b\tc\n")))


def test_in_two_files_the_ill_formed_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.fr, line 1: byte 2 is not UTF-8 \(0xe9\)"):
        list(read_pairs(files(tmp_path, b"cafe\n", b"f\xe9 vrier\n")))
    with pytest.raises(DataError, match=r"data\.fr, line 2: the target side is empty"):
        list(read_pairs(files(tmp_path, "a\nb\n", "c\n \u00a0\u200b\n")))
    with pytest.raises(DataError, match=r"data\.en, line 1: the source side has 3 words, more than 2"):
        list(read_pairs(files(tmp_path, "a b c\n", "d\n"), max_words=2))


def test_a_line_over_the_byte_limit_counts_as_over_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 11)
    report = ReadReport()
    pairs = read_pairs(files(tmp_path, "a\n" + "b" * 100 + "\nc\n", "d\ne\nf\n"), on_bad="skip", report=report)
    assert [pair.source for pair in pairs] == ["a", "c"]
    assert report.skipped == {"words": 1}


@pytest.mark.parametrize(("source", "target", "longer"), [("a\nb\nc\n", "d\n", "en"), ("a\n", "d\ne\nf\n", "fr")])
def test_unequal_counts_are_refused_or_the_surplus_is_counted(
    tmp_path: Path, source: str, target: str, longer: str
) -> None:
    paths = files(tmp_path, source, target)
    shorter = "fr" if longer == "en" else "en"
    sentence = rf"data\.{longer}, line 2: .*data\.{shorter} ends after 1 lines, this file goes on"
    with pytest.raises(DataError, match=sentence):
        list(read_pairs(paths))
    report = ReadReport()
    assert len(list(read_pairs(paths, on_bad="skip", report=report))) == 1
    assert report.skipped == {"unequal": 2}


def test_the_first_examples_of_a_kind_are_kept(tmp_path: Path) -> None:
    report = ReadReport()
    list(read_pairs(tsv(tmp_path, "alone\n" * 23 + GOOD), on_bad="skip", report=report))
    assert report.skipped["columns"] == 23
    assert [problem.line for problem in report.examples["columns"]] == list(range(1, NUM_EXAMPLES + 1))
    assert "10, ..." in report.summary()


def test_a_report_survives_json(tmp_path: Path) -> None:
    report = ReadReport(held_out=0)
    list(read_pairs(tsv(tmp_path, "alone\n\tb\n" + GOOD), on_bad="skip", report=report))
    again = ReadReport.from_json(json.loads(json.dumps(report.to_json())))
    assert again == report
    assert again.summary() == report.summary()


@pytest.mark.parametrize("content", ["", "\n", "alone\n"])
def test_a_corpus_without_a_pair_is_an_error_even_when_skipping(tmp_path: Path, content: str) -> None:
    with pytest.raises(DataError, match="no usable pair"):
        list(read_pairs(tsv(tmp_path, content), on_bad="skip"))


def test_missing_files_are_refused_before_the_first_line_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("a\n")
    with pytest.raises(DataError, match=r"There is no file .*a\.fr\. Did you mean .*a\.en"):
        read_pairs(PairPaths(tmp_path / "a.en", tmp_path / "a.fr"))


def test_reading_holds_one_line_at_a_time(tmp_path: Path) -> None:
    paths = tsv(tmp_path, "a sentence of the source\tune phrase de la cible\n" * 11_003)
    tracemalloc.start()
    count = sum(1 for _ in read_pairs(paths))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 11_003
    assert peak < paths.source.stat().st_size / 5


def test_the_first_pairs_come_without_reading_on(tmp_path: Path) -> None:
    paths = tsv(tmp_path, GOOD * 3 + "alone\n")
    assert len(list(itertools.islice(read_pairs(paths), 3))) == 3


def test_paths_are_one_file_or_two(tmp_path: Path) -> None:
    assert PairPaths.parse("a.tsv") == PairPaths(Path("a.tsv"))
    assert PairPaths.parse("a.en,a.fr") == PairPaths(Path("a.en"), Path("a.fr"))
    assert str(PairPaths.parse("a.en,a.fr")) == "a.en,a.fr"
    with_comma = tmp_path / "yes,no.tsv"
    with_comma.write_text(GOOD)
    assert PairPaths.parse(str(with_comma)) == PairPaths(with_comma)
    other = tmp_path / "other"
    other.write_text("un\n")
    assert PairPaths.parse(f"{with_comma},{other}") == PairPaths(with_comma, other)
    with pytest.raises(DataError, match="has 2 commas"):
        PairPaths.parse("a,b,c")
    assert PairPaths.parse("~/a.en,~/a.fr").source == Path.home() / "a.en"
