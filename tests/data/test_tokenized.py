"""Token ids in memory and on disk: the same numbers, tokenised once, found again, made anew when damaged."""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import DataError
from regard.data import tokenized_cache
from regard.data.ragged import Ragged, RaggedWriter
from regard.data.report import ReadReport
from regard.data.special import UNK
from regard.data.text import TextPair
from regard.data.tokenized import Alignment, TokenizedCorpus
from regard.data.tokenized_cache import tokenize_cached
from regard.data.tokenizers import Tokenizer, train_tokenizer

PAIRS = [
    (f"the {word} cat number {number}", f"le chat {word}") for number, word in enumerate(["red", "big", "été"] * 9)
]
SOURCE = train_tokenizer("bpe", [source for source, _ in PAIRS], 61)
TARGET = train_tokenizer("words", [target for _, target in PAIRS[:1]], 61)


class Reader:
    """Gives the pairs, and knows how often it was asked."""

    def __init__(self, pairs: list[tuple[str, str]] = PAIRS) -> None:
        self.pairs = pairs
        self.calls = 0

    def __call__(self, report: ReadReport) -> Iterator[TextPair]:
        self.calls += 1
        for line, (source, target) in enumerate(self.pairs, 1):
            report.lines += 1
            yield TextPair(source, target, line)


def load(reader: Reader, key: str = "key", **options: Any) -> TokenizedCorpus:
    return tokenize_cached(reader, (SOURCE, TARGET), key=key, name="data.tsv", **options)


def folders(cache: Path) -> list[Path]:
    return sorted((cache / "tokenized").iterdir())


@given(rows=st.lists(st.lists(st.integers(0, 2**31 - 1))), block=st.integers(1, 7))
def test_ragged_rows_come_back_from_memory_and_disk(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[int]], block: int
) -> None:
    rows = [*rows, [7]]
    path = tmp_path_factory.mktemp("ragged") / "rows"
    with RaggedWriter(path, np.dtype("<i4")) as writer:
        for start in range(0, len(rows), block):
            writer.extend(rows[start : start + block])
    for ragged in (Ragged.from_rows(rows, np.dtype("<i4")), Ragged.open(path, np.dtype("<i4"))):
        assert [list(row) for row in ragged] == rows
        assert list(ragged.lengths()) == [len(row) for row in rows]
        with pytest.raises(IndexError):
            ragged[len(rows)]
        with pytest.raises(IndexError):
            ragged[-1]


@pytest.mark.parametrize("chunk", [1, 5, 1000])
def test_disk_and_memory_agree_whatever_the_chunk(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(tokenized_cache, "CHUNK_PAIRS", chunk)
    progress: list[str] = []
    mapped = load(Reader(), keep_texts=True, progress=progress.append)
    memory = TokenizedCorpus.from_pairs(PAIRS, SOURCE, TARGET)
    assert len(mapped) == len(memory) == len(PAIRS)
    assert len(progress) == -(-len(PAIRS) // chunk)
    for index, (source, target) in enumerate(PAIRS):
        for corpus in (mapped, memory):
            assert list(corpus[index][0]) == SOURCE.encode(source)
            assert list(corpus[index][1]) == TARGET.encode(target)
            assert corpus[index][0].dtype == np.int32
            assert (corpus.source_text(index), corpus.target_text(index)) == (source, target)
    expected = [[len(SOURCE.encode(source)), len(TARGET.encode(target))] for source, target in PAIRS]
    assert mapped.lengths.tolist() == memory.lengths.tolist() == expected
    assert mapped.num_unknown == memory.num_unknown == (0, 18)
    assert mapped.unknown_rates == (0, pytest.approx(18 / 81))
    assert UNK in mapped[1][1]


def test_the_cache_is_used_and_not_written_again(cache: Path) -> None:
    reader = Reader()
    load(reader)
    (folder,) = folders(cache)
    times = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    again = load(reader)
    assert reader.calls == 1
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == times
    assert again.report.pairs == len(PAIRS)
    assert not again.has_texts


def test_whatever_matters_makes_another_folder(cache: Path) -> None:
    load(Reader())
    load(Reader(), key="other")
    load(Reader(), keep_texts=True)
    load(Reader(), max_tokens=1000)
    load(Reader(), on_bad="skip")
    tokenize_cached(Reader(), (SOURCE, SOURCE), key="key", name="data.tsv")
    assert len(folders(cache)) == 6


@pytest.mark.parametrize("damage", ["cut", "flip", "remove", "meta", "meta json", "empty"])
def test_a_damaged_folder_is_made_anew(cache: Path, damage: str) -> None:
    reader = Reader()
    load(reader)
    (folder,) = folders(cache)
    values, meta = folder / "target.values", folder / "meta.json"
    content = values.read_bytes()
    if damage == "cut":
        values.write_bytes(content[:-4])
    elif damage == "flip":
        values.write_bytes(content[:-1] + bytes([content[-1] ^ 64]))
    elif damage == "remove":
        values.unlink()
    elif damage == "meta":
        meta.unlink()
    elif damage == "meta json":
        meta.write_text('{"files": []}')
    else:
        for file in folder.iterdir():
            file.unlink()
    repaired = load(reader)
    assert reader.calls == 2
    assert [row.tolist() for row in repaired.target] == [TARGET.encode(target) for _, target in PAIRS]
    load(reader)
    assert reader.calls == 2


def test_over_long_pairs_are_refused_or_counted() -> None:
    pairs = [PAIRS[0], ("cat", "le " * 50), PAIRS[1], ("number " * 41, "le")]
    with pytest.raises(DataError, match=r"data\.tsv, line 2: the target side has 50 tokens, more than 30"):
        load(Reader(pairs), max_tokens=30)
    corpus = load(Reader(pairs), max_tokens=30, on_bad="skip")
    assert len(corpus) == corpus.report.pairs == 2
    assert corpus.report.skipped == {"tokens": 2}
    assert [problem.line for problem in corpus.report.examples["tokens"]] == [2, 4]
    assert load(Reader(pairs), max_tokens=30, on_bad="skip").report == corpus.report
    with pytest.raises(DataError, match=r"No pair of data\.tsv has at most 1 tokens"):
        load(Reader(pairs), max_tokens=1, on_bad="skip")


def test_a_failed_build_leaves_nothing(cache: Path) -> None:
    with pytest.raises(DataError):
        load(Reader(), max_tokens=1)
    assert folders(cache) == []


def test_remains_of_a_killed_process_are_cleared_after_a_day(cache: Path) -> None:
    (cache / "tokenized" / ".old").mkdir(parents=True)
    (cache / "tokenized" / ".young").mkdir()
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(cache / "tokenized" / ".old", (two_days_ago, two_days_ago))
    load(Reader())
    assert {folder.name for folder in folders(cache) if folder.name.startswith(".")} == {".young"}


def test_the_quicker_of_two_builders_wins(cache: Path) -> None:
    class Rival(Reader):
        """While it is read, another process builds the same corpus."""

        def __call__(self, report: ReadReport) -> Iterator[TextPair]:
            if self.calls == 0:
                self.calls += 1
                load(Reader())
            return super().__call__(report)

    corpus = load(Rival())
    assert len(corpus) == len(PAIRS)
    assert len(folders(cache)) == 1


def test_a_full_disk_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: RaggedWriter, rows: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RaggedWriter, "extend", full)
    with pytest.raises(DataError, match=r"No space left on device\. Make room there, .* REGARD_CACHE"):
        load(Reader())


def test_memory_grows_with_the_chunk_and_not_with_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenized_cache, "CHUNK_PAIRS", 100)

    class Many(Reader):
        def __call__(self, report: ReadReport) -> Iterator[TextPair]:
            for line in range(9973):
                report.lines += 1
                yield TextPair("the red cat number one", "le chat red", line)

    tracemalloc.start()
    corpus = load(Many())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(corpus) == 9973
    assert peak < 9973 * 100


def test_alignments_belong_to_their_examples() -> None:
    links = [Alignment(frozenset({(0, number)}), frozenset({(0, number), (1, 1)})) for number in range(len(PAIRS))]
    corpus = TokenizedCorpus.from_pairs(PAIRS, SOURCE, TARGET, links)
    assert corpus.has_alignments
    assert corpus.alignment(5).sure == {(0, 5)}
    with pytest.raises(DataError, match="no gold alignments"):
        TokenizedCorpus.from_pairs(PAIRS, SOURCE, TARGET).alignment(0)


def test_tokenizers_of_a_joint_vocabulary_may_be_one_object() -> None:
    both: Tokenizer = train_tokenizer("characters", [text for pair in PAIRS for text in pair], 100)
    corpus = TokenizedCorpus.from_pairs(PAIRS, both, both)
    assert both.decode(corpus[2][1]) == PAIRS[2][1]
