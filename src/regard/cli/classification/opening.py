"""For commands that start with a classifier: a run folder, or a checkpoint of another library."""

from __future__ import annotations

from typing import TypeVar

from regard.cli.options import Shared, first_argument, import_plugins, parse
from regard.core.errors import ConfigError
from regard.recipes.checkpoints import PretrainedClassifier, is_checkpoint, open_checkpoint
from regard.recipes.classifying import ClassificationRun
from regard.recipes.run import open_run

S = TypeVar("S", bound=Shared)


def parse_place(options: type[S], argv: list[str], *, prog: str, description: str) -> tuple[S, str]:
    """The command's options, and the run or checkpoint that was named first."""
    import_plugins(argv)
    place, rest = first_argument(argv, "run", prog)
    chosen, _ = parse(options, rest, prog=f"{prog} RUN", description=description)
    assert place is not None, "--help ends the program"
    return chosen, place


def open_classifier(place: str, weights: str) -> ClassificationRun | PretrainedClassifier:
    """`weights` chooses among those that a run has saved."""
    if not is_checkpoint(place):
        run: ClassificationRun = open_run(place, weights)
        return run
    if weights != "auto":
        raise ConfigError(f"--weights {weights}: {place} is no run, and holds one set of weights only.")
    return open_checkpoint(place)
