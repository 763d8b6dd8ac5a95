"""The published results: each recipe trained to its end, measured, and kept as one JSON file.

What is trained already is not trained again, and a run that was stopped goes on; but the config of a run has to be
the recipe's, or its numbers would be another recipe's. Of the weights of the best validation and the averaged ones
those are taken that do better on the validation part, by the task's own measure; only then is the test part looked at.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from regard.core.errors import CheckpointError, ConfigError
from regard.core.files import write_json
from regard.recipes.config import RunConfig, read_run_config, recipes
from regard.recipes.machine import describe_commit, describe_machine, forget_peak_memory
from regard.recipes.run import Run, explain, kind_of_run, open_run, prepare, reached, read_config
from regard.training import RunFolder
from regard.training.checkpoints import checkpoint_name, read_state

PUBLISHED = (
    "transformer-multi30k-de",
    "transformer-multi30k-fr",
    "transformer-multi30k-cs",
    "rnnsearch-multi30k-de",
    "rnnsearch-multi30k-fr",
    "cho-multi30k-fr",
)

SAID = {"bleu": "BLEU {:.1f}", "chrf": "chrF {:.1f}", "accuracy": "{:.1f} % right"}
"""How the table says a measure."""

START, END = "<!-- results:start -->", "<!-- results:end -->"
"""Between these lines a text, such as the README, shows the table."""

Say = Callable[[str], None]


class ResultsInterrupted(Exception):
    """Ctrl-C or SIGTERM; what was trained so far is saved."""

    def __init__(self, signal: int) -> None:
        super().__init__(f"interrupted by signal {signal}")
        self.signal = signal


def make_result(name: str, root: Path, out: Path, say: Say) -> dict[str, Any]:
    """The result of one recipe: read if it is there, else measured, after whatever training is missing."""
    config: RunConfig = recipes[name]()
    path = out / f"{name}.json"
    if path.exists():
        result = read_result(path)
        differing = differing_fields(_read_config(result["config"], path), config)
        if not differing:
            say(f"{name}: already in {path}")
            return result
        raise ConfigError(
            f"{path} is the result of another config than the recipe now has ({'; '.join(differing)}). Remove it and "
            f"{root / name / 'results'} to measure anew."
        )
    folder = _trained(name, config, root, say)
    result = _measure(config, folder, say)
    write_json(path, result)
    say(f"{name}: wrote {path}")
    return result


def read_result(path: Path) -> dict[str, Any]:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read as a result ({error}); remove it to measure anew.") from None
    if not isinstance(result, dict) or not {"recipe", "config", "metrics", "parameters", "seconds"} <= set(result):
        raise CheckpointError(f"{path} is not a result of `regard results`; remove it to measure anew.")
    return result


def _read_config(value: dict[str, Any], path: Path) -> RunConfig:
    """With fields that came later at their defaults."""
    try:
        return read_run_config(value)
    except ValidationError as error:
        raise CheckpointError(f"The config in {path} does not fit this version of Regard: {explain(error)}.") from error


def read_results(out: Path) -> list[dict[str, Any]]:
    """All results in a folder, the published recipes first and in their order."""
    order = {name: place for place, name in enumerate(PUBLISHED)}
    results = [read_result(path) for path in sorted(out.glob("*.json"))]
    return sorted(results, key=lambda result: order.get(result["recipe"], len(order)))


def markdown_table(results: Sequence[dict[str, Any]]) -> str:
    """The table of the README."""
    lines = [
        "| recipe | parameters | training | of it on processors | result | expected |",
        "| --- | ---: | ---: | ---: | --- | ---: |",
    ]
    for result in results:
        metrics, expected = result["metrics"], result["expected"]
        said = ", ".join(text.format(metrics[name]) for name, text in SAID.items() if name in metrics)
        aims = [
            f"{number:g} ({'reached' if result['reached'][name] else 'missed'})" for name, number in expected.items()
        ]
        # On a machine that others use as well, the clock says little of what a training costs.
        busy = f"{result['cpu_seconds'] / 60:.0f} min" if "cpu_seconds" in result else ""
        lines.append(
            f"| {result['recipe']} | {result['parameters'] / 1e6:.1f} M | {result['seconds'] / 60:.0f} min | {busy} "
            f"| {said} | {', '.join(aims)} |"
        )
    return "\n".join(lines)


def put_into(text: str, table: str) -> str:
    """The text with the table between its two markers."""
    head, start, rest = text.partition(START)
    _, end, tail = rest.partition(END)
    if not start or not end:
        raise ConfigError(f"There is no place for the table: the lines {START} and {END} are missing.")
    return f"{head}{start}\n{table}\n{end}{tail}"


def differing_fields(old: RunConfig, config: RunConfig) -> list[str]:
    """`model.width: 192, in the recipe 256` for every field that decides what a run comes to."""
    return [
        f"{name}: {before}, in the recipe {after}"
        for name, before, after in _differences(old.model_dump(mode="json"), config.model_dump(mode="json"))
        if not name.startswith("expected")
    ]


def _differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[tuple[str, Any, Any]]:
    found = []
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            found += _differences(before, after, f"{prefix}{name}.")
        elif before != after:
            found.append((f"{prefix}{name}", before, after))
    return found


def _trained(name: str, config: RunConfig, root: Path, say: Say) -> RunFolder:
    """The run folder of a recipe's result, trained to its end."""
    path = root / name / "results"
    if (path / "config.json").exists():
        folder, resume = RunFolder.open(path), True
        differing = differing_fields(read_config(folder), config)
        if differing:
            raise ConfigError(
                f"{path} was trained with another config than the recipe {name!r} now has: {'; '.join(differing)}. "
                "Remove that folder, or name another one with --root."
            )
        if _is_finished(folder, config):
            say(f"{name}: trained already, in {path}")
            return folder
        say(f"{name}: going on in {path}")
    else:
        folder, resume = None, False
        say(f"{name}: training in {path}")
    forget_peak_memory()
    prepared = prepare(config, resume=folder, progress=say)
    folder = folder or RunFolder.create_at(path, name, config.model_dump(mode="json"))
    _, outcome = prepared.train(folder, resume=resume)
    if outcome.signal is not None:
        raise ResultsInterrupted(outcome.signal)
    return folder


def _is_finished(folder: RunFolder, config: RunConfig) -> bool:
    """Whether nothing is left to train or to average."""
    training = config.training
    try:
        state = read_state(folder.weights("last"))
    except CheckpointError:
        return False
    averaged = training.average_last == 1 or (folder.checkpoints.path / "averaged").is_dir()
    spent = (
        (training.max_epochs is not None and state["epoch"] >= training.max_epochs)
        or (training.max_steps is not None and state["step"] >= training.max_steps)
        or (training.max_minutes is not None and state["seconds"] >= 60 * training.max_minutes)
        or (training.patience is not None and state["validations_since_best"] >= training.patience)
    )
    return spent and averaged


def _measure(config: RunConfig, folder: RunFolder, say: Say) -> dict[str, Any]:
    state = read_state(folder.weights("last"))
    headline = kind_of_run(config).headline
    validation = {}
    for name in _candidates(folder, state):
        say(f"{config.recipe}: measuring {name} on the validation part")
        measured = open_run(folder.path, name).evaluate("valid")
        validation[name] = {"loss": measured["loss"], headline: measured[headline]}
    chosen = max(validation, key=lambda name: (validation[name][headline], -validation[name]["loss"]))
    run: Run = open_run(folder.path, chosen)
    say(f"{config.recipe}: measuring {chosen} on the test part")
    metrics = run.evaluate("test")
    return {
        "recipe": config.recipe,
        "command": f"regard results {config.recipe}",
        "commit": describe_commit(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": describe_machine(),
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "seconds": round(state["seconds"], 1),
        "cpu_seconds": round(state["cpu_seconds"], 1),
        "peak_memory": state["peak_memory"],
        "steps": state["step"],
        "epochs": state["epoch"],
        "best_step": state["best_step"],
        "weights": chosen,
        "validation": validation,
        "metrics": metrics,
        "expected": config.expected,
        "reached": reached(metrics, config.expected),
        "config": config.model_dump(mode="json"),
    }


def _candidates(folder: RunFolder, state: dict[str, Any]) -> list[str]:
    """The weights of the best validation, and the averaged ones; the pointer `best` may mean either."""
    known = ["averaged", folder.weights("best").name]
    if state["best_step"] is not None:
        known.insert(0, checkpoint_name(state["best_step"]))
    return [name for name in dict.fromkeys(known) if (folder.checkpoints.path / name).is_dir()]
