"""Checkpoints that are either whole or not there.

    checkpoints/
        step-00001200/          model.safetensors, optimizer.safetensors, state.json
        averaged/               model.safetensors, state.json
        last.json, best.json    which of them is which

A checkpoint is written under a temporary name, flushed to the disk, and then renamed; only after that the pointers
move, each in one step, and only after that older ones go. So at every instant, power cuts included, `last.json`
names a complete checkpoint. `state.json` holds size and SHA-256 of the other files and a checksum of itself: damage
that comes later is found, named, and answered with the newest checkpoint that is still good.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.core.errors import CheckpointError
from regard.core.files import write_json
from regard.training.weights import scatter_model

FORMAT_VERSION = 1
MODEL_FILE, OPTIMIZER_FILE, STATE_FILE = "model.safetensors", "optimizer.safetensors", "state.json"


class CheckpointStore:
    """The `checkpoints` folder of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, name: str, files: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> Path:
        """Writes the checkpoint `name`: tensors by file name, and whatever JSON can hold as its state."""
        final = self.path / name
        temporary = self.path / f".{name}.{secrets.token_hex(4)}.tmp"
        try:
            temporary.mkdir(parents=True)
            for file, tensors in files.items():
                save_file(dict(tensors), temporary / file)
                _flush(temporary / file)
            described = {file: _describe(temporary / file) for file in files}
            text = _sealed({"version": FORMAT_VERSION, "regard": version("regard"), **state, "files": described})
            (temporary / STATE_FILE).write_text(text, encoding="utf-8")
            _flush(temporary / STATE_FILE)
            _flush(temporary)
            outdated = self._set_aside(final)
            temporary.replace(final)
            _flush(self.path)
            if outdated is not None:
                shutil.rmtree(outdated, ignore_errors=True)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise CheckpointError(self._explain(name, error)) from error
        return final

    def point(self, pointer: str, name: str, **facts: Any) -> None:
        """Makes `last` or `best` mean the checkpoint `name`."""
        try:
            write_json(self.path / f"{pointer}.json", {"checkpoint": name, **facts})
        except OSError as error:
            raise CheckpointError(self._explain(f"{pointer}.json", error)) from error

    def pointed(self, pointer: str) -> str | None:
        """The name that a pointer holds, or None where there is none that can be read."""
        try:
            name = json.loads((self.path / f"{pointer}.json").read_text(encoding="utf-8"))["checkpoint"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return name if isinstance(name, str) and Path(name).name == name else None

    def names(self) -> list[str]:
        """The complete checkpoints of training steps, oldest first."""
        found = [path.name for path in self.path.glob("step-*") if path.is_dir() and path.name[5:].isdigit()]
        return sorted(found, key=step_of)

    def find(self, which: str) -> Path:
        """The folder of the `last`, `best` or `averaged` checkpoint, or of one given by its name."""
        if which == "best" and self.pointed("best") is None:
            which = "last"
        name = self.pointed(which) if which in ("last", "best") else which
        if name is None or not (self.path / name / STATE_FILE).exists():
            known = [path.parent.name for path in sorted(self.path.glob(f"[!.]*/{STATE_FILE}"))]
            raise CheckpointError(
                f"{self.path} has no {which} checkpoint; "
                + (f"there are: {', '.join(known)}." if known else "nothing has been saved in this run yet.")
            )
        return self.path / name

    def newest_good(self) -> tuple[Path, list[str]]:
        """The checkpoint to resume from, and a sentence for every newer one that is damaged."""
        complaints: list[str] = []
        for name in reversed(self.names()):
            try:
                read_state(self.path / name)
            except CheckpointError as error:
                complaints.append(str(error))
            else:
                return self.path / name, complaints
        if complaints:
            raise CheckpointError("No checkpoint of this run is good. " + " ".join(complaints))
        return self.find("last"), complaints

    def prune(self, keep: Iterable[str]) -> None:
        """Removes the checkpoints of steps that are not in `keep`, and what killed runs left half-written."""
        keep = set(keep)
        for path in [self.path / name for name in self.names() if name not in keep] + list(self.path.glob(".*.tmp")):
            shutil.rmtree(path, ignore_errors=True)

    def _set_aside(self, final: Path) -> Path | None:
        """A folder cannot be renamed onto another one, so the old one first goes out of the way."""
        if not final.exists():
            return None
        aside = final.with_name(f".{final.name}.{secrets.token_hex(4)}.tmp")
        final.replace(aside)
        return aside

    def _explain(self, name: str, error: Exception) -> str:
        number = getattr(error, "errno", None)
        if number in (errno.ENOSPC, errno.EDQUOT) or "os error 28" in str(error):
            advice = "the disk is full; make room"
        elif number in (errno.EACCES, errno.EPERM, errno.EROFS):
            advice = "the folder may not be written to; change its permissions"
        else:
            advice = f"{error}; mend that"
        survivors = self.names()
        intact = f"The checkpoint before it, {survivors[-1]}, is intact. " if survivors else ""
        return f"Checkpoint {name} could not be written to {self.path}: {advice} and use --resume. {intact}".strip()


def checkpoint_name(step: int) -> str:
    return f"step-{step:08d}"


def step_of(name: str) -> int:
    return int(name.removeprefix("step-"))


def read_state(folder: Path) -> dict[str, Any]:
    """The state of a checkpoint after checking that all its files are as they were written."""
    path = folder / STATE_FILE
    try:
        text = path.read_text(encoding="utf-8")
        state = json.loads(text)
        intact = isinstance(state, dict) and state.pop("checksum") == _checksum(state)
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing, so {folder} is not a whole checkpoint. {_ADVICE}") from None
    except (OSError, ValueError, KeyError):
        intact = False
    if not intact:
        raise CheckpointError(f"{path} is damaged: its checksum does not fit. {_ADVICE}")
    if state["version"] != FORMAT_VERSION:
        raise CheckpointError(
            f"{folder} was written by regard {state['regard']} as checkpoint format {state['version']}; this is regard "
            f"{version('regard')}, which reads format {FORMAT_VERSION}. Install regard {state['regard']} to read it."
        )
    for file, written in state["files"].items():
        _check_file(folder / file, written)
    return state


def read_tensors(folder: Path, file: str, aliases: Mapping[str, str] | None = None) -> dict[str, Tensor]:
    """The tensors of one file, with the names of tied ones put back."""
    tensors = load_file(folder / file)
    for name, original in (aliases or {}).items():
        tensors[name] = tensors[original]
    return tensors


def load_model_weights(model: nn.Module, folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Loads the weights of a checkpoint folder into `model` and returns the checkpoint's state."""
    folder = Path(folder)
    state = read_state(folder)
    scatter_model(model, read_tensors(folder, MODEL_FILE, state["aliases"]), str(folder / MODEL_FILE))
    return state


def average(folders: Sequence[str | os.PathLike[str]]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The mean of the weights of several checkpoints (summed in float64), and their aliases.

    What is not a floating-point number, such as a counter, is taken from the last one.
    """
    if not folders:
        raise CheckpointError("There is no checkpoint to average.")
    sums: dict[str, Tensor] = {}
    for folder in map(Path, folders):
        aliases = read_state(folder)["aliases"]
        tensors = read_tensors(folder, MODEL_FILE)
        if sums and {name: tensor.shape for name, tensor in sums.items()} != {
            name: tensor.shape for name, tensor in tensors.items()
        }:
            raise CheckpointError(f"{folder} holds other tensors than {folders[0]}; only one model can be averaged.")
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and name in sums:
                sums[name] += tensor
            else:
                sums[name] = tensor.double() if tensor.is_floating_point() else tensor
    means = {
        name: (total / len(folders)).to(tensors[name].dtype) if total.is_floating_point() else total
        for name, total in sums.items()
    }
    return means, aliases


_ADVICE = "Resuming falls back on an older checkpoint by itself; else restore it from a copy or use another checkpoint."


def _check_file(path: Path, written: Mapping[str, Any]) -> None:
    if not path.exists():
        raise CheckpointError(f"{path} is missing. {_ADVICE}")
    size = path.stat().st_size
    if size != written["size"]:
        raise CheckpointError(f"{path} is damaged: it has {size} bytes instead of {written['size']}. {_ADVICE}")
    if _describe(path)["sha256"] != written["sha256"]:
        raise CheckpointError(f"{path} is damaged: its content is not what was written (SHA-256 differs). {_ADVICE}")


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"size": os.fstat(file.fileno()).st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _checksum(state: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _sealed(state: Mapping[str, Any]) -> str:
    state = json.loads(json.dumps(state))
    return json.dumps({**state, "checksum": _checksum(state)}, indent=2) + "\n"


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
