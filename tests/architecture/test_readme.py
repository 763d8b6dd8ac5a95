"""What README and docs show is what happens: the Python of each page runs, in order, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from regard.attention import mechanisms
from regard.core.axes import axis_kinds
from regard.core.models import models
from regard.layers.positions import positions
from regard.layers.recurrent import cells

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "README.md", *ROOT.glob("docs/*.md")))

# A page's block begins where it stands in the page, so that a traceback names the right line.
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return ["\n" * (text[: found.start(1)].count("\n")) + found[1] for found in _BLOCK.finditer(text)]


@pytest.fixture(autouse=True)
def only_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page may register things under names that a plugin of `--regard-import` has taken; both are put right."""
    for registry in (mechanisms, positions, cells, models, axis_kinds):
        ours = {name: entry for name, entry in registry.items() if entry.__module__.startswith("regard.")}
        monkeypatch.setattr(registry, "_entries", ours)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType(f"example_of_{page.stem.replace('-', '_')}")
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), module.__dict__)


def test_the_pages_have_examples() -> None:
    """Were the blocks written otherwise, the test above would run nothing."""
    assert {"README.md", "own-mechanism.md", "recording.md"} <= {page.name for page in PAGES if blocks(page)}


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
