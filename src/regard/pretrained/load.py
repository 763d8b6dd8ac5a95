"""Other libraries' checkpoints as models of ours: `regard.load_pretrained(path)`.

| what is at the path | written by |
| --- | --- |
| a folder whose `config.json` names an architecture | timm: `save_for_hf` |
| a folder whose `config.json` names a model type | `transformers`: `save_pretrained` |
| a file of weights, `.safetensors` or torch's own | torchvision or timm: a state dict |

A name such as `OWNER/MODEL`, where nothing lies at that path, is fetched from the hub.
"""

from __future__ import annotations

from pathlib import Path

from torch import nn

from regard.core.errors import CheckpointError
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.files import read_json, read_tensors
from regard.pretrained.hub import located
from regard.pretrained.timm_checkpoints import read_timm
from regard.pretrained.transformers_checkpoints import read_transformers


def load_pretrained(source: str | Path, *, architecture: str | None = None, num_heads: int | None = None) -> nn.Module:
    """The model, in evaluation, with the logits of the one that was saved.

    `architecture` (a name of timm) and `num_heads` say what a file of weights alone cannot.
    """
    return read_checkpoint(source, architecture=architecture, num_heads=num_heads).build()


def read_checkpoint(source: str | Path, *, architecture: str | None = None, num_heads: int | None = None) -> Checkpoint:
    """The model's config and tensors, its classes, and how its pictures are prepared."""
    path = located(source)
    folder = path if path.is_dir() else path.parent
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    if path.is_dir() and not {"architecture", "model_type"} & config.keys():
        missing = "names no architecture and no model_type" if config else "is not there"
        raise CheckpointError(
            f"{folder / 'config.json'} {missing}, so what {path} holds cannot be told. timm (`save_for_hf`) and "
            "transformers (`save_pretrained`) write one; for weights alone name the file."
        )
    state = read_tensors(path)
    try:
        if "model_type" in config:
            beside = folder / "preprocessor_config.json"
            return read_transformers(state, config, read_json(beside) if beside.is_file() else None)
        if "architecture" not in config:
            config = {"architecture": architecture or ""}
        if num_heads is not None:
            config = {**config, "model_args": {**(config.get("model_args") or {}), "num_heads": num_heads}}
        return read_timm(state, config)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
