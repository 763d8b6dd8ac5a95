"""`regard eval`: what a trained run is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import tyro

from regard.cli.options import Shared, changed, first_argument, import_plugins, parse
from regard.cli.output import say, show, show_json, table
from regard.data.sources import Part
from regard.recipes.run import LOWER_IS_BETTER, Run, open_run, reached, read_config, with_files
from regard.training import RunFolder

S = TypeVar("S", bound=Shared)

DESCRIPTION = """Measures a trained run on its test part: loss, BLEU and chrF with their signatures, BLEU by
sentence length, alignment error rate where the gold alignments are known, and speed.

examples:
  regard eval runs/rnnsearch/2026-01-31_12-00-00
  regard eval RUN --part valid --decoding.method greedy
  regard eval RUN --data.test other.tsv --json"""

NAMES = {"bleu": "BLEU", "chrf": "chrF", "aer": "alignment error rate", "loss": "loss per token"}


@dataclass(frozen=True)
class EvalOptions(Shared):
    """What to measure."""

    part: Part = "test"
    """Which part of the corpus."""

    weights: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """best, averaged, last, the name of a checkpoint, or auto: those of the best validation, averaged ones included."""


def parse_run(
    options: type[S], argv: list[str], *, prog: str, description: str, with_data: bool = False
) -> tuple[S, RunFolder, dict[str, Any]]:
    """For commands that start with a run folder: their options, the folder, and decoding and data as they ask for."""
    import_plugins(argv)
    place, rest = first_argument(argv, "run", prog)
    if place is None:
        parse(options, rest, prog=f"{prog} RUN", description=description)
        raise AssertionError("--help ends the program")
    folder = RunFolder.open(place)
    config = read_config(folder)
    configs = {"decoding": config.task.decoding, **({"data": config.data} if with_data else {})}
    chosen, values = parse(options, rest, prog=f"{prog} RUN", description=description, sections=dict(configs))
    return chosen, folder, {name: changed(configs[name], values[name]) for name in configs}


def run(argv: list[str]) -> int:
    options, folder, configs = parse_run(EvalOptions, argv, prog="eval", description=DESCRIPTION, with_data=True)
    opened = open_run(folder.path, options.weights)
    data = with_files(configs["data"], only_test=True)
    measured = opened.evaluate(options.part, data=data, decoding=configs["decoding"], progress=_progress())
    # A recipe's aim is for its own test part.
    own_test = options.part == "test" and data == opened.config.data
    expected = opened.config.expected if own_test else {}
    outcome = reached(measured, expected)
    if options.json:
        about = {"run": str(folder.path), "recipe": opened.name, "part": options.part, "weights": opened.weights}
        show_json({**about, **measured, "expected": expected, "reached": outcome})
        return 0
    show(f"{opened.name}, {options.part} part, {measured['sentences']:,} sentences, weights {opened.weights}")
    show(summary(opened, measured, expected, outcome))
    return 0


def summary(opened: Run, measured: dict[str, Any], expected: dict[str, float], outcome: dict[str, bool]) -> str:
    rows = []
    for name, title in NAMES.items():
        if name not in measured:
            continue
        digits = 2 if name in ("bleu", "chrf") else 4
        aim = ""
        if name in outcome:
            bound = "at most" if name in LOWER_IS_BETTER else "at least"
            aim = f"expected {bound} {expected[name]:g}: {'reached' if outcome[name] else 'MISSED'}"
        rows.append((title, f"{measured[name]:.{digits}f}", aim or measured.get(f"{name}_signature", "")))
    lines = [table(rows), "", "BLEU by the number of source words:"]
    by_length = measured["bleu_by_length"]
    lines.append(
        table(
            [(name, bin_["sentences"], bin_["bleu"]) for name, bin_ in by_length.items()],
            ("words", "sentences", "BLEU"),
        )
    )
    signatures = [f"{NAMES[name]}: {measured[f'{name}_signature']}" for name in ("bleu", "chrf") if name in outcome]
    lines += ["", *signatures] if signatures else [""]
    decoding = measured["decoding"]
    how = (
        f"{decoding['method']} of width {decoding['beam_width']}"
        if decoding["method"] == "beam"
        else decoding["method"]
    )
    lines.append(f"{how}, {measured['tokens_per_second']:,.0f} tokens/s, {measured['unfinished']} unfinished")
    return "\n".join(lines)


def _progress(pause: int = 500) -> Any:
    """Says how far it is, every so many sentences."""
    said = 0

    def progress(done: int) -> None:
        nonlocal said
        if done - said >= pause:
            said = done
            say(f"{done:,} sentences translated")

    return progress
