"""`regard eval`: what a trained run is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from regard.cli.by_task import part
from regard.cli.options import Shared
from regard.cli.output import show, show_json
from regard.cli.running import parse_run
from regard.data.sources import Part
from regard.recipes.run import open_run, reached

DESCRIPTION = """Measures a trained run on its test part, by the measures of its task.
Translation: loss, BLEU and chrF with their signatures, BLEU by sentence length, alignment error rate
where the gold alignments are known, and speed.

examples:
  regard eval runs/rnnsearch/2026-01-31_12-00-00
  regard eval RUN --part valid --decoding.method greedy
  regard eval RUN --data.test other.tsv --json"""


@dataclass(frozen=True)
class EvalOptions(Shared):
    """What to measure."""

    part: Part = "test"
    """Which part of the data."""

    weights: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """best, averaged, last, the name of a checkpoint, or auto: those of the best validation, averaged ones included."""


def run(argv: list[str]) -> int:
    options, folder, configs = parse_run(EvalOptions, argv, prog="eval", description=DESCRIPTION, with_data=True)
    opened = open_run(folder.path, options.weights)
    report = part(opened.config.task.kind, "report")
    data, measured = report.measure(opened, options.part, configs)
    # A recipe's aim is for its own test part.
    own_test = options.part == "test" and data == opened.config.data
    expected = opened.config.expected if own_test else {}
    outcome = reached(measured, expected)
    if options.json:
        about = {"run": str(folder.path), "recipe": opened.name, "part": options.part, "weights": opened.weights}
        show_json({**about, **measured, "expected": expected, "reached": outcome})
        return 0
    show(f"{opened.name}, {options.part} part, {report.size(measured)}, weights {opened.weights}")
    show(report.summary(measured, expected, outcome))
    return 0
