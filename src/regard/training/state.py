"""Where a run stands: everything but the tensors that resuming needs, as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from regard.training.config import TrainingConfig
from regard.training.stepper import StepReport


@dataclass
class Interval:
    """Losses since the last log line, still on the device as long as nobody asks."""

    steps: int = 0
    things: int = 0
    seconds: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)
    norm: float = 0.0

    def __post_init__(self) -> None:
        self._unread: list[dict[str, Tensor]] = []
        self._last_norm: Tensor | None = None

    def add(self, report: StepReport, seconds: float) -> None:
        self.steps += 1
        self.things += report.things
        self.seconds += seconds
        self._unread += report.sums
        self._last_norm = report.norm

    def read(self, over_processes: Callable[[list[float]], list[float]]) -> None:
        """Fetches the numbers from the device; all processes have to do so at the same step."""
        if self._last_norm is None:
            return
        names = list(self._unread[0])
        columns = torch.stack([torch.stack([sums[name].float() for name in names]) for sums in self._unread])
        totals = over_processes(columns.cpu().double().sum(0).tolist())
        for name, total in zip(names, totals, strict=True):
            self.sums[name] = self.sums.get(name, 0.0) + total
        self.norm = self._last_norm.item()
        self._unread, self._last_norm = [], None

    def means(self) -> dict[str, float]:
        return {name: total / max(self.things, 1) for name, total in self.sums.items()}


@dataclass
class RunState:
    """Position in the data, the best so far, and the clock."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    """Planned batches of this epoch that are done."""
    best: float | None = None
    best_step: int | None = None
    best_metrics: dict[str, float] = field(default_factory=dict)
    validations_since_best: int = 0
    validated_step: int = 0
    validation_due: bool = False
    """A validation at this step was begun, but not finished."""
    to_average: list[str] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of all cores, in the main process: what a run costs, however busy the machine was with other things."""
    peak_memory: int = 0
    scaler: dict[str, Any] = field(default_factory=dict)
    interval: Interval = field(default_factory=Interval)

    def dump(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def load(cls, saved: Mapping[str, Any]) -> RunState:
        known = {entry.name: saved[entry.name] for entry in fields(cls) if entry.name in saved}
        return cls(**{**known, "interval": Interval(**known["interval"])})

    def is_better(self, metrics: Mapping[str, float], config: TrainingConfig) -> bool:
        """Whether this beats the best so far; what is not a number never does."""
        value = metrics[config.metric]
        if not math.isfinite(value) or self.best is None:
            return math.isfinite(value)
        return value < self.best if config.lower_is_better else value > self.best

    def judge(self, metrics: Mapping[str, float], config: TrainingConfig) -> bool:
        """Takes in the result of a validation, and says whether it is the best so far."""
        better = self.is_better(metrics, config)
        if better:
            self.best, self.best_step, self.best_metrics = metrics[config.metric], self.step, dict(metrics)
        self.validations_since_best = 0 if better else self.validations_since_best + 1
        self.validated_step, self.validation_due = self.step, False
        return better
