"""`Trainer`: from a model, a loss and batches to trained weights in a run folder."""

from __future__ import annotations

import contextlib
import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
from torch import nn

from regard.core.errors import ConfigError, DataError
from regard.core.task import Batches, LossFunction
from regard.training.config import TrainingConfig
from regard.training.journal import Journal
from regard.training.keeper import Keeper, peak_memory
from regard.training.loop import Loop, Record, Validate
from regard.training.optimizers import build_optimizer
from regard.training.precision import Precision, autocast, resolve_precision
from regard.training.processes import Circle, connect
from regard.training.progress import ProgressDisplay
from regard.training.run_folder import RunFolder
from regard.training.schedules import schedules
from regard.training.signals import StopSignals
from regard.training.stepper import Stepper

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True)
class TrainingResult:
    """What a run came to."""

    steps: int
    epochs: float
    seconds: float
    """Over all sittings."""
    stopped_because: str
    """max_steps, max_epochs, max_minutes, patience or interrupted."""
    signal: int | None
    """The signal that interrupted the run; a program then exits with 128 plus this."""
    best: float | None
    """The best value of `config.metric`; None where nothing was validated."""
    best_step: int | None
    metrics: dict[str, float]
    """All numbers of the best validation."""
    averaged_metrics: dict[str, float]
    """The validation of the averaged weights; empty where nothing was averaged."""
    peak_memory: int
    """Bytes, of the main process, on the device where that is a GPU."""
    weights: Path
    """The checkpoint folder of the best weights."""
    folder: Path
    precision: str
    """float32, bfloat16 or float16: what `auto` came to."""
    processes: int


class Trainer:
    """Trains `model` on `batches` by `loss_function` and keeps everything in `folder`."""

    def __init__(
        self,
        model: nn.Module,
        loss_function: LossFunction,
        batches: Batches,
        *,
        validate: Validate | None = None,
        record: Record | None = None,
        config: TrainingConfig | None = None,
        folder: RunFolder,
        terminal: bool | None = None,
    ) -> None:
        """`record` makes a frame of the film that `record_every` asks for; `terminal` says whether to draw a progress
        bar, None finds out.
        """
        self.model = model
        self.loss_function = loss_function
        self.batches = batches
        self.validate = validate
        self.record = record
        self.config = TrainingConfig() if config is None else config
        self.folder = folder
        self.terminal = terminal
        self.config.check()
        if validate is None and self.config.patience is not None:
            raise ConfigError("patience counts validations, but this training has nothing to validate on.")
        if record is None and self.config.record_every is not None:
            raise ConfigError("record_every asks for recordings, but this training has nothing to look at.")
        self.schedule = schedules[self.config.schedule]
        self.total_steps = self._count_steps()
        self.schedule(self.config.warmup_steps, self.config.warmup_steps, self.total_steps)

    def fit(self, *, resume: bool = False) -> TrainingResult:
        """Trains to the end of the budget; with `resume`, from the newest good checkpoint in the folder."""
        config, folder = self.config, self.folder
        if config.threads is not None:
            torch.set_num_threads(config.threads)
        accelerator, precision = make_accelerator(config.precision)
        keeper = Keeper(folder, self.model, config, accelerator)
        state = keeper.begin(resume)
        optimizer = build_optimizer(self.model, config, accelerator.device.type)
        circle = Circle()
        stepper = Stepper(
            accelerator,
            self.model,
            self.loss_function,
            optimizer,
            circle=circle,
            autocast=functools.partial(autocast, precision, accelerator.device),
            clip_norm=config.clip_norm,
            seed=config.seed,
        )
        keeper.restore_optimizer(stepper.optimizer)
        main = accelerator.is_main_process
        with contextlib.ExitStack() as stack:
            display = stack.enter_context(ProgressDisplay(main, self.terminal))
            journal = Journal(folder, state.step, config.tensorboard) if main else None
            if journal is not None:
                stack.callback(journal.close)
            signals = stack.enter_context(StopSignals(display.note))
            loop = Loop(
                state=state,
                config=config,
                batches=self.batches,
                model=self.model,
                validate=self.validate,
                record=self.record,
                stepper=stepper,
                keeper=keeper,
                circle=circle,
                journal=journal,
                display=display,
                signals=signals,
                factor=lambda step: self.schedule(step, config.warmup_steps, self.total_steps),
                total_steps=self.total_steps,
            )
            for complaint in keeper.complaints:
                display.note(f"Passed over a checkpoint: {complaint}")
            if resume:
                display.note(
                    f"Going on from step {state.step}." if state.step else "Nothing saved yet: from the start."
                )
            reason = loop.run()
            averaged = loop.average() if reason != "interrupted" else {}
            if reason == "interrupted":
                display.note(f"Saved at step {state.step}. To go on: --resume {folder.path}")
        stepper.optimizer.zero_grad(set_to_none=True)
        return TrainingResult(
            steps=state.step,
            epochs=loop.position(),
            seconds=state.seconds,
            stopped_because=reason,
            signal=loop.signal if reason == "interrupted" else None,
            best=state.best,
            best_step=state.best_step,
            metrics=state.best_metrics,
            averaged_metrics=averaged,
            peak_memory=max(state.peak_memory, peak_memory(accelerator.device)),
            weights=folder.weights("best"),
            folder=folder.path,
            precision=precision,
            processes=circle.size,
        )

    def _count_steps(self) -> int | None:
        """How many updates the whole run makes; by the first epoch's batches, should epochs differ in length."""
        config = self.config
        per_epoch = math.ceil(len(self.batches.epoch(0)) / config.accumulate)
        if per_epoch == 0:
            raise DataError("There is not a single batch to train on: the training data are empty.")
        bounds = [config.max_steps, None if config.max_epochs is None else math.ceil(config.max_epochs * per_epoch)]
        return min((bound for bound in bounds if bound is not None), default=None)


def make_accelerator(wanted: Precision | Literal["auto"]) -> tuple[Accelerator, Precision]:
    """Accelerate's view of the devices and processes there are, with `wanted` precision resolved for them."""
    device = connect().device
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from accelerate.utils import GradientAccumulationPlugin

    precision = resolve_precision(wanted, device)
    # Autocast is ours, the same with and without sharding; of Accelerate only the loss scaler of float16 is wanted.
    mixed = "fp16" if precision == "float16" else "no"
    # It keeps the first precision of a process for good, but a second training may well want another.
    if AcceleratorState._shared_state:
        AcceleratorState._shared_state["_mixed_precision"] = mixed
    # Accumulation is ours too; said outright, so that an environment variable cannot divide the loss once more.
    accumulation = GradientAccumulationPlugin(num_steps=1)
    accelerator = Accelerator(mixed_precision=mixed, gradient_accumulation_plugin=accumulation)
    if accelerator.is_fsdp2:
        # Every process has the weights already; loading them in one and sending them would untie tied parameters.
        accelerator.state.fsdp_plugin.cpu_ram_efficient_loading = False
        accelerator.state.fsdp_plugin.mixed_precision_policy = None
    return accelerator, precision
