"""`regard look`: a picture of where a trained run looks."""

from __future__ import annotations

from regard.cli.by_task import of_run


def run(argv: list[str]) -> int:
    return of_run("look", argv)
