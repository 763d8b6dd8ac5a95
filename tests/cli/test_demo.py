from __future__ import annotations

from pathlib import Path

import pytest

from regard.data.embedded import DECK_PAIR
from regard.recipes.demo import Demo, DemoInterrupted

from .conftest import Command


def test_all_of_it_in_small(regard: Command) -> None:
    found = regard("demo", "--quick", "--out", "there", "--json").json
    promised = ["bleu", "aer", "bleu_without_attention", "seconds", "deck_translation", "deck_alignment", "files"]
    assert list(found) == promised
    assert found["deck_translation"] != DECK_PAIR.target_text, "three steps teach nothing"
    files = [Path(file) for file in found["files"]]
    assert [file.suffix for file in files] == [".png", ".svg"] * 4 + [".html", ".tsv"]
    assert all(file.stat().st_size > 500 for file in files)
    assert len([*Path("there/runs").glob("*/*/config.json")]) == 2


def test_a_second_time_and_for_people(regard: Command) -> None:
    assert regard("demo", "--quick", "--out", "there").code == 0
    result = regard("demo", "--quick", "--out", "there")
    assert result.code == 0
    assert len([*Path("there/runs/rnnsearch").iterdir()]) == 2
    assert "BLEU, test sentences" in result.out
    assert f"it should be: {DECK_PAIR.target_text}" in result.out
    assert "regard look there/runs/rnnsearch" in result.out


def test_interrupted(regard: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> Demo:
        raise DemoInterrupted(15, Path("there/runs/cho/now"))

    monkeypatch.setattr("regard.cli.demo.run_demo", interrupted)
    result = regard("demo")
    assert result.code == 143
    assert "regard train --resume there/runs/cho/now" in result.err


def test_a_place_that_is_a_file(regard: Command) -> None:
    Path("taken").touch()
    result = regard("demo", "--quick", "--out", "taken")
    assert result.code == 1
    assert "taken" in result.err
