"""`regard train`: from a recipe to a run folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from regard.cli.by_task import part
from regard.cli.choosing import chosen_config, parse_recipe
from regard.cli.options import Shared, changed, differences, import_plugins, parse
from regard.cli.output import count, say, show, show_json, size
from regard.core.errors import ConfigError
from regard.recipes import RunConfig
from regard.recipes.run import Prepared, Run, prepare, read_config, write_config
from regard.training import RunFolder, TrainingResult
from regard.training.processes import connect
from regard.training.progress import duration

EXTENDABLE = ("training.max_epochs", "training.max_steps", "training.max_minutes")

DESCRIPTION = """Trains a recipe; every field of its config is an option.

examples:
  regard train rnnsearch
  regard train rnnsearch --model.width 256 --training.max-epochs 3 --data.train my.tsv
  regard train transformer --attention cosine --import mine.py
  regard train --resume runs/rnnsearch/2026-01-31_12-00-00
  accelerate launch --multi_gpu --num_processes 2 -m regard.cli.main train transformer

Ctrl-C saves before it stops. A run that was stopped in any way goes on with --resume."""


@dataclass(frozen=True)
class TrainOptions(Shared):
    """Where to, and from where."""

    run: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The run folder to make; runs/RECIPE/TIME when left out."""

    resume: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Go on with this run folder, with its own config; only --training.max-... may be changed."""

    attention: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """The attention mechanism, a name of `regard list mechanisms`: short for --model.attention."""

    record_every: Annotated[int | None, tyro.conf.arg(metavar="STEPS")] = None
    """Keep a recording of a few examples every so many steps: short for --training.record-every."""


def run(argv: list[str]) -> int:
    if "WORLD_SIZE" in os.environ or "ACCELERATE_MIXED_PRECISION" in os.environ:
        connect()  # a launcher started this process, perhaps as one of several
    options, config, folder = _resumed(argv) or _new(argv)
    tell = say if os.environ.get("RANK", "0") == "0" else _keep_quiet
    prepared = prepare(config, resume=folder, progress=tell)
    _announce(prepared, tell)
    resume = folder is not None
    if folder is None:
        content = config.model_dump(mode="json")
        if options.run is None:
            folder = RunFolder.create("runs", config.recipe, content)
        else:
            folder = RunFolder.create_at(options.run, config.recipe, content)
    elif config != read_config(folder):
        write_config(folder, config)
    tell(f"run folder: {folder.path}")
    trained, result = prepared.train(folder, resume=resume)
    if result.signal is not None:
        tell(f"Interrupted. To go on: regard train --resume {folder.path}")
        return 128 + result.signal
    if os.environ.get("RANK", "0") == "0":
        _report(options, prepared, trained, result)
    return 0


def _new(argv: list[str]) -> tuple[TrainOptions, RunConfig, None]:
    options, recipe, values = parse_recipe(TrainOptions, argv, prog="train", description=DESCRIPTION)
    if options.record_every is not None:
        values["training"]["record_every"] = options.record_every
    return options, chosen_config(recipe, values, options.attention), None


def _resumed(argv: list[str]) -> tuple[TrainOptions, RunConfig, RunFolder] | None:
    """A run folder's own config, with no more than a larger budget; None where nothing is to be resumed."""
    place = _value_of("--resume", argv)
    if place is None:
        return None
    import_plugins(argv)
    folder = RunFolder.open(place)
    config = read_config(folder)
    rest = argv[1:] if argv[0] == config.recipe else argv
    if rest and not rest[0].startswith("-"):
        raise ConfigError(f"{place} is a run of the recipe {config.recipe!r}; --resume cannot make {rest[0]!r} of it.")
    prog = "train --resume DIR"
    options, sections = parse(TrainOptions, rest, prog=prog, description=DESCRIPTION, sections={"": config})
    wanted = changed(config, sections[""])
    refused = [name for name in differences(config, wanted) if name not in EXTENDABLE]
    refused += [name for name in ("run", "attention", "record_every") if getattr(options, name) is not None]
    if refused:
        raise ConfigError(
            f"A run is resumed as it was begun; --{', --'.join(refused)} cannot be given with --resume. Only "
            f"--{', --'.join(EXTENDABLE)} can. For anything else start a new run."
        )
    return options, wanted, folder


def _value_of(option: str, argv: list[str]) -> str | None:
    for place, argument in enumerate(argv):
        if argument == option and place + 1 < len(argv):
            return argv[place + 1]
        if argument.startswith(f"{option}="):
            return argument.partition("=")[2]
    return None


def _announce(prepared: Prepared, tell: Any) -> None:
    config = prepared.config
    attention = getattr(config.model, "attention", None)
    tell(
        f"{config.recipe}: {config.model.kind}"
        + (f" with {attention} attention" if attention else "")
        + f", {prepared.num_parameters:,} parameters"
    )
    for line in part(config.task.kind, "report").announce(prepared):
        tell(line)


def _report(options: TrainOptions, prepared: Prepared, trained: Run, result: TrainingResult) -> None:
    """What came of it, a first impression, and what to type next."""
    path = trained.folder.path
    report = part(trained.config.task.kind, "report")
    measured = report.impression(prepared, trained)
    if options.json:
        show_json(
            {
                "run": str(path),
                "recipe": trained.config.recipe,
                "parameters": prepared.num_parameters,
                "steps": result.steps,
                "epochs": result.epochs,
                "seconds": round(result.seconds, 1),
                "stopped_because": result.stopped_because,
                "best_step": result.best_step,
                "best": result.metrics,
                "averaged": result.averaged_metrics,
                "weights": result.weights.name,
                "precision": result.precision,
                "processes": result.processes,
                "peak_memory": result.peak_memory,
                "validation": measured,
            }
        )
        return
    show(
        f"{count(result.steps, 'step')} in {duration(result.seconds)} ({result.stopped_because}), {result.precision}, "
        f"at most {size(result.peak_memory)} of memory"
    )
    numbers = ", ".join(f"{name} {value:.4f}" for name, value in result.metrics.items())
    show(f"best validation: {numbers} at step {result.best_step}")
    show(report.impression_line(measured))
    show()
    show("next:")
    show(f"  regard eval {path}")
    show(f"  {report.next_step(prepared, trained)}")


def _keep_quiet(text: str = "") -> None:
    """For all processes but the first."""
