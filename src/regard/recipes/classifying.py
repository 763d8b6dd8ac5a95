"""Runs whose task is classification: prepared from pictures, asked what is in others and where it looks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import UInt8
from torch import nn

from regard.core.axes import Grid
from regard.core.errors import CheckpointError
from regard.core.files import write_json
from regard.core.task import LossFunction
from regard.data.pictures.batches import PictureBatches
from regard.data.pictures.config import PictureConfig
from regard.data.pictures.dataset import PictureCorpus, PictureSet, load_pictures
from regard.data.pictures.decode import decode
from regard.data.pictures.form import PictureForm
from regard.data.pictures.shapes.generating import generate, scene_numbers
from regard.recipes.config import RunConfig, RunKind, recipes, run_kinds
from regard.recipes.judging import judge_classification
from regard.recipes.run import FILMED, Prepared, Run, build_model, checked_part, moved
from regard.recipes.starting import PICTURE_FORM, StartConfig, freeze, prepared_as, read_start, start, started_model
from regard.recording import Recording
from regard.recording.film import compact
from regard.recording.verdict import Verdict
from regard.tasks.classification import ClassificationConfig, ClassificationTask, Prediction
from regard.tasks.classification.pointing import Pointing, point, pooled
from regard.training import RunFolder
from regard.training.precision import autocast, resolve_precision

CHUNK = 50
"""So many pictures are recorded at once."""

Picture = str | Path | UInt8[np.ndarray, "_ _ 3"]
"""A file, or a decoded picture."""


class ClassificationRunConfig(RunConfig):
    """Model, data, task and budget of one training."""

    data: PictureConfig = PictureConfig()
    """Which pictures, and how they are varied and batched."""
    task: ClassificationConfig = ClassificationConfig()
    """Loss and measures."""
    start: StartConfig = StartConfig()
    """Which weights the training starts from."""

    def with_source(self) -> Self:
        found: dict[str, Any] = {}
        if self.data.root is not None and self.data.source != "folder":
            found["data"] = self.data.model_copy(update={"source": "folder"})
        if self.start.checkpoint is not None:
            usual = recipes[self.recipe]().model if self.recipe in recipes else self.model
            found["model"] = started_model(read_start(self.start.checkpoint), self.model, usual)
        return self.model_copy(update=found) if found else self

    def absolute(self) -> Self:
        found: dict[str, Any] = {"data": self.data.absolute()}
        place = self.start.checkpoint
        if place is not None and Path(place).expanduser().exists():
            path = str(Path(place).expanduser().absolute())
            found["start"] = self.start.model_copy(update={"checkpoint": path})
        return self.model_copy(update=found)


@dataclass(frozen=True)
class PictureLook:
    """What a model says of a picture, with all the attention behind it."""

    prediction: Prediction
    recording: Recording
    """Every tap, labelled with patches; the picture and the prediction are among its `outputs`."""


@dataclass
class ClassificationRun(Run):
    """A trained classifier."""

    config: ClassificationRunConfig
    task: ClassificationTask

    def classify(self, pictures: Sequence[Picture], top: int | None = None) -> list[Prediction]:
        """The `top` likeliest classes of each picture."""
        return self.task.predict(self.model, [decoded(picture) for picture in pictures], top)

    def look(self, picture: Picture) -> PictureLook:
        """Classifies a picture, and records where the model looks."""
        self.needs_attention()
        images = self.task.images([decoded(picture)])
        prediction = self.classify([picture])[0]
        return PictureLook(prediction, self.task.record(self.model, images))

    def pointing(self, num_pictures: int = 200) -> dict[str, Pointing]:
        """The pointing game on generated shapes that were not trained on, for every attention over the picture.

        What looks is the first position where that is an extra token (a class token), else all positions together.
        """
        self.needs_attention()
        scenes = list(generate(scene_numbers(num_pictures, self.config.data.seed, "test"), self.task.form.height))
        found: dict[str, list[Pointing]] = {}
        for first in range(0, num_pictures, CHUNK):
            some = scenes[first : first + CHUNK]
            recording = self.task.record(self.model, self.task.images([scene.picture for scene in some]))
            masks = [scene.main.mask for scene in some]
            for address in recording:
                seen = recording[address]
                asking = seen.query_axes[0]
                query = 0 if isinstance(asking, Grid) and asking.extras else None
                if isinstance(seen.key_axes[0], Grid):
                    found.setdefault(address, []).append(point(seen, masks, query=query))
        weights = [len(scenes[first : first + CHUNK]) for first in range(0, num_pictures, CHUNK)]
        return {address: pooled(parts, weights) for address, parts in found.items()}

    def read(self, part: str, data: PictureConfig | None = None) -> PictureSet:
        """A part of the run's pictures, or of others, in the form the model knows."""
        name = checked_part(part)
        return load_pictures(data or self.config.data, self.task.form, parts=(name,)).part(name)

    def judge(self, picture: Picture, *, tap: str | None = None, orders: int = 100, points: int = 20) -> Verdict:
        """Whether where the model looks in a picture says anything about what it answers."""
        return judge_classification(self, decoded(picture), tap=tap, orders=orders, points=points)

    def fresh_model(self) -> nn.Module:
        return build_classifier(self.config, self.task.form).to(next(self.model.parameters()).device).eval()

    def plan(self, part: str) -> PictureBatches:
        return PictureBatches(self.read(part), batch_size=self.task.config.evaluation_batch, seed=0)

    def evaluate(
        self,
        part: str = "test",
        *,
        progress: Callable[[int], None] | None = None,
        data: PictureConfig | None = None,
    ) -> dict[str, Any]:
        """What `ClassificationTask.evaluate` measures, in the precision of the training."""
        batches = PictureBatches(self.read(part, data), batch_size=self.task.config.evaluation_batch, seed=0)
        device = next(self.model.parameters()).device
        precision = resolve_precision(self.config.training.precision, device)
        with autocast(precision, device):
            return {**self.task.evaluate(self.model, batches, progress), "precision": precision}


@dataclass
class PreparedClassification(Prepared):
    """A classifier and its pictures."""

    config: ClassificationRunConfig
    corpus: PictureCorpus
    task: ClassificationTask

    @classmethod
    def read(
        cls,
        config: ClassificationRunConfig,
        *,
        resume: RunFolder | None,
        corpus: PictureCorpus | None,
        progress: Callable[[str], None] | None,
    ) -> PreparedClassification:
        """With the form of the folder to resume, where it has one."""
        form = None
        if resume is not None and (resume.path / PICTURE_FORM).exists():
            form = _load_form(resume.path)
        if corpus is None:
            if progress is not None:
                progress(f"reading the pictures of {config.data.source}")
            corpus = load_pictures(config.data, form, parts=("train", "valid"))
        # A run that goes on has its weights, and the form of its pictures, in its folder.
        checkpoint = None
        if config.start.checkpoint is not None and resume is None:
            checkpoint = read_start(config.start.checkpoint)
            corpus = prepared_as(checkpoint, corpus)
        model = build_classifier(config, corpus.form)
        if checkpoint is not None:
            start(model, checkpoint, corpus.form.class_names)
        if config.start.frozen:
            freeze(model)
        return cls(config, corpus, model, ClassificationTask(config.task, corpus.form))

    @property
    def loss(self) -> LossFunction:
        return self.task.loss

    def batches(self) -> PictureBatches:
        return PictureBatches.of(self.config.data, self.corpus.train)

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        valid = PictureBatches(self.corpus.valid, batch_size=self.config.task.evaluation_batch, seed=0)
        return self.task.validate(model, valid)

    @torch.no_grad()
    def record(self, model: nn.Module) -> Recording:
        valid = PictureBatches(self.corpus.valid, batch_size=FILMED, seed=0)
        batch = moved(valid.collate(np.arange(min(FILMED, len(self.corpus.valid)))), next(model.parameters()).device)
        recording = compact(self.task.record(model, batch.images))
        loss = self.task.loss(model, batch)
        recording.outputs["loss"] = float(loss.total) / loss.count
        return recording

    def save(self, path: Path) -> None:
        if not (path / PICTURE_FORM).exists():
            write_json(path / PICTURE_FORM, self.task.form.to_json())

    def trained(self, folder: RunFolder) -> ClassificationRun:
        return ClassificationRun(folder, self.config, self.model, self.task)


def open_classification(folder: RunFolder, config: ClassificationRunConfig, weights: str) -> ClassificationRun:
    """The run without its weights yet."""
    form = _load_form(folder.path)
    return ClassificationRun(
        folder, config, build_classifier(config, form), ClassificationTask(config.task, form), weights
    )


def build_classifier(config: ClassificationRunConfig, form: PictureForm) -> nn.Module:
    """For pictures and classes of this form; tried on one picture, so that sizes that do not fit are said at once."""
    model = build_model(config, form.num_classes, form.channels)
    was_training = model.training
    with torch.inference_mode():
        model.eval()(torch.zeros(1, form.channels, form.height, form.width))
    return model.train(was_training)


run_kinds.register("classification")(
    RunKind(
        ClassificationRunConfig,
        "classifier",
        "accuracy",
        PreparedClassification.read,
        open_classification,
        also=("glimpser",),
    )
)


def decoded(picture: Picture) -> UInt8[np.ndarray, "_ _ 3"]:
    return picture if isinstance(picture, np.ndarray) else decode(Path(picture))


def _load_form(path: Path) -> PictureForm:
    file = path / PICTURE_FORM
    try:
        return PictureForm.from_json(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise CheckpointError(f"{path} is not the run of a classifier: it has no {PICTURE_FORM}.") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read ({error}); restore it from a copy.") from None
