"""Commands whose work depends on the task: finds out which one it is, and hands over to that task's folder.

`cli/<task>/` has a module for each of these commands, and `report`, with which `train` and `eval` speak of the task.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from regard.cli.options import first_argument, import_plugins
from regard.recipes.checkpoints import is_checkpoint
from regard.recipes.config import kind_of, recipes, run_kinds
from regard.training import RunFolder

DEFAULT = "translation"


def of_run(command: str, argv: list[str]) -> int:
    """For a command that starts with a run folder or a checkpoint; without one (`--help`) the default task's."""
    import_plugins(argv)
    place, _ = first_argument(argv, "run", command)
    kind = DEFAULT if place is None else task_of(place)
    return part(kind, command).run(argv)


def of_recipe(command: str, argv: list[str]) -> int:
    """For a command that starts with a recipe, or with an option where the default task is meant."""
    import_plugins(argv)
    named = bool(argv) and not argv[0].startswith("-")
    kind = recipes[argv[0]]().task.kind if named else DEFAULT
    return part(kind, command).run(argv)


def task_of(place: str | Path) -> str:
    """The checkpoints of other libraries that can be read are all classifiers."""
    return "classification" if is_checkpoint(place) else kind_of(RunFolder.open(place).config)


def part(kind: str, name: str) -> ModuleType:
    """A module of a task's folder."""
    run_kinds[kind]  # an unknown kind is said so
    return importlib.import_module(f"regard.cli.{kind}.{name}")
