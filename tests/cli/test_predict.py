from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Command

SENTENCES = ("The cat sleeps .", "They stay with the minister .", "The girl bought the house .")


def test_one_line_each(regard: Command, run: Path) -> None:
    result = regard("predict", run, *SENTENCES)
    assert result.code == 0
    assert result.out.count("\n") == 3


def test_all_ways_in_give_the_same(regard: Command, run: Path, tmp_path: Path) -> None:
    text = "".join(f"{sentence}\n" for sentence in SENTENCES)
    (tmp_path / "plain.en").write_text(text)
    (tmp_path / "packed.en.gz").write_bytes(gzip.compress(text.encode()))
    expected = regard("predict", run, *SENTENCES).out
    assert regard("predict", run, stdin=text).out == expected
    assert regard("predict", run, stdin=text.rstrip("\n")).out == expected, "a last line without its end is a line"
    assert regard("predict", run, "--file", tmp_path / "plain.en").out == expected
    assert regard("predict", run, "--file", tmp_path / "packed.en.gz").out == expected


def test_empty_lines_stay_empty(regard: Command, run: Path) -> None:
    lines = regard("predict", run, stdin=f"\n{SENTENCES[0]}\n  \n").out.split("\n")
    assert lines[0] == lines[2] == lines[3] == ""
    assert lines[1]
    assert len(lines) == 4


def test_nothing_in_nothing_out(regard: Command, run: Path) -> None:
    result = regard("predict", run, stdin="")
    assert (result.code, result.out) == (0, "")


def test_a_sentence_that_begins_with_a_dash(regard: Command, run: Path) -> None:
    assert regard("predict", run, "--", "- The cat sleeps .").out.count("\n") == 1


def test_alignments(regard: Command, run: Path, trained: dict[str, Path]) -> None:
    text, links = regard("predict", run, SENTENCES[0], "--alignments").out.rstrip("\n").split("\t")
    assert text
    for link in links.split():
        source, target = map(int, link.split("-"))
        assert 0 <= source < 4
        assert 0 <= target < len(text.split())
    result = regard("predict", trained["cho"], SENTENCES[0], "--alignments")
    assert result.code == 2
    assert "no attention" in result.err


def test_json_is_one_object_a_line(regard: Command, run: Path) -> None:
    lines = regard("predict", run, *SENTENCES, "--json").out.splitlines()
    objects = [json.loads(line) for line in lines]
    assert [each["source"] for each in objects] == list(SENTENCES)
    assert [each["line"] for each in objects] == [1, 2, 3]
    # A model after two steps may look at nothing but the end of a sentence, and that is no word to link to.
    assert any(each["alignment"] for each in objects)
    for each in objects:
        for source, target in (map(int, link.split("-")) for link in each["alignment"].split()):
            assert 0 <= source < len(each["source"].split())
            assert 0 <= target < len(each["translation"].split())


def test_the_best_few(regard: Command, run: Path) -> None:
    lines = regard("predict", run, *SENTENCES[:2], "--num-best", "5").out.splitlines()
    ranks = [line.split(" ||| ") for line in lines]
    assert [rank[0] for rank in ranks] == ["0"] * 5 + ["1"] * 5
    scores = [float(rank[2]) for rank in ranks[:5]]
    assert scores == sorted(scores, reverse=True)


def test_a_file_to_write_to(regard: Command, run: Path) -> None:
    result = regard("predict", run, *SENTENCES, "--out", "there/out.txt")
    assert (result.code, result.out) == (0, "")
    assert Path("there/out.txt").read_text().count("\n") == 3


def test_decoding_can_be_chosen(regard: Command, run: Path) -> None:
    result = regard("predict", run, *SENTENCES, "--decoding.method", "greedy", "--decoding.max-length", "3")
    assert all(len(line.split()) <= 3 for line in result.out.splitlines())


def test_draws_do_not_depend_on_how_the_lines_come_in(regard: Command, run: Path, tmp_path: Path) -> None:
    options = ("--decoding.method", "sample", "--decoding.max-length", "7", "--decoding.seed", "5")
    text = "".join(f"{sentence}\n" for sentence in SENTENCES * 2)
    (tmp_path / "text.en").write_text(text)
    from_stdin = regard("predict", run, *options, stdin=text).out
    assert from_stdin == regard("predict", run, *options, "--file", tmp_path / "text.en").out
    assert len(set(from_stdin.splitlines())) > 3, "the same sentence twice is drawn twice"


class TestRefusals:
    """Name the line; what was good before it is written all the same."""

    def check(self, regard: Command, run: Path, bad: str | bytes, said: str, *options: object) -> None:
        raw = bad.encode() if isinstance(bad, str) else bad
        good = f"{SENTENCES[0]}\n\n".encode()
        result = regard("predict", run, *options, stdin=good + raw + b"\n" + good)
        assert result.code == 1
        assert result.err.startswith("regard: error: Line 3")
        assert said in result.err
        assert result.out.count("\n") == 2

    def test_a_sentence_of_ten_thousand_words(self, regard: Command, run: Path) -> None:
        self.check(regard, run, "cat " * 10_000, "10,000 words, more than 1,000")

    def test_a_limit_of_ones_own(self, regard: Command, run: Path) -> None:
        self.check(regard, run, "The cat sleeps here .", "5 words, more than 4", "--max-words", "4")

    def test_unknown_words_only(self, regard: Command, run: Path) -> None:
        self.check(regard, run, "Xylophonquatsch zzz", "has no word that the model's vocabulary")

    def test_bytes_that_are_no_text(self, regard: Command, run: Path) -> None:
        self.check(regard, run, b"ab\xff\xfe", "is not UTF-8 (byte 3)")

    def test_a_file_is_checked_before_the_work_begins(self, regard: Command, run: Path, tmp_path: Path) -> None:
        path = tmp_path / "text.en"
        path.write_text(f"{SENTENCES[0]}\n" * 3 + "zzz\n")
        result = regard("predict", run, "--file", path, "--out", "out.txt")
        assert result.code == 1
        assert "Line 4" in result.err
        assert not Path("out.txt").exists()

    @pytest.mark.parametrize("place", ["nowhere.en", "."])
    def test_no_file(self, regard: Command, run: Path, place: str) -> None:
        result = regard("predict", run, "--file", place)
        assert result.code == 1
        assert place in result.err

    def test_both_sentences_and_a_file(self, regard: Command, run: Path, tsv: Path) -> None:
        assert regard("predict", run, "Hello", "--file", tsv).code == 2


def test_a_longer_sentence_where_it_is_wanted(regard: Command, run: Path) -> None:
    result = regard("predict", run, "the " * 1200, "--max-words", "2000", "--decoding.max-length", "5")
    assert result.code == 0


def test_lines_are_answered_while_more_may_come(run: Path) -> None:
    """Somebody who types a line gets its translation, not silence until the end."""
    program = "import sys; from regard.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "predict", str(run), "--decoding.max-length", "5"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for sentence in SENTENCES[:2]:
            process.stdin.write(f"{sentence}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().strip()
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_words_that_are_not_known_are_told(regard: Command, run: Path) -> None:
    """Such as one with its full stop, which the embedded language writes apart."""
    result = regard("predict", run, "The king sleeps.", "The king sleeps .", "--json")
    assert result.code == 0
    assert "does not know 'sleeps.'. It reads words with blanks between them" in result.err
    assert result.err.count("does not know") == 1
    assert "does not know 'sleeps.'" in regard("look", run, "The king sleeps.", "--out", "look.png").err
    many = regard("predict", run, "The k1 k1 k2 k3 k4 k5 k6 .", "--decoding.max-length", "5").err
    assert "does not know 'k1', 'k2', 'k3', 'k4', 'k5', ..." in many
