"""`regard list`: what can be chosen, from the registries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from regard.attention import mechanisms
from regard.cli.options import Shared, import_plugins, parse
from regard.cli.output import show, show_json, table
from regard.core.axes import axis_kinds
from regard.core.errors import UnknownNameError
from regard.core.models import models, sizes
from regard.data.multi30k import LANGUAGES, TESTS
from regard.data.tokenizers import tokenizer_kinds
from regard.layers.positions import positions
from regard.layers.recurrent import cells
from regard.recipes import recipes

DESCRIPTION = """What can be chosen, with a line on each.

examples:
  regard list
  regard list mechanisms --import mine.py
  regard list recipes --json"""


@dataclass(frozen=True)
class ListOptions(Shared):
    """What to list."""

    kind: tyro.conf.Positional[Annotated[str | None, tyro.conf.arg(metavar="KIND")]] = None
    """recipes, models, mechanisms, positions, cells, tokenizers, datasets, axes or sizes; all of them when left out."""


def run(argv: list[str]) -> int:
    options, _ = parse(ListOptions, argv, prog="list", description=DESCRIPTION)
    import_plugins(argv)
    if options.kind is not None and options.kind not in LISTS:
        raise UnknownNameError("list", options.kind, LISTS)
    found: dict[str, Any] = {kind: make() for kind, make in LISTS.items() if options.kind in (None, kind)}
    if options.json:
        show_json(found)
        return 0
    for number, (kind, entries) in enumerate(found.items()):
        if number:
            show()
        if len(found) > 1:
            show(f"{kind}:")
        rows = [(entry["name"], entry["description"]) for entry in entries]
        show(table(rows, indent="  " if len(found) > 1 else ""))
    return 0


def _recipes() -> list[dict[str, Any]]:
    listed = []
    for name, recipe in recipes.items():
        config = recipe()
        languages = [getattr(config.data, f"{side}_language", "") for side in ("source", "target")]
        data = " ".join([config.data.source, "-".join(filter(None, languages))]).strip()
        entry = {"name": name, "description": first_line(recipe), "model": config.model.kind, "data": data}
        listed.append({**entry, "expected": config.expected})
    return listed


def _models() -> list[dict[str, Any]]:
    return [
        {"name": name, "description": f"{first_line(entry.build).rstrip('.')} ({entry.paper})", "paper": entry.paper}
        for name, entry in models.items()
    ]


def _datasets() -> list[dict[str, Any]]:
    return [
        {"name": "embedded", "description": "Generated English-French with gold word alignments; needs no download."},
        {
            "name": "multi30k",
            "description": f"29,000 picture captions in {', '.join(LANGUAGES)}; tests: {', '.join(TESTS)}.",
        },
        {"name": "files", "description": "Your own: --data.train PATH.tsv, or SOURCE,TARGET; plain or gzip."},
        {"name": "shapes", "description": "Generated pictures of shapes whose places are known; needs no download."},
        {"name": "cifar10, cifar100", "description": "50,000 and 10,000 pictures of 32 x 32 in 10 or 100 classes."},
        {"name": "mnist, fashion_mnist", "description": "60,000 and 10,000 grey pictures of 28 x 28 in 10 classes."},
        {"name": "svhn", "description": "House numbers in the street, 32 x 32."},
        {"name": "folder", "description": "Your own pictures: --data.root FOLDER, with a folder for each class."},
    ]


def _named(registry: Any) -> Callable[[], list[dict[str, Any]]]:
    return lambda: [{"name": name, "description": first_line(entry)} for name, entry in registry.items()]


LISTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "recipes": _recipes,
    "models": _models,
    "mechanisms": _named(mechanisms),
    "positions": _named(positions),
    "cells": _named(cells),
    "tokenizers": _named(tokenizer_kinds),
    "datasets": _datasets,
    "axes": _named(axis_kinds),
    "sizes": _named(sizes),
}


def first_line(entry: Any) -> str:
    """The first line of the docstring an entry has itself, not of one it inherits."""
    text = vars(entry).get("__doc__") if isinstance(entry, type) else entry.__doc__
    return (text or "").strip().split("\n")[0]
