"""Every test of this room has a cache of its own, and sees neither the machine's data nor its mirror."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("REGARD_CACHE", str(folder))
    monkeypatch.delenv("REGARD_DATA", raising=False)
    monkeypatch.delenv("REGARD_MIRROR", raising=False)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")  # threads only wait for each other on so little text
    return folder
