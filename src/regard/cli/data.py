"""`regard data`: what a recipe reads, before any time is spent on training with it."""

from __future__ import annotations

from regard.cli.by_task import of_recipe


def run(argv: list[str]) -> int:
    return of_recipe("data", argv)
