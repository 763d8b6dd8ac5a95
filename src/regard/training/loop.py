"""The training loop: when to step, log, validate, save and stop.

The order of all of it is a pure function of the step and of what the state holds, so that a run that was killed and
resumed makes the same decisions, and the same weights, as one that was not. Time is the one exception: `max_minutes`
and `checkpoint_every_minutes` go by the clock, of which all processes take the main one's.

Validation gets the bare model, without gradients and under the run's autocast. Every process runs the whole of it
(with sharded parameters all have to walk through the model together) and the main process' numbers count.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from regard.core.errors import ConfigError, DataError, TrainingError, nearest
from regard.core.task import Batches
from regard.training.config import TrainingConfig
from regard.training.feeding import Share, feed
from regard.training.journal import Journal
from regard.training.keeper import Keeper
from regard.training.processes import Circle, on_main
from regard.training.progress import ProgressDisplay
from regard.training.signals import Interrupted, StopSignals
from regard.training.state import RunState
from regard.training.stepper import Place, Stepper, not_finite


class Frame(Protocol):
    """What a model looked at at one step."""

    def save(self, path: Path) -> object: ...


Record = Callable[[nn.Module], Frame]
Validate = Callable[[nn.Module], Mapping[str, float]]


class Loop:
    """Goes through the data until something ends the run; `run` says what."""

    def __init__(
        self,
        *,
        state: RunState,
        config: TrainingConfig,
        batches: Batches,
        model: nn.Module,
        validate: Validate | None,
        record: Record | None = None,
        stepper: Stepper,
        keeper: Keeper,
        circle: Circle,
        journal: Journal | None,
        display: ProgressDisplay,
        signals: StopSignals,
        factor: Callable[[int], float],
        total_steps: int | None,
    ) -> None:
        """`factor` gives the learning rate at a step as a part of the highest; only the main process has a journal."""
        self.state = state
        self.config = config
        self.batches = batches
        self.model = model
        self.validate = validate
        self.record = record
        self.stepper = stepper
        self.keeper = keeper
        self.circle = circle
        self.journal = journal
        self.display = display
        self.signals = signals
        self.factor = factor
        self.total_steps = total_steps
        self.signal: int | None = None
        """The signal that some process received; all of them know it."""
        self._plan: tuple[int, Sequence[np.ndarray]] = (-1, [])
        self._started = self._marked = time.monotonic()
        self._seconds_before = self._saved_at = state.seconds

    def run(self) -> str:
        """Trains, and says why it ended."""
        self.stepper.module.train()
        reason = self._spent()
        if self.state.step == 0:
            self._film()
        if reason is not None or self.state.validation_due:
            reason = self._settle(reason, validate=self.state.validation_due)
        while reason is None:
            plan = self._plan_of(self.state.epoch)
            steps = feed(
                self.batches,
                plan,
                start=self.state.batch,
                accumulate=self.config.accumulate,
                rank=self.circle.rank,
                size=self.circle.size,
                device=self.stepper.accelerator.device,
            )
            with contextlib.closing(steps):
                for shares in steps:
                    reason = self._step(shares)
                    if reason is not None:
                        break
        return reason

    def _step(self, shares: list[Share]) -> str | None:
        """One update and all that is due after it."""
        state, config = self.state, self.config
        learning_rate = config.learning_rate * self.factor(state.step)
        report = self.stepper.run(shares, Place(state.step, state.epoch, state.batch), learning_rate)
        bad = self.stepper.bad_batch(report) if self.stepper.looks_every_step else -1
        votes = self.circle.share([float(self.signals.received or 0), float(bad), self._seconds()])
        if any(vote[1] != -1 for vote in votes):
            raise not_finite(report, [int(vote[1]) for vote in votes], self.keeper.store.pointed("last"))
        self.stepper.update(report)
        self.signal = int(max(vote[0] for vote in votes)) or None
        state.seconds = votes[0][2]

        before = self.position()
        state.step += 1
        state.batch += len(shares)
        if state.batch >= len(self._plan_of(state.epoch)):
            state.epoch, state.batch = state.epoch + 1, 0
        now = time.monotonic()
        state.interval.add(report, now - self._marked)
        self._marked = now

        if state.step % config.log_every == 0:
            self._log(learning_rate)
        # Before anything is saved: what a checkpoint has behind it is there, and what comes again is the same again.
        self._film()
        reason = self._spent()
        if reason is None and self.signal is not None:
            reason = "interrupted"
        due = self.validate is not None and _crosses(before, self.position(), config.validate_every)
        return self._settle(reason, validate=due)

    def _settle(self, reason: str | None, *, validate: bool) -> str | None:
        """Validates and saves where that is due, and sees whether the run ends here."""
        state, config = self.state, self.config
        ending = reason not in (None, "interrupted")
        if self.validate is not None and (validate or (ending and state.validated_step != state.step)):
            state.validation_due = True
            if reason != "interrupted":
                reason = self._validate() or reason
        if state.step == 0:
            return reason
        if ending and state.interval.steps:
            self._log(config.learning_rate * self.factor(state.step - 1))
        if reason is not None or state.validated_step == state.step or self._save_is_due():
            self._save()
        return reason

    def _film(self) -> None:
        """A recording of the fixed examples, where one is due."""
        every, step = self.config.record_every, self.state.step
        if every is None or self.record is None or step % every:
            return
        with self._evaluating():
            frame = self.record(self.model)
        on_main(lambda: frame.save(self.keeper.folder.frame(step)))
        self._marked = time.monotonic()

    def position(self) -> float:
        """Epochs done, with the part of this one."""
        state = self.state
        return state.epoch + (state.batch / len(self._plan_of(state.epoch)) if state.batch else 0.0)

    def _spent(self) -> str | None:
        """Which budget is used up, if any."""
        state, config = self.state, self.config
        if config.patience is not None and state.validations_since_best >= config.patience:
            return "patience"
        if config.max_steps is not None and state.step >= config.max_steps:
            return "max_steps"
        if config.max_epochs is not None and self.position() >= config.max_epochs:
            return "max_epochs"
        if config.max_minutes is not None and state.seconds >= config.max_minutes * 60:
            return "max_minutes"
        return None

    def _save_is_due(self) -> bool:
        config, state = self.config, self.state
        by_steps = config.checkpoint_every_steps is not None and state.step % config.checkpoint_every_steps == 0
        pause = config.checkpoint_every_minutes
        return by_steps or (pause is not None and state.seconds - self._saved_at >= pause * 60)

    def _log(self, learning_rate: float) -> None:
        state, interval = self.state, self.state.interval
        self._read_device()
        means = interval.means()
        line: dict[str, Any] = {
            "step": state.step,
            "epoch": round(self.position(), 6),
            "loss": means.pop("loss"),
            "learning_rate": learning_rate,
            "gradient_norm": interval.norm,
            "per_second": interval.things / max(interval.seconds, 1e-9),
            "seconds": round(self._seconds(), 3),
        }
        if means:
            line["parts"] = means
        state.interval = type(interval)()
        if self.journal is not None:
            self.journal.write(line)
        done = self._fraction_done()
        self.display.show(line, done, self._seconds() * (1 - done) / done if done else None)

    def _validate(self) -> str | None:
        """Runs the task's validation; "interrupted" where a signal came, and the validation then is still due."""
        self._read_device()
        try:
            with self.signals.may_abandon(self.circle.size == 1):
                metrics = self.measure()
        except Interrupted:
            self.signal = self.signals.received
            return "interrupted"
        state, config = self.state, self.config
        better = state.judge(metrics, config)
        line = {"step": state.step, "epoch": round(self.position(), 6), "seconds": round(self._seconds(), 3)}
        if self.journal is not None:
            self.journal.write({**line, "validation": metrics, "best": better})
        numbers = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        self.display.note(f"step {state.step}  epoch {line['epoch']:.2f}  validation: {numbers}{'  (best)' * better}")
        self._marked = time.monotonic()
        return "patience" if config.patience and state.validations_since_best >= config.patience else None

    def measure(self) -> dict[str, float]:
        """The task's numbers for the model as it is."""
        assert self.validate is not None
        with self._evaluating():
            numbers = {name: float(value) for name, value in self.validate(self.model).items()}
        metrics = on_main(lambda: numbers)
        if self.config.metric not in metrics:
            close = nearest(self.config.metric, metrics)
            raise ConfigError(
                f"training.metric is {self.config.metric!r}, but validation measures {', '.join(metrics)}."
                + (f" Did you mean {close!r}?" if close else "")
            )
        return metrics

    def average(self) -> dict[str, float]:
        """At the end: averages the last weights, measures them, and calls them the best if they are."""
        name = self.keeper.average(self.state) if self.validate is not None else None
        if name is None:
            return {}
        with self.keeper.borrowed(name):
            metrics = self.measure()
        if self.journal is not None:
            line = {"step": self.state.step, "epoch": round(self.position(), 6), "seconds": round(self._seconds(), 3)}
            self.journal.write({**line, "averaged": metrics})
        better = self.state.is_better(metrics, self.config)
        if better:
            on_main(lambda: self.keeper.store.point("best", name, **{self.config.metric: metrics[self.config.metric]}))
        numbers = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        self.display.note(f"average of {len(self.state.to_average)}: {numbers}{'  (best)' * better}")
        return metrics

    def _save(self) -> None:
        self._read_device()
        self.state.seconds = self._saved_at = self.circle.share([self._seconds()])[0][0]
        if self.journal is not None:
            self.journal.flush()
        self.keeper.save(self.state, self.stepper.optimizer)
        self._marked = time.monotonic()

    @contextlib.contextmanager
    def _evaluating(self) -> Iterator[None]:
        self.model.eval()
        try:
            with torch.no_grad(), self.stepper.autocast(), self.stepper.whole_root():
                yield
        finally:
            self.stepper.module.train()

    def _read_device(self) -> None:
        """Fetches the losses, and makes sure that they are finite before anything is built on them."""
        if not self.stepper.looks_every_step:
            report, bad = self.stepper.read_flag()
            votes = self.circle.share([-1.0 if report is None else float(bad)])
            if report is not None:
                raise not_finite(report, [int(vote[0]) for vote in votes], self.keeper.store.pointed("last"))
            if any(vote[0] != -1 for vote in votes):
                raise TrainingError("The loss is not finite in another process, whose message says in which batch.")
        self.state.interval.read(
            lambda totals: [sum(column) for column in zip(*self.circle.share(totals), strict=True)]
        )

    def _plan_of(self, epoch: int) -> Sequence[np.ndarray]:
        if self._plan[0] != epoch:
            self._plan = (epoch, self.batches.epoch(epoch))
            if len(self._plan[1]) == 0:
                raise DataError(f"Epoch {epoch} has not a single batch.")
        return self._plan[1]

    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._started

    def _fraction_done(self) -> float:
        """Of the budget that will be used up first."""
        parts = [0.0]
        if self.total_steps is not None:
            parts.append(self.state.step / self.total_steps)
        if self.config.max_minutes is not None:
            parts.append(self._seconds() / (self.config.max_minutes * 60))
        return min(max(parts), 1.0)


def _crosses(before: float, after: float, every: float | None) -> bool:
    """Whether a multiple of `every` lies in (before, after]."""
    if every is None:
        return False
    slack = 1e-9
    return math.floor(after / every + slack) > math.floor(before / every + slack)
