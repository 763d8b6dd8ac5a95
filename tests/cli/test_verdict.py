"""`regard verdict`: curves, controls and a picture, for a sentence and for a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from .conftest import Command


@pytest.fixture
def cat(tmp_path: Path) -> Path:
    path = tmp_path / "cat.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(path)
    return path


@pytest.mark.parametrize("name", ["rnnsearch", "transformer"])
def test_a_sentence(regard: Command, trained: dict[str, Path], tmp_path: Path, name: str) -> None:
    drawn = tmp_path / "verdict.svg"
    result = regard("verdict", trained[name], "The cat sleeps .", "--json", "--orders", 9, "--out", drawn, "v.png")
    assert result.code == 0, result.err
    found = result.json
    assert len(found["positions"]) == 4
    assert set(found["controls"]) == {"random weights", "uniform attention"}
    for curves in (found["map"], *found["controls"].values()):
        assert curves["shares"] == [0, 0.25, 0.5, 0.75, 1]
        assert all(0 <= score <= 1 for score in curves["deletion"] + curves["insertion"])
        assert curves["deletion"][0] == pytest.approx(curves["insertion"][-1]), "the whole input"
    assert 0 < found["deletion_p"] <= 1
    assert "random orders" in drawn.read_text(encoding="utf-8")
    with Image.open("v.png") as second:
        assert second.size[0] > 500


def test_a_picture(regard: Command, trained: dict[str, Path], cat: Path) -> None:
    result = regard("verdict", trained["vit-shapes"], cat, "--orders", 5, "--points", 4, "--dark", "--out", "v.pdf")
    assert result.code == 0, result.err
    assert "random orders, 95 %" in result.out
    assert "uniform attention" in result.out
    assert Path("v.pdf").read_bytes().startswith(b"%PDF")
    found = regard("verdict", trained["vit-shapes"], cat, "--orders", 5, "--json").json
    assert found["map"]["deletion"][0] == pytest.approx(found["probability"], rel=1e-4)


def test_mistakes(regard: Command, trained: dict[str, Path]) -> None:
    assert "no attention to look at" in regard("verdict", trained["cho"], "The cat sleeps .").err
    assert regard("verdict", trained["rnnsearch"], "The cat sleeps .", "--orders", 0).code == 2
    wrong = regard("verdict", trained["transformer"], "The cat sleeps .", "--tap", "encoder.0.attention")
    assert "not from target to source" in wrong.err
