"""`regard results`: the numbers this project publishes, made by the program and by nobody else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from regard.cli.options import Shared, import_plugins, parse
from regard.cli.output import say, show, show_json
from regard.core.errors import DataError
from regard.core.files import write_text
from regard.recipes import recipes
from regard.recipes.results import PUBLISHED, ResultsInterrupted, make_result, markdown_table, put_into, read_results

DESCRIPTION = f"""Trains what is missing of the published recipes, one after another, measures them on their test
parts, and writes a JSON file for each. All of it takes hours; stopped in any way, it goes on where
it was. Without names these:
{chr(10).join(f"  {name}" for name in PUBLISHED)}

examples:
  regard results
  regard results transformer-multi30k-de
  regard results --table --into README.md"""


@dataclass(frozen=True)
class ResultsOptions(Shared):
    """Which, and where."""

    names: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="RECIPE")]] = ()
    """The recipes; all published ones when left out."""

    root: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("runs")
    """Run folders are DIR/RECIPE/results."""

    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("results")
    """Where the JSON files are."""

    table: tyro.conf.FlagCreatePairsOff[bool] = False
    """Only print the table of the results there are, in Markdown."""

    into: Annotated[Path | None, tyro.conf.arg(metavar="FILE.md")] = None
    """Put the table into this file, between its lines <!-- results:start --> and <!-- results:end -->."""


def run(argv: list[str]) -> int:
    import_plugins(argv)
    options, _ = parse(ResultsOptions, argv, prog="results", description=DESCRIPTION)
    if not options.table:
        for name in options.names:
            recipes[name]  # a wrong name is said before hours of work
        try:
            for name in options.names or PUBLISHED:
                make_result(name, options.root, options.out, say)
        except ResultsInterrupted as interrupted:
            say("Interrupted. To go on, give the same command again.")
            return 128 + interrupted.signal
    found = read_results(options.out)
    if options.names:
        found = [result for result in found if result["recipe"] in options.names]
    if not found:
        raise DataError(f"There are no results in {options.out} yet; `regard results` makes them.")
    if options.into is not None:
        text = options.into.read_text(encoding="utf-8")
        write_text(options.into, put_into(text, markdown_table(read_results(options.out))))
    if options.json:
        show_json({"results": found})
    else:
        show(markdown_table(found))
    return 0
