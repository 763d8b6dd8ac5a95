"""A tiny model, task and data set for the tests of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.core.task import Loss, LossFunction
from regard.training import RunFolder, Trainer, TrainingConfig, seed_everything

EXAMPLES, FEATURES, CLASSES = 37, 5, 3


@dataclass(frozen=True)
class ToyBatch:
    inputs: Tensor
    labels: Tensor


class ToyBatches:
    """Examples with a weight of one to three things each, in batches whose size is given."""

    def __init__(self, batch_size: int = 7, examples: int = EXAMPLES) -> None:
        generator = np.random.default_rng(11)
        self.inputs = generator.normal(size=(examples, FEATURES)).astype(np.float32)
        self.labels = generator.integers(0, CLASSES, size=(examples, 3))
        lengths = generator.integers(1, 4, size=examples)
        self.labels[np.arange(3) >= lengths[:, None]] = -100
        self.lengths = lengths
        self.batch_size = batch_size

    def epoch(self, number: int) -> list[np.ndarray]:
        order = np.random.default_rng([5, number]).permutation(len(self.inputs))
        return [order[first : first + self.batch_size] for first in range(0, len(order), self.batch_size)]

    def count(self, indices: np.ndarray) -> int:
        return int(self.lengths[indices].sum())

    def collate(self, indices: np.ndarray) -> ToyBatch:
        return ToyBatch(torch.from_numpy(self.inputs[indices]), torch.from_numpy(self.labels[indices]))


class ToyBlock(nn.Module):
    """What sharding gathers and lets go of as one unit."""

    def __init__(self, width: int, dropout_rate: float) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout_rate)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.dropout(self.norm(torch.relu(self.linear(inputs))))


class ToyModel(nn.Module):
    """A block and three heads, two of which are one tensor with two names."""

    def __init__(self, dropout_rate: float = 0.0, width: int = 11, tied: bool = True) -> None:
        super().__init__()
        self.block = ToyBlock(width, dropout_rate)
        self.heads = nn.ModuleList([nn.Linear(width, CLASSES) for _ in range(3)])
        if tied:
            self.heads[2].weight = self.heads[0].weight

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.block(inputs)
        return torch.stack([head(hidden) for head in self.heads], dim=1)


def toy_loss(model: nn.Module, batch: ToyBatch) -> Loss:
    logits = model(batch.inputs)
    total = nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), batch.labels.flatten(), ignore_index=-100, reduction="sum"
    )
    return Loss(total, int((batch.labels != -100).sum()), {"square": logits.float().square().sum()})


def toy_validate(model: nn.Module) -> dict[str, float]:
    assert not model.training
    assert not torch.is_grad_enabled()
    batches = ToyBatches(examples=13)
    loss = toy_loss(model, batches.collate(np.arange(13)))
    return {"loss": loss.total.item() / loss.count, "negative": -loss.total.item()}


def toy_config(**options: Any) -> TrainingConfig:
    defaults = {
        "precision": "float32",
        "max_epochs": 2,
        "learning_rate": 1e-2,
        "warmup_steps": 3,
        "log_every": 1,
        "tensorboard": False,
        "checkpoint_every_minutes": None,
    }
    return TrainingConfig(**{**defaults, **options})


def toy_trainer(
    path: Path,
    *,
    resume: bool = False,
    dropout_rate: float = 0.0,
    batch_size: int = 7,
    model: nn.Module | None = None,
    batches: Any = None,
    loss_function: LossFunction = toy_loss,
    validate: Callable[[nn.Module], dict[str, float]] | None = toy_validate,
    record: Callable[[nn.Module], Any] | None = None,
    **options: Any,
) -> Trainer:
    """A trainer in a new run folder at `path`, or one in the folder that is there."""
    folder = RunFolder.open(path) if resume else RunFolder.create_at(path, "toy")
    seed_everything(3)
    return Trainer(
        model or ToyModel(dropout_rate),
        loss_function,
        batches or ToyBatches(batch_size),
        validate=validate,
        record=record,
        config=toy_config(**options),
        folder=folder,
        terminal=False,
    )


def losses_of(path: Path) -> list[float]:
    return [line["loss"] for line in RunFolder.open(path).metrics() if "loss" in line]


def assert_same_weights(one: nn.Module, other: nn.Module) -> None:
    theirs = other.state_dict()
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, theirs[name]), name
