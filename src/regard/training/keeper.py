"""Saving and taking up a run: what goes into a checkpoint, which ones stay, and averaging at the end."""

from __future__ import annotations

import contextlib
import resource
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import nn, optim

from regard.core.errors import ConfigError
from regard.training.checkpoints import (
    MODEL_FILE,
    OPTIMIZER_FILE,
    average,
    checkpoint_name,
    load_model_weights,
    read_state,
    read_tensors,
    step_of,
)
from regard.training.config import TrainingConfig
from regard.training.processes import on_main
from regard.training.run_folder import RunFolder
from regard.training.state import RunState
from regard.training.weights import gather_model, gather_optimizer, scatter_optimizer

if TYPE_CHECKING:
    from accelerate import Accelerator


class Keeper:
    """Moves a run between memory and its folder. All processes call it together; the main one writes."""

    def __init__(self, folder: RunFolder, model: nn.Module, config: TrainingConfig, accelerator: Accelerator) -> None:
        self.store = folder.checkpoints
        self.folder = folder
        self.model = model
        self.config = config
        self.accelerator = accelerator
        self.complaints: list[str] = []
        """Damaged checkpoints that were passed over."""
        self._source: str | None = None
        self._cpu_seconds_before = -time.process_time()

    def begin(self, resume: bool) -> RunState:
        """The state to start from; on resuming the weights are loaded, before any wrapper sees the model."""

        def choose() -> tuple[str | None, list[str]]:
            if not self.store.names():
                return None, []
            if not resume:
                raise ConfigError(
                    f"{self.folder.path} already holds a training run. Use --resume to go on with it, "
                    "or choose another folder."
                )
            path, complaints = self.store.newest_good()
            return path.name, complaints

        self._source, self.complaints = on_main(choose)
        if self._source is None:
            return RunState()
        state = RunState.load(load_model_weights(self.model, self.store.path / self._source))
        self._cpu_seconds_before += state.cpu_seconds
        return state

    def restore_optimizer(self, optimizer: optim.Optimizer) -> None:
        """The second half of resuming, once the optimizer belongs to the prepared model."""
        if self._source is None:
            return
        path = self.store.path / self._source
        saved = read_state(path)
        if saved["optimizer_name"] != self.config.optimizer:
            raise ConfigError(
                f"{self.folder.path} was trained with the optimizer {saved['optimizer_name']!r}, whose state means "
                f"nothing to {self.config.optimizer!r}; resume with the same one, or start a new run."
            )
        tensors = read_tensors(path, OPTIMIZER_FILE)
        scatter_optimizer(self.model, optimizer, tensors, saved["optimizer"], str(path / OPTIMIZER_FILE))
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(saved["scaler"])

    def save(self, state: RunState, optimizer: optim.Optimizer) -> None:
        """Writes a checkpoint, moves the pointers, and then lets go of what nobody needs any more."""
        main = self.accelerator.is_main_process
        model_tensors, aliases = gather_model(self.model, keep=main)
        optimizer_tensors, others = gather_optimizer(self.model, optimizer, keep=main)
        name = checkpoint_name(state.step)
        if state.step == state.validated_step and self.config.average_last > 1 and name not in state.to_average:
            state.to_average = [*state.to_average, name][-self.config.average_last :]
        state.scaler = {} if self.accelerator.scaler is None else self.accelerator.scaler.state_dict()
        state.peak_memory = max(state.peak_memory, peak_memory(self.accelerator.device))
        state.cpu_seconds = self._cpu_seconds_before + time.process_time()

        def write() -> None:
            files = {MODEL_FILE: model_tensors, OPTIMIZER_FILE: optimizer_tensors}
            earlier = [other for other in self.store.names() if step_of(other) < state.step]
            facts = {"aliases": aliases, "optimizer_name": self.config.optimizer, "optimizer": others}
            self.store.save(name, files, {**state.dump(), **facts})
            self.store.point("last", name)
            if state.best_step == state.step:
                self.store.point("best", name, **{self.config.metric: state.best})
            # The one before stays as well, to fall back on should this one be damaged later.
            self.store.prune({name, *earlier[-1:], *state.to_average, str(self.store.pointed("best"))})

        on_main(write)

    def average(self, state: RunState) -> str | None:
        """Averages the last validated weights into `averaged`; None where there are not two of them."""
        names = state.to_average
        if len(names) < 2:
            return None

        def write() -> None:
            tensors, aliases = average([self.store.path / name for name in names])
            facts = {"step": state.step, "averaged": names, "aliases": aliases}
            self.store.save("averaged", {MODEL_FILE: tensors}, facts)

        on_main(write)
        return "averaged"

    @contextlib.contextmanager
    def borrowed(self, name: str) -> Iterator[None]:
        """The model with the weights of another checkpoint, for as long as the block lasts."""
        own = {key: tensor.clone() for key, tensor in self.model.state_dict().items()}
        load_model_weights(self.model, self.store.path / name)
        try:
            yield
        finally:
            with torch.no_grad():
                for key, tensor in self.model.state_dict().items():
                    tensor.copy_(own[key])


def peak_memory(device: torch.device) -> int:
    """Bytes: of the GPU where one is used, else of the process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
