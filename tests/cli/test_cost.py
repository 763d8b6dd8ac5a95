"""`regard cost`: the deck's numbers, models of every family, runs and files, and sentences for what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regard.core.relations import DotRelation
from regard.recording import Recording

from .conftest import Command


def test_the_decks_cases(regard: Command) -> None:
    shown = regard("cost").out
    for number in ("1 GiB", "768 GiB", "150 KiB", "112 MiB", "256 KiB", "192 MiB"):
        assert number in shown
    cases = regard("cost", "--json").json["cases"]
    assert [case["matrix"] for case in cases] == [4 * 128**4, 4 * 38_416, 4 * 65_536]
    assert [case["matrices"] for case in cases] == [768 * case["matrix"] for case in cases]


def test_a_picture_model_of_any_size(regard: Command) -> None:
    found = regard("cost", "vit_tiny_patch16_224", "--image-size", "64", "96", "--batch", "2", "--json").json
    assert len(found["taps"]) == 12
    assert found["taps"][0]["shape"] == [2, 3, 25, 25]
    assert found["maps"] == 12 * 2 * 3 * 25**2 * 4
    half = regard("cost", "vit_tiny_patch16_224", "--image-size", "64", "96", "--precision", "bfloat16", "--json").json
    assert half["maps"] == found["maps"] / 2
    assert half["recorded"] < found["recorded"] / 3
    assert "recorded: " in regard("cost", "vit_tiny_patch16_224").out


def test_a_translator(regard: Command) -> None:
    found = regard("cost", "transformer", "--tokens", "11", "7", "--json").json
    assert {tuple(tap["shape"][2:]) for tap in found["taps"]} == {(11, 11), (7, 7), (7, 11)}


def test_a_run_and_a_recording(regard: Command, trained: dict[str, Path], tmp_path: Path) -> None:
    found = regard("cost", trained["rnnsearch"], "--tokens", "5", "--json").json
    assert [tap["form"] for tap in found["taps"]] == ["dense"]
    queries = torch.randn(1, 2, 3, 5)
    recording = Recording({"here": DotRelation(queries, queries, 1.0)}, {"here": ("a", "a")})
    assert regard("cost", recording.save(tmp_path / "it.regard"), "--json").json["recorded"] == 2 * queries.nbytes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["vit_tiny_patch16_22"], "Did you mean 'vit_tiny_patch16_224'"),
        (["resnet50"], "has no attention, so there is nothing to record"),
        (["transformer", "--tokens", "1", "2", "3"], "--tokens takes one or two whole numbers above zero, not 1 2 3"),
        (["vit_tiny_patch16_224", "--image-size", "0"], "--image-size takes one or two whole numbers"),
    ],
)
def test_what_has_no_cost(regard: Command, arguments: list[str], said: str) -> None:
    result = regard("cost", *arguments)
    assert result.code == 2
    assert said in result.err
