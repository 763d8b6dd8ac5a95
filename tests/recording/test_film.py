"""`film` and `compact`: frames in their order, close to what they were, and smaller."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import regard
from regard.core.errors import RecordingError
from regard.core.relations import DotRelation
from regard.recording import Recording
from regard.recording.film import compact


def test_compact_is_close_and_smaller(recording: Recording) -> None:
    smaller = compact(recording)
    assert smaller.nbytes < 0.6 * recording.nbytes
    assert smaller.axes == recording.axes
    for address in recording:
        torch.testing.assert_close(smaller[address].weights(), recording[address].weights(), rtol=0.02, atol=2e-3)


def test_a_long_map_stays_queries_and_keys() -> None:
    queries = torch.randn(1, 2, 101, 8)
    long = Recording({"a": DotRelation(queries, queries, 0.3)}, {"a": ("x", "x")})
    smaller = compact(long)
    assert smaller["a"].relation.form == "dot"
    assert smaller.nbytes == long.nbytes // 2
    torch.testing.assert_close(smaller["a"].weights(), long["a"].weights(), rtol=0.01, atol=1e-4)


def test_numbers_that_16_bits_cannot_hold_are_kept() -> None:
    queries = torch.randn(1, 2, 101, 8)
    queries[0, 0, 0, 0] = 1e6
    wide = Recording({"a": DotRelation(queries, queries, 1e-9)}, {"a": ("x", "x")})
    torch.testing.assert_close(compact(wide)["a"].weights(), wide["a"].weights())


def test_frames_come_in_the_order_of_their_steps(recording: Recording, tmp_path: Path) -> None:
    for step in (100, 0, 20):
        recording.outputs["loss"] = step
        compact(recording).save(tmp_path / "film" / f"step-{step:08d}.regard")
    (tmp_path / "film" / "notes.txt").write_text("mine")
    frames = list(regard.film(tmp_path))
    assert [step for step, _ in frames] == [0, 20, 100]
    assert [frame.outputs["loss"] for _, frame in frames] == [0, 20, 100]
    assert frames[0][1].addresses == recording.addresses


def test_a_run_without_a_film(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="holds no film: train with"):
        regard.film(tmp_path)
