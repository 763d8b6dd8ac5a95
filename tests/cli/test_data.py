from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command


def test_the_generated_corpus(regard: Command) -> None:
    result = regard("data", "rnnsearch", "--data.num-sentences", "60")
    assert result.code == 0
    assert "train     60  en" in result.out
    assert "% padding" in result.out
    assert "train: 60 pairs of 60 lines" in result.out


def test_files_of_ones_own(regard: Command, tsv: Path) -> None:
    with tsv.open("a") as file:
        file.write("only one column\n\n")
    options = ["--data.train", tsv, "--data.on-bad", "skip", "--data.vocabulary-size", "200"]
    found = regard("data", *options, "--json").json
    assert regard("data", "--json", *options).json == found, "whatever the order"
    assert found["source"] == "files"
    assert found["files"]["train"] == [str(tsv)]
    assert found["tokenizer"] == "bpe"
    assert found["report"]["parts"]["train"]["skipped"] == {"columns": 1, "empty": 1}
    assert found["report"]["parts"]["train"]["examples"]["columns"][0]["line"] == 61
    assert found["report"]["notes"]
    assert sum(part["pairs"] for part in found["parts"].values()) <= 60


def test_examples_are_shown_with_their_tokens(regard: Command) -> None:
    found = regard("data", "rnnsearch", "--data.num-sentences", "60", "--examples", "3", "--json").json
    for part in found["parts"].values():
        assert len(part["examples"]) == 3
        assert part["examples"][0]["source_tokens"][-1] in ".?"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--data.train", "nowhere.tsv"], 1, "There is no file nowhere.tsv"),
        (["--data.source", "files"], 2, "need a training text"),
        (["--data.trian", "x"], 2, "--data.train"),
        (["rnnserch"], 2, "Did you mean 'rnnsearch'?"),
        ([], 2, "Name the recipe first"),
    ],
)
def test_what_cannot_be(regard: Command, arguments: list[str], code: int, said: str) -> None:
    result = regard("data", *arguments)
    assert result.code == code
    assert said in result.err


def test_where_multi30k_is_not(regard: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str, *_: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("regard.data.download._download", refuse)
    result = regard("data", "transformer-multi30k-de")
    assert result.code == 1
    assert "REGARD_DATA" in result.err
