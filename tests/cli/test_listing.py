from __future__ import annotations

from pathlib import Path

import pytest

from regard.cli.listing import LISTS
from regard.recipes import recipes

from .conftest import Command


@pytest.mark.parametrize("kind", LISTS)
def test_every_entry_has_a_description(regard: Command, kind: str) -> None:
    entries = regard("list", kind, "--json").json[kind]
    assert entries
    assert all(entry["name"] and entry["description"] for entry in entries)


def test_all_kinds_together(regard: Command) -> None:
    result = regard("list")
    assert result.code == 0
    assert all(f"{kind}:" in result.out for kind in LISTS)
    assert all(name in result.out for name in recipes)


def test_a_wrong_kind(regard: Command) -> None:
    result = regard("list", "recipies")
    assert (result.code, result.out) == (2, "")
    assert "Did you mean 'recipes'?" in result.err
    assert all(kind in result.err for kind in LISTS)


def test_what_a_file_registers_is_listed(regard: Command, plugin: Path) -> None:
    result = regard("list", "mechanisms", "--import", plugin)
    assert "cosine_of_a_test" in result.out
    assert "Cosine of query and key." in result.out
