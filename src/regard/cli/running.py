"""For commands that start with a run folder: its options, and what a recipe expected of it."""

from __future__ import annotations

from typing import Any, TypeVar

from regard.cli.options import Shared, changed, first_argument, import_plugins, parse
from regard.core.config import Config
from regard.recipes.run import read_config
from regard.training import RunFolder

S = TypeVar("S", bound=Shared)


def parse_run(
    options: type[S],
    argv: list[str],
    *,
    prog: str,
    description: str,
    with_data: bool = False,
    with_decoding: bool = True,
) -> tuple[S, RunFolder, dict[str, Any]]:
    """The command's options, the folder, and the config's parts that may be other than in training.

    These are `decoding`, for a task that searches and a command that does, and `data`, where they are asked for.
    """
    import_plugins(argv)
    place, rest = first_argument(argv, "run", prog, options)
    if place is None:
        parse(options, rest, prog=f"{prog} RUN", description=description)
        raise AssertionError("--help ends the program")
    folder = RunFolder.open(place)
    config = read_config(folder)
    configs: dict[str, Config] = {}
    if with_decoding and hasattr(config.task, "decoding"):
        configs["decoding"] = config.task.decoding
    if with_data:
        configs["data"] = config.data
    chosen, values = parse(options, rest, prog=f"{prog} RUN", description=description, sections=configs)
    return chosen, folder, {name: changed(configs[name], values[name]) for name in configs}
