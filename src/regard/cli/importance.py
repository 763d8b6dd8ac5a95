"""`regard importance`: what is lost by muting each head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from regard.cli.options import Shared
from regard.cli.output import count, say, show, show_json, table
from regard.cli.running import parse_run
from regard.core.errors import ConfigError
from regard.data.sources import Part
from regard.recipes.run import open_run
from regard.recording import importance

DESCRIPTION = """Mutes each attention head of a trained run, one at a time, and measures the loss without it.
A positive change is what the head is worth while all the others are there.

examples:
  regard importance runs/transformer/2026-01-31_12-00-00
  regard importance RUN --taps "decoder.*.cross" --examples 2000
  regard importance RUN --part test --json"""


@dataclass(frozen=True)
class ImportanceOptions(Shared):
    """What to mute, and on which data."""

    part: Part = "valid"
    """Which part of the data the loss is measured on."""

    examples: int = 500
    """How many examples of it; 0 takes all."""

    taps: Annotated[str, tyro.conf.arg(metavar="PATTERN")] = "*"
    """The attentions whose heads are muted, by address."""

    weights: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """best, averaged, last, the name of a checkpoint, or auto, which is best."""


def run(argv: list[str]) -> int:
    options, folder, _ = parse_run(
        ImportanceOptions, argv, prog="importance", description=DESCRIPTION, with_decoding=False
    )
    if options.examples < 0:
        raise ConfigError("--examples is a number of examples, or 0 for all of them.")
    opened = open_run(folder.path, options.weights)
    opened.needs_attention()
    batches = opened.batches(options.part, options.examples or None)
    progress = None if options.json else lambda done: say(f"{count(done, 'batch', 'batches')} done")
    measured = importance(opened, batches, taps=options.taps, progress=progress)
    if options.json:
        about = {"run": str(folder.path), "recipe": opened.name, "part": options.part, "weights": opened.weights}
        show_json({**about, **measured.to_json()})
        return 0
    show(f"{opened.name}, {options.part} part, loss {measured.loss:.4f} with all heads")
    rows = [(row.address, str(row.head), f"{row.change:+.4f}", _margin(row.error)) for row in measured.sorted()]
    show(table(rows, ("without", "head", "change", "± one standard error")))
    return 0


def _margin(error: float | None) -> str:
    return "" if error is None else f"{error:.4f}"
