"""`regard look`: a picture of where a trained run looks, or of a recording that was kept."""

from __future__ import annotations

from regard.cli import look_file
from regard.cli.by_task import of_run


def run(argv: list[str]) -> int:
    if argv and argv[0].lower().endswith(look_file.ENDING):
        return look_file.run(argv)
    return of_run("look", argv)
