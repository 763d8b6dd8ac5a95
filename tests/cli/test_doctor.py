from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regard.cli import doctor

from .conftest import Command


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "MEASURED_SECONDS", 0.0)


def test_a_healthy_machine(regard: Command) -> None:
    result = regard("doctor")
    assert result.code == 0
    assert torch.__version__ in result.out
    assert "all is well" in result.out


def test_json(regard: Command) -> None:
    found = regard("doctor", "--json").json
    assert found["problems"] == []
    assert found["torch"] == torch.__version__
    assert found["cores"] >= 1
    assert set(found["gflops"]) == {"float32", "bfloat16"}
    assert "12 files" in found["datasets"]["multi30k"]


def test_matrix_products_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "MEASURED_SECONDS", 0.05)
    assert doctor._matmul_gflops("float32", side=64) > 0


def test_data_that_are_here(regard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.data.multi30k import LANGUAGES, TESTS, TRAIN, VALID

    folder = tmp_path / "data" / "multi30k"
    folder.mkdir(parents=True)
    for part in (TRAIN, VALID, TESTS[0]):
        for language in LANGUAGES:
            (folder / f"{part}.{language}").touch()
    monkeypatch.setenv("REGARD_DATA", str(tmp_path / "data"))
    assert regard("doctor", "--json").json["datasets"]["multi30k"] == "found on this machine"


def test_a_machine_that_computes_wrongly(regard: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.recording.recording.RecordedMap.weights", lambda *_: torch.zeros(1, 1, 2, 2))
    result = regard("doctor")
    assert result.code == 1
    assert "PROBLEM: the self-check failed" in result.out
    assert "does not sum to one" in result.out


def test_a_cache_that_cannot_be_made(regard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file" / "cache"))
    result = regard("doctor")
    assert result.code == 1
    assert "REGARD_CACHE" in result.out


def test_a_package_that_is_missing(regard: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = doctor._installed
    monkeypatch.setattr(doctor, "_installed", lambda name: name != "sacrebleu" and installed(name))
    result = regard("doctor", "--json")
    assert result.code == 1
    assert any("sacrebleu" in problem for problem in result.json["problems"])
