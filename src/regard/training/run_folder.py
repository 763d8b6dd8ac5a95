"""The folder of one run: all that a later command needs, and nothing that ties it to its place.

runs/<recipe>/<time>/
    config.json         what was trained and how, with the version of this layout
    metrics.jsonl       one line for each log interval and each validation
    events/             the same for TensorBoard
    checkpoints/        see `checkpoints.py`
    film/               step-00000100.regard: where the model looked at that step, if that was asked for
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from regard.core.errors import CheckpointError, ConfigError
from regard.core.files import write_json
from regard.training.checkpoints import CheckpointStore
from regard.training.processes import connect, on_main

LAYOUT_VERSION = 1


class RunFolder:
    """Paths inside a run folder, and its configuration."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.checkpoints = CheckpointStore(self.path / "checkpoints")

    @classmethod
    def create(cls, root: str | os.PathLike[str], recipe: str, config: dict[str, Any] | None = None) -> RunFolder:
        """A new folder `<root>/<recipe>/<time>`; with several processes, the one that the main process makes."""

        def make() -> Path:
            stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
            for number in range(1, 1000):
                path = Path(root) / recipe / (stamp if number == 1 else f"{stamp}-{number}")
                if not path.exists():
                    return _fill(path, recipe, config or {})
            raise ConfigError(f"{Path(root) / recipe} already has a thousand runs of this very second.")

        return cls(_in_main(make))

    @classmethod
    def create_at(
        cls, path: str | os.PathLike[str], recipe: str = "", config: dict[str, Any] | None = None
    ) -> RunFolder:
        """A new folder at a place the user chose; refuses one that already holds something."""
        return cls(_in_main(lambda: _fill(Path(path), recipe, config or {})))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunFolder:
        """An existing run folder, checked for its layout version."""
        folder = cls(path)
        folder.read_header()
        return folder

    @property
    def config_file(self) -> Path:
        return self.path / "config.json"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.jsonl"

    def frame(self, step: int) -> Path:
        """The recording of one step."""
        return self.path / "film" / f"step-{step:08d}.regard"

    @property
    def events(self) -> Path:
        return self.path / "events"

    @property
    def recipe(self) -> str:
        return self.read_header()["recipe"]

    @property
    def config(self) -> dict[str, Any]:
        """The configuration as it was given to `create`."""
        return self.read_header()["config"]

    def weights(self, which: str = "best") -> Path:
        """The checkpoint folder of the `best`, `last` or `averaged` weights; best is last where nothing was validated.

        `best` is the averaged one where averaging gave the best number.
        """
        return self.checkpoints.find(which)

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of `metrics.jsonl`; a last line that a killed run left unfinished is not one."""
        if not self.metrics_file.exists():
            return []
        try:
            lines = self.metrics_file.read_text(encoding="utf-8").split("\n")
            return [json.loads(line) for line in lines[:-1] if line]
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{self.metrics_file} cannot be read ({error}); remove the lines at fault.") from None

    def read_header(self) -> dict[str, Any]:
        """The whole of `config.json`."""
        try:
            header = json.loads(self.config_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise CheckpointError(
                f"{self.path} is not a run folder: it has no config.json. Runs are usually at runs/<recipe>/<time>."
            ) from None
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{self.config_file} cannot be read ({error}); restore it from a copy.") from None
        if not isinstance(header, dict) or "version" not in header or "config" not in header:
            raise CheckpointError(
                f"{self.config_file} is not the config.json of a run: it states no version and config."
            )
        if header["version"] != LAYOUT_VERSION:
            writer = header.get("regard", "(unknown)")
            raise CheckpointError(
                f"{self.path} was written by regard {writer} in layout {header['version']}; "
                f"this is regard {version('regard')}, which reads layout {LAYOUT_VERSION}. "
                f"Install the version that wrote it (pip install regard=={writer}), or train again."
            )
        return header


def _fill(path: Path, recipe: str, config: dict[str, Any]) -> Path:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        kind = "a run" if (path / "config.json").exists() else "something else"
        raise ConfigError(
            f"{path} already holds {kind}, which is never overwritten. "
            "To go on with a run use --resume with that folder; else choose another place or remove it."
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_json(
            path / "config.json",
            {
                "version": LAYOUT_VERSION,
                "regard": version("regard"),
                "recipe": recipe,
                "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "config": config,
            },
        )
    except OSError as error:
        raise CheckpointError(f"The run folder {path} cannot be made: {error.strerror or error}.") from None
    return path


def _in_main(make: Callable[[], Path]) -> Path:
    """Before the trainer exists nobody has connected the processes yet, and one alone need not wait for accelerate."""
    if "WORLD_SIZE" in os.environ:
        connect()
    return on_main(make)
