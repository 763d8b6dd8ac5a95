"""Which room may import which, and how imports are read from a file without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "regard"

ARROWS = {
    "core": "",
    "attention": "core",
    "layers": "core",
    "blocks": "attention layers core",
    "models": "blocks attention layers core",
    "data": "core",
    "recording": "core",
    "tasks": "data recording core",
    "training": "core",
    "pretrained": "models layers core",
    "plots": "recording core",
    "explorer": "recording core",
    "recipes": "core attention layers blocks models data recording tasks training pretrained",
    "cli": "core attention layers blocks models data recording tasks training pretrained plots explorer recipes",
}
"""A room may also import itself. The package's own `__init__` may import every room; only `cli` may import it."""


def modules(sources: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Every Python file with its syntax tree."""
    for path in sorted(sources.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(path: Path, tree: ast.Module, sources: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of all that is imported from the package, wherever in the file, relative spelling too."""
    package = sources.name
    folder = [package, *path.relative_to(sources).parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(folder[: len(folder) - node.level + 1]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            names = [f"{origin}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == package)


def wrong_arrows(sources: Path) -> list[str]:
    """Imports that no arrow allows, each as `file:line imports name`."""
    wrong = []
    for path, tree in modules(sources):
        inside = path.relative_to(sources)
        if len(inside.parts) == 1:
            continue
        room = inside.parts[0]
        allowed = {room, *ARROWS[room].split()}
        for line, name in imported(path, tree, sources):
            steps = name.split(".")
            target = steps[1] if len(steps) > 1 else ""
            if target not in allowed and not (room == "cli" and target not in ARROWS):
                wrong.append(f"{inside.as_posix()}:{line} imports {name}")
    return wrong


def models_importing_models(sources: Path) -> list[str]:
    """Files of one model that import another's; the list in `models/__init__.py` is meant to import all."""
    wrong = []
    for path, tree in modules(sources / "models"):
        if path.name != "__init__.py":
            for line, name in imported(path, tree, sources):
                if name.split(".")[1:2] == ["models"]:
                    wrong.append(f"models/{path.name}:{line} imports {name}")
    return wrong


def without_docstring(sources: Path) -> list[str]:
    """Public modules that do not say what they are; an empty `__init__.py` has nothing to say."""
    return [
        path.relative_to(sources).as_posix()
        for path, tree in modules(sources)
        if tree.body
        and not ast.get_docstring(tree)
        and (path.stem in {"__init__", "__main__"} or not path.stem.startswith("_"))
    ]


def too_long(sources: Path, limit: int) -> list[str]:
    return [
        f"{path.relative_to(sources).as_posix()} has {count} lines"
        for path in sorted(sources.rglob("*.py"))
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > limit
    ]
