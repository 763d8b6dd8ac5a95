"""What training needs to know of a task: a loss, and batches that are a pure function of the epoch.

Because the order of the data can be computed from (seed, epoch) alone, an interrupted run goes on at exactly
the batch where it stopped, and several processes agree on who reads what without talking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn

from regard.core.config import Config


class TaskConfig(Config):
    """Base of the tasks' configs; `kind` says which task a saved config belongs to."""

    kind: str


@dataclass(frozen=True)
class Loss:
    """A sum over `count` things (tokens, pictures), so that shards and micro-batches add up exactly."""

    total: Tensor
    count: int
    parts: Mapping[str, Tensor] = field(default_factory=dict)


class Batches(Protocol):
    """Examples grouped into batches, by index, before any of them is read."""

    def epoch(self, number: int) -> Sequence[np.ndarray]:
        """The batches of this epoch as arrays of example indices: a pure function of the number."""

    def count(self, indices: np.ndarray) -> int:
        """How many things (tokens, pictures) the loss of these examples is a sum over."""

    def collate(self, indices: np.ndarray) -> Any:
        """Reads the examples and makes the tensors (a dataclass or dict of CPU tensors)."""


class LossFunction(Protocol):
    def __call__(self, model: nn.Module, batch: Any) -> Loss: ...
