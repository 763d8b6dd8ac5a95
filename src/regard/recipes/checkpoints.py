"""Other libraries' checkpoints as classifiers that can be asked and looked into, without a run folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from regard.core.models import ModelConfig
from regard.core.tap import taps
from regard.data.pictures.form import PictureForm
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.load import read_checkpoint
from regard.recipes.classifying import Picture, PictureLook, decoded
from regard.recording import Recording
from regard.tasks.classification import ClassificationConfig, ClassificationTask, Prediction
from regard.tasks.classification.occlusion import ADDRESS, occlude

FILES = (".safetensors", ".pth", ".pt", ".bin", ".ckpt", ".tar")
HUB = ("hf-hub:", "hf_hub:")
"""On a command line a name on the hub has one of these before it, so that a mistyped path is not looked for there."""


def is_checkpoint(place: str | Path) -> bool:
    """Whether this is (a name of) weights of another library rather than a run folder."""
    path = Path(place).expanduser()
    if path.is_file():
        return path.suffix.lower() in FILES
    if not path.is_dir():
        return str(place).startswith(HUB)
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and bool({"architecture", "model_type"} & config.keys())


def form_of(checkpoint: Checkpoint) -> PictureForm:
    """What the model must know of the pictures it reads."""
    prepared = checkpoint.preparation
    return PictureForm(prepared.height, prepared.width, prepared.mean, prepared.std, checkpoint.class_names)


@dataclass(frozen=True)
class PretrainedConfig:
    """What of a run's config a checkpoint has as well."""

    model: ModelConfig


@dataclass(frozen=True)
class PretrainedClassifier:
    """A classifier from a checkpoint."""

    name: str
    config: PretrainedConfig
    model: nn.Module
    task: ClassificationTask

    def classify(self, pictures: Sequence[Picture], top: int | None = None) -> list[Prediction]:
        """The `top` likeliest classes of each picture."""
        return self.task.predict(self.model, [decoded(picture) for picture in pictures], top)

    def look(self, picture: Picture) -> PictureLook:
        """Its attention; of a model without any, how the answer changes as parts of the picture are covered."""
        images = self.task.images([decoded(picture)])
        prediction = self.classify([picture])[0]
        if taps(self.model):
            return PictureLook(prediction, self.task.record(self.model, images))
        relation, classes, grid = occlude(self.model, images, self.task.form.class_names)
        recording = Recording({ADDRESS: relation}, {ADDRESS: ("classes", "places")})
        recording.label(classes=[classes], places=[grid])
        recording.outputs.update(self.task.shown(images, [prediction]))
        return PictureLook(prediction, recording)


def open_checkpoint(source: str | Path, device: str = "cpu") -> PretrainedClassifier:
    """A file, a folder or a name on the hub as something to use."""
    checkpoint = read_checkpoint(source)
    task = ClassificationTask(ClassificationConfig(), form_of(checkpoint))
    config = PretrainedConfig(checkpoint.config)
    return PretrainedClassifier(checkpoint.origin, config, checkpoint.build().to(device), task)
