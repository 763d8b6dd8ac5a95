"""From a configuration to token ids: every source, the parts that were not named, limits, caches, and refusals."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from regard.core.errors import CheckpointError, ConfigError, DataError, UnknownNameError
from regard.data.config import DataConfig
from regard.data.corpus import load_corpus
from regard.data.special import UNK
from regard.data.tokenizers import train_tokenizer

REAL_DATA = os.environ.get("REGARD_DATA")

LINES = [(f"the cat number {number} sleeps.", f"le chat numéro {number} dort.") for number in range(997)]


def write_tsv(path: Path, lines: list[tuple[str, str]] = LINES) -> str:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in lines), encoding="utf-8")
    return str(path)


def files(train: str, **options: Any) -> DataConfig:
    return DataConfig(source="files", train=train, vocabulary_size=97, **options)


def texts(corpus) -> list[tuple[str, str]]:
    return [(corpus.source_text(index), corpus.target_text(index)) for index in range(len(corpus))]


def test_named_parts_are_read_as_they_are(tmp_path: Path) -> None:
    config = files(
        write_tsv(tmp_path / "train.tsv"),
        valid=write_tsv(tmp_path / "valid.tsv", LINES[:5]),
        test=write_tsv(tmp_path / "test.tsv", LINES[5:12]),
    )
    corpus = load_corpus(config)
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [997, 5, 7]
    assert texts(corpus.valid) == LINES[:5]
    assert not corpus.train.has_texts
    for index, (source, target) in enumerate(LINES):
        assert corpus.source_tokenizer.decode(corpus.train[index][0]) == source
        assert corpus.target_tokenizer.decode(corpus.train[index][1]) == target
    assert corpus.report.notes == ()
    assert corpus.report.summary().splitlines()[0] == "train: 997 pairs of 997 lines"
    json.dumps(corpus.report.to_json())


def test_two_files_give_the_same_ids_as_columns(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("".join(f"{source}\n" for source, _ in LINES), encoding="utf-8")
    (tmp_path / "a.fr").write_text("".join(f"{target}\n" for _, target in LINES), encoding="utf-8")
    columns = load_corpus(files(write_tsv(tmp_path / "a.tsv")))
    two = load_corpus(files(f"{tmp_path}/a.en,{tmp_path}/a.fr"))
    assert texts(two.test) == texts(columns.test)
    assert [list(row) for row in two.train.target] == [list(row) for row in columns.train.target]


def test_parts_that_are_not_named_are_held_out_of_train(tmp_path: Path) -> None:
    corpus = load_corpus(files(write_tsv(tmp_path / "train.tsv", LINES + LINES[:500])))
    held_out = {*texts(corpus.valid), *texts(corpus.test)}
    assert len(corpus.valid) == len(corpus.test) == 14
    assert len(held_out) == 28
    trained = {corpus.source_tokenizer.decode(row) for row in corpus.train.source}
    assert trained == {source for source, target in LINES if (source, target) not in held_out}
    report = corpus.report.parts["train"]
    assert (report.lines, report.pairs) == (1497, len(corpus.train))
    assert report.held_out == 1497 - len(corpus.train) >= 28
    assert corpus.report.parts["test"].lines == 14
    assert len(corpus.report.notes) == 2
    assert "held out" in corpus.report.summary()


def test_only_the_missing_part_is_held_out(tmp_path: Path) -> None:
    corpus = load_corpus(
        files(write_tsv(tmp_path / "train.tsv"), test=write_tsv(tmp_path / "test.tsv", [("a cat", "un chat")]))
    )
    assert (len(corpus.train), len(corpus.valid), texts(corpus.test)) == (988, 9, [("a cat", "un chat")])


def test_tokenizers_learn_from_train_alone(tmp_path: Path) -> None:
    config = files(write_tsv(tmp_path / "train.tsv"), test=write_tsv(tmp_path / "test.tsv", [("zebra", "zèbre")] * 50))
    corpus = load_corpus(config)
    assert UNK in corpus.test[0][0]
    assert corpus.test.unknown_rates[0] > 0


def test_of_a_huge_text_tokenizers_see_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.corpus.MOST_TRAINING_PAIRS", 500)
    lines = [(f"word{number % 2}", f"mot{number % 3}") for number in range(1200)]
    small = write_tsv(tmp_path / "small.tsv", lines[:5])
    corpus = load_corpus(files(write_tsv(tmp_path / "train.tsv", lines), valid=small, test=small, tokenizer="words"))
    assert corpus.report.notes == ("The tokenizers were trained on one in 3 pairs of train.",)
    assert (corpus.source_tokenizer.size, corpus.target_tokenizer.size) == (6, 5)
    assert len(corpus.train) == 1200


def test_given_tokenizers_are_used_and_train_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = write_tsv(tmp_path / "train.tsv"), write_tsv(tmp_path / "test.tsv", LINES[:3])
    first = load_corpus(files(train, test=test))
    (tmp_path / "train.tsv").unlink()
    monkeypatch.setattr("regard.data.corpus.train_tokenizer", None)
    tokenizers = (first.source_tokenizer, first.target_tokenizer)
    again = load_corpus(files(train, test=test), tokenizers, parts=("test",))
    assert [list(row) for row in again.test.source] == [list(row) for row in first.test.source]
    with pytest.raises(AssertionError, match="train part was not asked for"):
        _ = again.train


def test_a_joint_vocabulary_is_one_object(tmp_path: Path) -> None:
    config = files(write_tsv(tmp_path / "train.tsv"), joint=True)
    corpus = load_corpus(config)
    assert corpus.source_tokenizer is corpus.target_tokenizer
    assert corpus.source_tokenizer.decode(corpus.target_tokenizer.encode("le chat sleeps.")) == "le chat sleeps."
    other = train_tokenizer("words", ["a"], 10)
    with pytest.raises(CheckpointError, match="joint"):
        load_corpus(config, (corpus.source_tokenizer, other))


def test_ill_formed_lines_are_skipped_and_reported_or_refused(tmp_path: Path) -> None:
    lines = [*LINES[:50], ("", "vide"), ("x " * 300, "long"), *LINES[50:], ("x" * 3 * 97, "y")]
    path = write_tsv(tmp_path / "train.tsv", lines)
    with pytest.raises(DataError, match=r"train\.tsv, line 51: the source side is empty\. Correct the file, or"):
        load_corpus(files(path))
    config = files(path, on_bad="skip", max_tokens=200, tokenizer="characters")
    report = load_corpus(config).report
    assert report.parts["train"].skipped == {"empty": 1, "words": 1, "tokens": 1}
    assert report.parts["train"].pairs == 997 - 18
    assert report.parts["valid"].skipped == {}
    for part in ("skipped 1 with an empty side (line 51)", "too many words (line 52)", "too many tokens (line 1,000)"):
        assert part in report.summary()
    assert load_corpus(config).report == report


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    config = files(write_tsv(tmp_path / "train.tsv"))
    load_corpus(config)
    write_tsv(tmp_path / "train.tsv", [*LINES, ("a new line", "une ligne")])
    assert load_corpus(config).report.parts["train"].lines == 998


@pytest.mark.parametrize("options", [{"train": None}, {"train": ""}])
def test_files_need_a_training_text(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="need a training text"):
        load_corpus(DataConfig(source="files", **options))


def test_a_missing_test_file_is_told_before_training_text_is_read(tmp_path: Path) -> None:
    config = files(write_tsv(tmp_path / "train.tsv", []), test=str(tmp_path / "tset.tsv"))
    write_tsv(tmp_path / "test.tsv")
    with pytest.raises(DataError, match=r"no file .*tset\.tsv\. Did you mean .*test\.tsv"):
        load_corpus(config)


def test_an_unknown_tokenizer_or_language_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="'words'"):
        load_corpus(files(write_tsv(tmp_path / "train.tsv"), tokenizer="wrods"))
    with pytest.raises(UnknownNameError, match="language in Multi30k"):
        load_corpus(DataConfig(source="multi30k", target_language="ge"))
    with pytest.raises(ConfigError, match="its own train"):
        load_corpus(DataConfig(source="multi30k", train="my.tsv"))
    with pytest.raises(ConfigError, match="not from en to de"):
        load_corpus(DataConfig(target_language="de"))
    with pytest.raises(ConfigError, match="reads no files"):
        load_corpus(DataConfig(train="my.tsv"))


def test_the_embedded_corpus_brings_words_and_alignments() -> None:
    corpus = load_corpus(DataConfig(num_sentences=211, seed=3))
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [211, 21, 21]
    assert corpus.source_tokenizer.kind == "words"
    for index in range(len(corpus.test)):
        source, target = corpus.test.source_text(index), corpus.test.target_text(index)
        sure, possible = corpus.test.alignment(index)
        assert sure <= possible
        assert all(i < len(source.split()) and j < len(target.split()) for i, j in possible)
        assert len(corpus.test[index][0]) == len(source.split())
    assert corpus.train.unknown_rates == (0, 0)


def test_the_embedded_corpus_is_reversed_on_demand() -> None:
    there = load_corpus(DataConfig(num_sentences=53), parts=("test",)).test
    back = load_corpus(DataConfig(num_sentences=53, source_language="fr", target_language="en"), parts=("test",)).test
    assert texts(back) == [(target, source) for source, target in texts(there)]
    assert back.alignment(2).sure == {(j, i) for i, j in there.alignment(2).sure}


def test_embedded_tokenizers_may_be_given_and_of_another_kind() -> None:
    first = load_corpus(DataConfig(num_sentences=53, tokenizer="bpe", vocabulary_size=211, joint=True))
    again = load_corpus(
        DataConfig(num_sentences=53), (first.source_tokenizer, first.target_tokenizer), parts=("valid",)
    )
    assert [list(row) for row in again.valid.source] == [list(row) for row in first.valid.source]


def test_config_round_trip_and_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_tsv(tmp_path / "v.tsv")
    config = DataConfig(source="files", train="a.en,a.fr", valid="v.tsv")
    absolute = config.absolute()
    assert (absolute.train, absolute.valid, absolute.test) == (
        f"{tmp_path}/a.en,{tmp_path}/a.fr",
        f"{tmp_path}/v.tsv",
        None,
    )
    assert DataConfig.model_validate_json(absolute.model_dump_json()) == absolute
    assert DataConfig().absolute() == DataConfig()
    assert (DataConfig().tokenizer_kind, config.tokenizer_kind) == ("words", "bpe")
    with pytest.raises(ValidationError):
        DataConfig(max_words=0)


@pytest.mark.skipif(REAL_DATA is None, reason="REGARD_DATA names no folder with data sets")
def test_multi30k_is_well_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert REAL_DATA is not None
    monkeypatch.setenv("REGARD_DATA", REAL_DATA)
    config = DataConfig(source="multi30k", target_language="de", joint=True, test="test_2017_flickr")
    corpus = load_corpus(config)
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [29_000, 1014, 1000]
    assert all(not report.skipped for report in corpus.report.parts.values())
    for index in range(0, 1000, 97):
        assert corpus.source_tokenizer.decode(corpus.test[index][0]) == corpus.test.source_text(index)
