"""The house is built as it was drawn: who imports whom, how long a file is, that it says what it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .arrows import ARROWS, SOURCES, models_importing_models, too_long, without_docstring, wrong_arrows


def test_every_room_is_drawn() -> None:
    rooms = {path.parent.relative_to(SOURCES).parts[0] for path in SOURCES.glob("*/*.py")}
    assert rooms == set(ARROWS)


def test_no_arrow_leads_back() -> None:
    """The rooms can be put in an order in which each imports earlier ones only."""
    built: set[str] = set()
    while len(built) < len(ARROWS):
        ready = {room for room, arrows in ARROWS.items() if room not in built and set(arrows.split()) <= built}
        assert ready, f"these import each other in a circle: {sorted(set(ARROWS) - built)}"
        built |= ready


def test_imports_follow_the_arrows() -> None:
    assert wrong_arrows(SOURCES) == []


def test_models_do_not_import_each_other() -> None:
    assert models_importing_models(SOURCES) == []


def test_every_module_says_what_it_is() -> None:
    assert without_docstring(SOURCES) == []


def test_files_are_small() -> None:
    assert too_long(SOURCES, 400) == []


def test_importing_the_package_loads_nothing() -> None:
    """`import regard` is instant: torch and the rooms come with the first name that is used."""
    program = "import sys, regard; print([name for name in sys.modules if name == 'torch' or 'regard.' in name])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A small package `regard` to break rules in."""
    for room in ARROWS:
        (tmp_path / "regard" / room).mkdir(parents=True)
    return tmp_path / "regard"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("core/masks.py", "from regard.attention import kernels"),
        ("core/masks.py", "import regard.layers.positions"),
        ("core/masks.py", "from regard import models"),
        ("core/masks.py", "import regard"),
        ("core/deep/masks.py", "from ...data import text"),
        ("layers/positions.py", "from .. import blocks"),
        ("training/loop.py", "def later():\n    from regard.models import cho"),
        ("plots/style.py", "if True:\n    import regard.models as zoo"),
        ("recipes/run.py", "from regard.plots import style"),
    ],
)
def test_a_forbidden_import_is_found(house: Path, file: str, text: str) -> None:
    (house / file).parent.mkdir(exist_ok=True)
    (house / file).write_text(text)
    (found,) = wrong_arrows(house)
    assert found.startswith(f"{file}:{text.count(chr(10)) + 1} imports regard")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("core/masks.py", "import torch\nfrom regard.core.errors import MaskError"),
        ("core/masks.py", "from .errors import MaskError\nimport regarding"),
        ("tasks/losses.py", "from regard.recording import record"),
        ("cli/main.py", "import regard\nfrom regard import __version__, plots"),
        ("__init__.py", "from regard.plots import style"),
    ],
)
def test_an_allowed_import_is_none(house: Path, file: str, text: str) -> None:
    (house / file).write_text(text)
    assert wrong_arrows(house) == []


def test_other_broken_rules_are_found(house: Path) -> None:
    (house / "models" / "__init__.py").write_text('"""All."""\nfrom regard.models import cho, luong')
    (house / "models" / "cho.py").write_text('"""One."""\nfrom regard.models.luong import Luong')
    (house / "models" / "luong.py").write_text("WIDTH = 1\n" * 3)
    (house / "models" / "_own.py").write_text("WIDTH = 1")
    (house / "core" / "__init__.py").write_text("")
    assert models_importing_models(house) == ["models/cho.py:2 imports regard.models.luong.Luong"]
    assert without_docstring(house) == ["models/luong.py"]
    assert too_long(house, 2) == ["models/luong.py has 3 lines"]
