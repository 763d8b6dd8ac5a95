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

from .arrows import ARROWS

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


def test_the_file_tree_has_a_line_for_every_room() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^  (\w+)/ +\w", text, re.MULTILINE))
    assert shown == {path.parent.name for path in ROOT.glob("src/regard/*/__init__.py")}


def test_every_page_of_the_documentation_is_in_its_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert {page.stem for page in ROOT.glob("docs/*.md")} - {"index"} <= set(index.split())


def test_contributing_shows_the_arrows_that_are_held() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    above: list[str] = []
    for room, words in re.findall(r"^\| (\w+) \| ([^|]+) \|$", text, re.MULTILINE):
        if room == "room":
            continue
        words = words.partition(";")[0]
        start, _, missing = words.partition(" but ")
        shown = {"nothing of ours": [], "everything": above, "all above": above}.get(start, start.split(", "))
        assert set(shown) - set(missing.split(", ")) == set(ARROWS[room].split()), room
        above.append(room)
    assert set(above) == set(ARROWS)
