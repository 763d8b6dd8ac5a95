"""One update of the weights: forward, backward, and the optimizer, on one process or many.

A batch's loss is a sum over things (tokens, pictures). Gradients are divided by the number of things in all batches
of the step on all processes, which everybody knows from the plan, so that
    accumulating k batches = one batch k times as large,
    n processes = one process with the same plan.

A step whose loss or gradient is not finite must not reach the weights. On a processor the numbers are at hand and
are looked at before each update. On a GPU looking would stall it, so there the fused optimizer is given a flag,
computed on the device, that makes this and all later updates do nothing; the flag is read with each log line, before
each validation and before each save. Either way the weights stay those before the bad step.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn, optim

from regard.core.errors import TrainingError
from regard.core.task import LossFunction
from regard.training.feeding import Share
from regard.training.processes import Circle
from regard.training.seeding import seed_step

if TYPE_CHECKING:
    from accelerate import Accelerator


class LossModule(nn.Module):
    """The model together with its loss, so that all computing happens inside `forward`, where
    data-parallel and sharding wrappers expect it."""

    def __init__(
        self,
        model: nn.Module,
        loss_function: LossFunction,
        autocast: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> None:
        super().__init__()
        self.model = model
        self.loss_function = loss_function
        self.autocast = autocast

    def forward(self, batch: Any, scale: float) -> tuple[Tensor, dict[str, Tensor], int]:
        """The scaled loss to descend, the unscaled sums to report, and how many things they are sums over."""
        with self.autocast():
            loss = self.loss_function(self.model, batch)
        sums = {"loss": loss.total, **loss.parts}
        return loss.total * scale, {name: value.detach() for name, value in sums.items()}, loss.count


class Place(NamedTuple):
    """Where in the run a step is."""

    step: int
    epoch: int
    batch: int
    """The first of its batches, counted within the epoch."""


@dataclass(frozen=True)
class StepReport:
    """What one step leaves for the log; tensors stay on the device until somebody asks."""

    place: Place
    sums: list[dict[str, Tensor]]
    """For each batch, this process's part of the summed losses."""
    things: int
    """Over all processes."""
    norm: Tensor
    """Of the gradients, before clipping."""
    planned: list[np.ndarray]
    """The examples of each batch."""


class Stepper:
    """Owns the prepared model and the optimizer."""

    def __init__(
        self,
        accelerator: Accelerator,
        model: nn.Module,
        loss_function: LossFunction,
        optimizer: optim.Optimizer,
        *,
        circle: Circle,
        autocast: Callable[[], contextlib.AbstractContextManager[None]],
        clip_norm: float | None,
        seed: int,
    ) -> None:
        self.accelerator = accelerator
        self.autocast = autocast
        self.module, prepared = accelerator.prepare(LossModule(model, loss_function, autocast), optimizer)
        self.optimizer: optim.Optimizer = prepared.optimizer
        self.circle = circle
        self.clip_norm = math.inf if clip_norm is None else clip_norm
        self.seed = seed
        self._prepared_optimizer = prepared
        self._parameters = list(self.module.parameters())
        fused = all(group.get("fused") for group in self.optimizer.param_groups)
        sharded = any(hasattr(parameter, "full_tensor") for parameter in self._parameters)
        on_host = accelerator.device.type == "cpu"
        self.looks_every_step = on_host or sharded or not fused or accelerator.scaler is not None
        self._stopped = torch.tensor(False, device=accelerator.device)
        self._unread: list[StepReport] = []

    def run(self, shares: list[Share], place: Place, learning_rate: float) -> StepReport:
        """Computes the gradients of one step; `update` then applies them."""
        seed_step(self.seed, place.step, self.circle.rank, self.accelerator.device)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate * group.get("share", 1.0)
        self.optimizer.zero_grad(set_to_none=True)
        things = sum(share.planned_things for share in shares)
        # Data-parallel wrappers average over the processes, but the sum is wanted.
        scale = self.circle.size / max(things, 1)
        sums = []
        for number, share in enumerate(shares, start=1):
            with contextlib.nullcontext() if number == len(shares) else self.accelerator.no_sync(self.module):
                loss, parts, count = self.module(share.batch, scale * share.weight)
                assert count == share.things, (
                    f"the loss is a sum over {count} things, batches.count says {share.things}"
                )
                self.accelerator.backward(loss)
            sums.append({name: value * share.weight for name, value in parts.items()})
        norm = self.accelerator.clip_grad_norm_(self._parameters, self.clip_norm)
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        return StepReport(place, sums, things, norm, [share.planned for share in shares])

    def bad_batch(self, report: StepReport) -> int:
        """The number of the first batch whose loss is not finite; -2 where only the gradient is not, else -1.

        Scaled float16 losses overflow now and then, and their scaler skips such a step by itself.
        """
        for number, sums in enumerate(report.sums):
            if not math.isfinite(sums["loss"].item()):
                return number
        scaled = self.accelerator.scaler is not None
        return -2 if not scaled and not math.isfinite(report.norm.item()) else -1

    def update(self, report: StepReport) -> None:
        """Applies the gradients, unless the device finds that they, or those of an earlier step, are not finite."""
        if not self.looks_every_step:
            self._stopped = self._stopped | ~self._is_finite(report)
            # The attribute by which torch's loss scaler tells a fused optimizer to do nothing.
            vars(self.optimizer)["found_inf"] = self._stopped.float()
            self._unread.append(report)
        # The prepared optimizer knows the loss scaler, but looks for optional packages on the disk at each step.
        (self.optimizer if self.accelerator.scaler is None else self._prepared_optimizer).step()

    def _is_finite(self, report: StepReport) -> Tensor:
        """On the device. Several processes go by the gradient, which they have in common, and so all skip or none."""
        finite = report.norm.isfinite()
        if self.circle.size == 1:
            for sums in report.sums:
                finite = finite & sums["loss"].isfinite()
        return finite

    def read_flag(self) -> tuple[StepReport | None, int]:
        """The first bad step since the last time and what `bad_batch` says of it, where the device was left to look."""
        unread, self._unread = self._unread, []
        if unread:
            losses = torch.stack([sums["loss"].float() for report in unread for sums in report.sums])
            if bool(self._stopped | ~losses.isfinite().all()):
                for report in unread:
                    bad = self.bad_batch(report)
                    if bad != -1:
                        return report, bad
        return None, -1

    @contextlib.contextmanager
    def whole_root(self) -> Iterator[None]:
        """With sharded parameters (FSDP2), gathers those that no block of the model gathers for itself.

        Blocks do so whenever they are called; the root does only when the wrapper is, which validation goes past.
        """
        if not self.accelerator.is_fsdp2:
            yield
            return
        self.module.unshard()
        try:
            yield
        finally:
            self.module.reshard()


def not_finite(report: StepReport, bad: Sequence[int], saved: str | None) -> TrainingError:
    """What a person needs to find the cause: the step, the batch, the examples.

    `bad` is what `bad_batch` gives in each process. An infinite loss of one makes everybody's gradient infinite,
    so who has the loss comes first.
    """
    step, epoch, batch = report.place
    number = max(bad)
    if number < 0:
        what, examples = "the gradient is not finite, though the loss is", np.concatenate(report.planned)
    else:
        batch += number
        what, examples = "the loss is not finite", report.planned[number][bad.index(number) :: len(bad)]
    shown = ", ".join(map(str, examples[:10].tolist())) + (", ..." if len(examples) > 10 else "")
    good = f"the last good one is {saved}" if saved else "nothing had been saved yet"
    return TrainingError(
        f"At step {step}, batch {batch} of epoch {epoch}, {what}. It has {len(examples)} examples, by index: {shown}. "
        f"No checkpoint contains this step; {good}. "
        "Look at these examples; if they are sound, lower learning_rate, lengthen warmup_steps, or lower clip_norm."
    )
