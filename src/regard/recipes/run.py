"""From a config to a trained model, and from a run folder back to one: what is the same for every task.

A task brings two classes: a `Prepared`, which has read its data and knows how to train on them, and a `Run`, which has
a trained model and knows what can be asked of it. Both are found by the kind of task that the config names.
"""

from __future__ import annotations

import dataclasses
import importlib
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from pydantic import ValidationError
from torch import nn

from regard.core.errors import CheckpointError, ConfigError
from regard.core.files import write_json
from regard.core.models import models
from regard.core.tap import taps
from regard.core.task import Batches, Loss, LossFunction
from regard.data.sources import PARTS, Part
from regard.recipes.config import RunConfig, RunKind, read_run_config, run_kinds
from regard.recording import Recording
from regard.training import (
    RunFolder,
    Trainer,
    TrainingResult,
    load_model_weights,
    optimizers,
    schedules,
    seed_everything,
)
from regard.training.processes import on_main

importlib.import_module("regard.models")  # which fills the registry

LOWER_IS_BETTER = ("aer", "loss", "calibration_error")
"""Measures of which a recipe expects at most, and not at least, its number."""

FILMED = 4
"""Of how many examples a training keeps recordings."""

R = TypeVar("R", bound="Run")


@dataclass
class Run(ABC):
    """A trained model with all that belongs to it."""

    folder: RunFolder
    config: Any
    model: nn.Module
    task: Any
    weights: str = "best"
    """The checkpoint that the weights are from."""

    @property
    def name(self) -> str:
        return self.config.recipe

    @property
    def has_attention(self) -> bool:
        return bool(taps(self.model))

    def needs_attention(self) -> None:
        """An error where there is nothing to look at."""
        if not self.has_attention:
            raise ConfigError(
                f"{self.folder.path} is a {self.config.model.kind!r} model, which has no attention to look at. Look at "
                "one that has, such as a run of the recipe rnnsearch; `regard list models` says which models there are."
            )

    @abstractmethod
    def evaluate(self, part: str = "test", *, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
        """The task's measures on a part of the run's data."""

    @abstractmethod
    def fresh_model(self) -> nn.Module:
        """A model of the same build in evaluation, with the weights that training started from."""

    def plan(self, part: str) -> Any:
        """A part of the run's data in batches (`sequential`, `collate`)."""
        raise ConfigError(f"The task {self.config.task.kind!r} does not hand out its data batch by batch.")

    def batches(self, part: str = "valid", examples: int | None = None) -> Iterator[Any]:
        """Batches of a part on the model's device; or some ten of so many examples, which are always the same ones."""
        plan = self.plan(part)
        order = list(plan.sequential())
        if examples is not None:
            size = max(1, examples // 10)
            order = [indices[start : start + size] for indices in order for start in range(0, len(indices), size)]
            random.Random(0).shuffle(order)
        left = sum(map(len, order)) if examples is None else examples
        device = next(self.model.parameters()).device
        for indices in order:
            if left <= 0:
                return
            yield moved(plan.collate(indices[:left]), device)
            left -= len(indices)

    def loss(self, model: nn.Module, batch: Any) -> Loss:
        """What was made small in training."""
        return self.task.loss(model, batch)


@dataclass
class Prepared(ABC):
    """A training that is ready to start: whatever can be wrong with a config or its data has been found out."""

    config: Any
    corpus: Any
    model: nn.Module
    task: Any

    @property
    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def has_attention(self) -> bool:
        return bool(taps(self.model))

    @property
    @abstractmethod
    def loss(self) -> LossFunction:
        """What is made small."""

    @abstractmethod
    def batches(self) -> Batches:
        """What is trained on."""

    @abstractmethod
    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """The numbers by which the best weights are chosen."""

    def record(self, model: nn.Module) -> Recording:
        """Where the model looks in a few examples that stay the same, with their loss: a frame of a training's film."""
        raise ConfigError(f"The task {self.config.task.kind!r} has no examples to record through training.")

    @abstractmethod
    def save(self, path: Path) -> None:
        """Writes what belongs to a run beside config and weights, such as tokenizers, where it is not there yet."""

    @abstractmethod
    def trained(self, folder: RunFolder) -> Run:
        """What the training came to."""

    def train(self, folder: RunFolder, *, resume: bool = False) -> tuple[Any, TrainingResult]:
        """Trains in the folder, and loads the best weights at the end."""
        on_main(lambda: self.save(folder.path))
        trainer = Trainer(
            self.model,
            self.loss,
            self.batches(),
            validate=self.validate,
            record=self.record if self.has_attention else None,
            config=self.config.training,
            folder=folder,
        )
        result = trainer.fit(resume=resume)
        load_model_weights(self.model, folder.weights("best"))
        self.model.eval()
        return self.trained(folder), result


def prepare(
    config: RunConfig,
    *,
    resume: RunFolder | None = None,
    corpus: Any = None,
    progress: Callable[[str], None] | None = None,
) -> Any:
    """Reads the data and builds the model, with what the folder to resume has of them."""
    kind = kind_of_run(config)
    entry = models[config.model.kind]
    if entry.family not in (kind.family, *kind.also):
        raise ConfigError(
            f"The model {config.model.kind!r} is a {entry.family}, but the task {config.task.kind!r} needs a "
            f"{kind.family}."
        )
    config.training.check()
    schedules[config.training.schedule]
    optimizers[config.training.optimizer]
    prepared = kind.prepare(config, resume=resume, corpus=corpus, progress=progress)
    if config.training.record_every is not None and not prepared.has_attention:
        raise ConfigError(f"record_every asks for recordings, but a {config.model.kind!r} model has no attention.")
    return prepared


def train(
    config: RunConfig, folder: RunFolder, *, resume: bool = False, corpus: Any = None
) -> tuple[Any, TrainingResult]:
    """Trains from the beginning, or goes on where a run folder stopped."""
    return prepare(config, resume=folder if resume else None, corpus=corpus).train(folder, resume=resume)


def kind_of_run(config: RunConfig) -> RunKind:
    return run_kinds[config.task.kind]


def build_model(config: RunConfig, *sizes: int) -> nn.Module:
    """The model of a config, with fresh weights from the run's seed; `sizes` are what its family is made with."""
    seed_everything(config.training.seed)
    return models[config.model.kind].build(config.model, *sizes)


def open_run(path: str | Path, weights: str = "auto", device: str = "cpu") -> Any:
    """A run folder as something to use; `weights` is best, averaged, last, a step, or auto.

    auto is best: the weights of the best validation, which are the averaged ones where those measured best.
    """
    folder = RunFolder.open(path)
    config = read_config(folder)
    checkpoint = folder.weights("best" if weights == "auto" else weights)
    run: Run = kind_of_run(config).open(folder, config, checkpoint.name)
    load_model_weights(run.model, checkpoint)
    run.model.to(torch.device(device)).eval()
    return run


def read_config(folder: RunFolder) -> RunConfig:
    """The config of a run folder, or an error that says which field does not fit."""
    try:
        return read_run_config(folder.config)
    except ValidationError as error:
        raise CheckpointError(f"{folder.config_file} does not fit this version of Regard: {explain(error)}.") from error


def write_config(folder: RunFolder, config: RunConfig) -> None:
    """Puts another config into a run folder, such as one with a larger budget."""
    header = {**folder.read_header(), "config": config.model_dump(mode="json")}
    on_main(lambda: write_json(folder.config_file, header))


def moved(batch: Any, device: torch.device) -> Any:
    """A batch, which is a dataclass of tensors, on a device."""
    tensors = {name: value for name, value in vars(batch).items() if isinstance(value, torch.Tensor)}
    return dataclasses.replace(batch, **{name: tensor.to(device) for name, tensor in tensors.items()})


def reached(measured: dict[str, Any], expected: dict[str, float]) -> dict[str, bool]:
    """For each number that a recipe expects and that was measured, whether it is as good."""
    return {
        name: measured[name] <= number if name in LOWER_IS_BETTER else measured[name] >= number
        for name, number in expected.items()
        if name in measured
    }


def checked_part(name: str) -> Part:
    """The name of a part of the data, or an error that says which there are."""
    if name not in PARTS:
        raise ConfigError(f"There is no part {name!r} of the data; there are {', '.join(PARTS)}.")
    return name


def explain(error: ValidationError) -> str:
    """pydantic's findings as one line a person can act on."""
    return "; ".join(_findings(error, ()))


def _findings(error: ValidationError, above: tuple[str | int, ...]) -> list[str]:
    findings = []
    for finding in error.errors():
        place = (*above, *finding["loc"])
        inner = finding.get("ctx", {}).get("error")
        if isinstance(inner, ValidationError):  # the model's own config, which is read through its registry
            findings += _findings(inner, place)
            continue
        text = finding["msg"].removeprefix("Value error, ")
        findings.append(f"{'.'.join(map(str, place)) or 'the whole'}: {text[:1].lower()}{text[1:]}")
    return findings
