"""The tensors and descriptions in a checkpoint's files, whichever library wrote them.

A folder holds `config.json` and the weights, whole or in shards; a file is the weights alone. Old formats of torch are
read as tensors only (`weights_only`), so that a file cannot run code.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from regard.core.errors import CheckpointError

WEIGHTS = ("model.safetensors", "pytorch_model.bin", "model.pth")
"""In a folder the first that is there; each may be in shards, which `NAME.index.json` lists."""
TORCH_ENDINGS = (".pth", ".pt", ".bin", ".ckpt", ".tar")
INSIDE = ("state_dict", "model_state_dict", "model_state", "model")
"""Where training scripts put the weights, when they save more than these."""
WRAPPERS = ("module.", "_orig_mod.")
"""What data-parallel and compiled models put before each name."""


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The state dict of a file or folder, floats in float32."""
    tensors: dict[str, Tensor] = {}
    for file in weight_files(path):
        tensors |= _of_file(file)
    if not tensors:
        raise CheckpointError(f"{path} holds no tensors.")
    for wrapper in WRAPPERS:
        if all(name.startswith(wrapper) for name in tensors):
            tensors = {name.removeprefix(wrapper): tensor for name, tensor in tensors.items()}
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}


def weight_files(path: Path) -> list[Path]:
    """The file itself, or those of a folder."""
    if path.is_file():
        return [path]
    for name in WEIGHTS:
        if (path / name).is_file():
            return [path / name]
        index = path / f"{name}.index.json"
        if index.is_file():
            shards = sorted(set(read_json(index).get("weight_map", {}).values()))
            if missing := [shard for shard in shards if not (path / shard).is_file()]:
                raise CheckpointError(f"{index} lists {missing[0]!r}, which is not there; fetch the whole folder.")
            return [path / shard for shard in shards]
    loose = sorted(file for file in path.iterdir() if file.suffix == ".safetensors" or file.suffix in TORCH_ENDINGS)
    if len(loose) != 1:
        found = ", ".join(file.name for file in loose) or "none"
        raise CheckpointError(
            f"{path} holds none of {', '.join(WEIGHTS)}. Of files that may be weights it has: {found}; name one."
        )
    return loose


def read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); restore it from a copy.") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} describes no model: it holds no names with values.")
    return value


def _of_file(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        value = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = str(error).split(". ")[0]
        raise CheckpointError(
            f"{path} holds more than tensors, or is no file of torch, and reading it could run code: {reason}. Where "
            "it is trusted, load it with the library that wrote it, and save its state dict alone."
        ) from error
    except (SafetensorError, OSError, RuntimeError, EOFError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read as weights ({error}); fetch it anew.") from error
    return _state_dict(value, path)


def _state_dict(value: Any, path: Path) -> dict[str, Tensor]:
    """The mapping of names to tensors, wherever it is in what was saved."""
    if isinstance(value, Mapping):
        for place in INSIDE:
            if isinstance(value.get(place), Mapping):
                return _state_dict(value[place], path)
        if all(isinstance(entry, Tensor) for entry in value.values()):
            return dict(value)
    what = f"{', '.join(map(str, list(value)[:8]))}" if isinstance(value, Mapping) else f"a {type(value).__name__}"
    raise CheckpointError(f"{path} holds no state dict, but {what}. Save `model.state_dict()` alone.")
