"""`regard verdict`: whether where a trained run looks says anything about what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from regard.cli.options import Shared
from regard.cli.output import show, show_json, table
from regard.cli.running import parse_run
from regard.core.errors import ConfigError
from regard.plots import draw_verdict, save
from regard.recipes.run import open_run

DESCRIPTION = """Takes away what a trained run looks at, most attended first, and puts it in from nothing; compares
the areas under both curves with those of random orders, of the map of a model with fresh weights, and of the model
with its attention made uniform.

examples:
  regard verdict runs/transformer/2026-01-31_12-00-00 "The cat sleeps ."
  regard verdict RUN cat.jpg --tap encoder.3.attention --out verdict.svg
  regard verdict RUN cat.jpg --orders 1000 --json"""


@dataclass(frozen=True)
class VerdictOptions(Shared):
    """What to judge, and how finely."""

    input: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="INPUT")]]
    """A sentence, or a picture's file."""

    tap: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None
    """The attention to judge; left out, the one that alignments are read off, or the last that looks at places."""

    orders: int = 100
    """How many random orders to compare with."""

    points: int = 20
    """At how many shares of the input the score is measured."""

    out: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE")] = ()
    """Pictures to write: .png, .svg or .pdf. A .png in the run's folder when left out."""

    dark: tyro.conf.FlagCreatePairsOff[bool] = False
    """Light on dark."""

    weights: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """best, averaged, last, the name of a checkpoint, or auto, which is best."""


def run(argv: list[str]) -> int:
    options, folder, _ = parse_run(VerdictOptions, argv, prog="verdict", description=DESCRIPTION, with_decoding=False)
    if options.orders < 1 or options.points < 1:
        raise ConfigError("--orders and --points are at least 1.")
    opened = open_run(folder.path, options.weights)
    verdict = opened.judge(options.input, tap=options.tap, orders=options.orders, points=options.points)
    places = options.out or (folder.path / "look" / "verdict.png",)
    files = [str(save(draw_verdict(verdict, dark=options.dark), path)) for path in places]
    if options.json:
        show_json({"run": str(folder.path), "recipe": opened.name, **verdict.to_json(), "files": files})
        return 0
    low, high = verdict.interval()
    rows = [
        (name, f"{curves.deletion_area:.3f}", f"{curves.insertion_area:.3f}")
        for name, curves in {"the map": verdict.curves, **verdict.controls}.items()
    ]
    rows.append(("random orders, 95 %", f"{low:.3f} to {high:.3f}", f"{low:.3f} to {high:.3f}"))
    show(table(rows, ("", "deletion (small is good)", "insertion (large is good)")))
    show(f"p {verdict.deletion_p:.3f} for deletion, {verdict.insertion_p:.3f} for insertion")
    show(verdict.sentence)
    for path in files:
        show(f"wrote {path}")
    return 0
