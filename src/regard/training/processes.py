"""Talking between the processes of one run; with a single process all of it costs nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist

from regard.core.errors import ConfigError

if TYPE_CHECKING:
    from accelerate import PartialState

T = TypeVar("T")


def connect() -> PartialState:
    """Joins the processes that a launcher started, if any; the first thing to do, and harmless to repeat.

    Where there is no GPU accelerate has to be told that the processor is meant, else it leaves every process alone.
    """
    from accelerate import PartialState
    from accelerate.utils import parse_flag_from_env

    state = PartialState(cpu=parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.accelerator.is_available())
    # `accelerate launch --num_processes 2` without a GPU starts a single process and says nothing. What betrays it is
    # the address of a rendezvous without a rank. A run that only looks as if it used them all is worse than an error.
    environment = os.environ
    if "ACCELERATE_MIXED_PRECISION" in environment and "MASTER_ADDR" in environment and "RANK" not in environment:
        raise ConfigError(
            "accelerate was asked for several processes but started only one, which it does where it finds no GPU. "
            "For several processes on the processor add --multi_gpu: `accelerate launch --multi_gpu --num_processes N "
            "...`. (If one is what you want, unset MASTER_ADDR.)"
        )
    return state


def on_main(action: Callable[[], T]) -> T:
    """Runs `action` in the main process and gives its result, or its exception, to all of them."""
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return action()
    outcome: list[Any] = [None, None]
    if dist.get_rank() == 0:
        try:
            outcome[0] = action()
        except Exception as error:
            outcome[1] = error
    dist.broadcast_object_list(outcome, src=0)
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]


class Circle:
    """All processes of the run, exchanging a few numbers on the host at each step.

    The exchange runs over gloo even where gradients travel over NCCL, so that it never waits for a GPU.
    """

    def __init__(self) -> None:
        several = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        self.size = dist.get_world_size() if several else 1
        self.rank = dist.get_rank() if several else 0
        # Everybody belongs to it, though torch's annotation allows for those who do not.
        self._group: Any = dist.new_group(backend="gloo") if several and dist.get_backend() != "gloo" else None

    def share(self, numbers: list[float]) -> list[list[float]]:
        """Everybody's numbers, in the order of the ranks."""
        if self.size == 1:
            return [numbers]
        everybody = [torch.empty(len(numbers), dtype=torch.float64) for _ in range(self.size)]
        dist.all_gather(everybody, torch.tensor(numbers, dtype=torch.float64), group=self._group)
        return [theirs.tolist() for theirs in everybody]
