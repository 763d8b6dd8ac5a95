"""`regard importance`: a row for each head of a run of every task."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard as library

from .conftest import Command


@pytest.mark.parametrize("name", ["transformer", "vit-shapes"])
def test_a_row_for_each_head(regard: Command, trained: dict[str, Path], name: str) -> None:
    opened = library.open_run(trained[name])
    result = regard("importance", trained[name], "--json", "--examples", 7)
    assert result.code == 0, result.err
    rows = result.json["heads"]
    measured = library.importance(opened, opened.batches("valid", 7))
    assert result.json["loss"] == measured.loss
    assert rows == [vars(row) for row in measured.heads]
    assert len({(row["address"], row["head"]) for row in rows}) == len(rows) > 1
    again = regard("importance", trained[name], "--examples", 7, "--taps", rows[0]["address"])
    assert again.code == 0
    assert rows[0]["address"] in again.out
    assert rows[-1]["address"] not in again.out


def test_mistakes(regard: Command, trained: dict[str, Path]) -> None:
    assert "no attention to look at" in regard("importance", trained["cho"]).err
    assert "matches 'x'" in regard("importance", trained["rnnsearch"], "--taps", "x").err
    assert regard("importance", trained["rnnsearch"], "--examples", "-1").code == 2
