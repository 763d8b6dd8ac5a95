"""`regard predict`: sentences or pictures in, what the model says out."""

from __future__ import annotations

from regard.cli.by_task import of_run


def run(argv: list[str]) -> int:
    return of_run("predict", argv)
