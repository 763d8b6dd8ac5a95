"""Where a training starts from: fresh weights, or those of a checkpoint, with a new head where the classes are others.

Everything else of fine-tuning follows from what models can do anyway: positions are resized to other pictures
(`data.size`), and `training.layer_decay` gives lower layers lower learning rates.
"""

from __future__ import annotations

import json
from typing import Any

from torch import Tensor, nn

from regard.core.config import Config
from regard.core.errors import CheckpointError, ConfigError
from regard.core.models import ModelConfig
from regard.data.pictures.dataset import PictureCorpus, PictureSet
from regard.data.pictures.form import PictureForm
from regard.data.sources import PARTS
from regard.pretrained.checkpoint import Checkpoint, Preparation
from regard.pretrained.load import read_checkpoint
from regard.training import RunFolder
from regard.training.checkpoints import MODEL_FILE, read_state, read_tensors

PICTURE_FORM = "picture_form.json"


class StartConfig(Config):
    """Which weights a training starts from."""

    checkpoint: str | None = None
    """A checkpoint of timm, transformers or torchvision (a folder, a file, a name on the hub), or a run folder of a
    classifier; its model takes the place of the recipe's. None starts with fresh weights."""

    frozen: bool = False
    """Only the head is trained; everything below stays as the checkpoint has it."""


def read_start(place: str) -> Checkpoint:
    """A checkpoint of another library, or the best weights of a run."""
    try:
        folder = RunFolder.open(place)
    except CheckpointError:
        return read_checkpoint(place)
    from regard.recipes.run import read_config  # which knows all kinds of runs, this one's among them

    config, weights = read_config(folder), folder.weights("best")
    file = folder.path / PICTURE_FORM
    if not file.is_file():
        raise CheckpointError(f"{place} is not the run of a classifier: it has no {PICTURE_FORM}.")
    form = PictureForm.from_json(json.loads(file.read_text(encoding="utf-8")))
    tensors = read_tensors(weights, MODEL_FILE, read_state(weights)["aliases"])
    prepared = Preparation(form.height, form.width, form.mean, form.std)
    return Checkpoint(f"the run {place}", config.model, tensors, prepared, form.class_names)


def started_model(checkpoint: Checkpoint, chosen: ModelConfig, usual: ModelConfig) -> ModelConfig:
    """The checkpoint's model, with the rates of dropout and the like that were chosen; its sizes cannot be."""
    rates: dict[str, Any] = {}
    if chosen == checkpoint.config:
        return chosen
    for name in type(chosen).model_fields:
        value = getattr(chosen, name)
        if chosen.kind == usual.kind and value == getattr(usual, name, None):
            continue
        if not name.endswith("_rate") or name not in type(checkpoint.config).model_fields:
            raise ConfigError(
                f"--model.{name.replace('_', '-')} cannot be given with --start.checkpoint: the model is the "
                f"checkpoint's, {checkpoint.origin}, a {checkpoint.config.kind!r}. Of its options only rates of "
                "dropout can be changed."
            )
        rates[name] = value
    return checkpoint.config.model_copy(update=rates)


def prepared_as(checkpoint: Checkpoint, corpus: PictureCorpus) -> PictureCorpus:
    """The same pictures, normalised as the checkpoint's were."""
    form = corpus.form
    mean, std = checkpoint.preparation.mean, checkpoint.preparation.std
    if len(mean) != form.channels:
        raise ConfigError(
            f"{checkpoint.origin} reads pictures with {len(mean)} channels, but these have {form.channels}; save them "
            "with as many, or choose other weights."
        )
    form = PictureForm(form.height, form.width, mean, std, form.class_names)
    parts = {part: corpus.part(part) for part in PARTS if corpus.has(part)}
    sets = {part: PictureSet(own.pictures, own.labels, form) for part, own in parts.items()}
    return PictureCorpus(sets, form, corpus.report)


def start(model: nn.Module, checkpoint: Checkpoint, class_names: tuple[str, ...]) -> None:
    """Copies the weights; heads only where the checkpoint's classes are these."""
    own = model.state_dict()
    same_classes = checkpoint.class_names == class_names
    taken: dict[str, Tensor] = {}
    for name, tensor in own.items():
        if is_head(name) and not same_classes:
            continue
        theirs = checkpoint.tensors.get(name)
        if theirs is None or theirs.shape != tensor.shape:
            shape = "nothing" if theirs is None else f"the shape {list(theirs.shape)}"
            raise CheckpointError(
                f"{checkpoint.origin} has {shape} for {name!r}, the model the shape {list(tensor.shape)}; start with "
                "the checkpoint's own model."
            )
        taken[name] = theirs
    model.load_state_dict({**own, **taken})


def freeze(model: nn.Module) -> None:
    """All but the heads; norms that count running statistics stop counting."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(is_head(name))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.__class__ = FrozenBatchNorm
            module.eval()


class FrozenBatchNorm(nn.BatchNorm2d):
    """Always as in evaluation."""

    def train(self, mode: bool = True) -> FrozenBatchNorm:
        super().train(False)
        return self


def is_head(name: str) -> bool:
    """Whether a parameter is of a head; all our classifiers call theirs so."""
    return name.split(".")[0].endswith("head")
