"""From planned batches to tensors on the device: who reads what, and reading ahead.

A step takes `accumulate` planned batches. Each of them is dealt out by rows over the processes, so the number
of processes changes neither the plan nor what a step adds up to.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.task import Batches


@dataclasses.dataclass(frozen=True)
class Share:
    """This process's part of one planned batch."""

    batch: Any
    things: int
    """What the loss of this part is a sum over."""
    weight: float
    """0 where the batch has fewer rows than there are processes and this one only keeps the others company."""
    planned: np.ndarray
    """The examples of the whole batch, all processes together."""
    planned_things: int


def share_of(planned: np.ndarray, rank: int, size: int) -> tuple[np.ndarray, float]:
    """The rows of a batch that process `rank` of `size` reads, and how much they weigh.

    A process without a row of its own computes the first one with weight zero: with sharded parameters all
    processes have to walk through the same layers in the same order, so it cannot sit out.
    """
    own = planned[rank::size]
    return (own, 1.0) if len(own) else (planned[:1], 0.0)


def feed(
    batches: Batches,
    plan: Sequence[np.ndarray],
    *,
    start: int,
    accumulate: int,
    rank: int = 0,
    size: int = 1,
    device: torch.device,
) -> Generator[list[Share], None, None]:
    """The shares of one step after another, from planned batch `start` on.

    One thread reads and collates two batches ahead. `collate` must therefore be a pure function of the indices:
    drawing from the global generators there would disturb those of the step that is being computed.
    """

    def read(planned: np.ndarray) -> Share:
        indices, weight = share_of(planned, rank, size)
        return Share(batches.collate(indices), batches.count(indices), weight, planned, batches.count(planned))

    waiting: deque[Future[Share]] = deque()
    coming = iter(range(start, len(plan)))
    with contextlib.ExitStack() as stack:
        reader = ThreadPoolExecutor(1, thread_name_prefix="regard-collate")
        stack.callback(reader.shutdown, cancel_futures=True)
        for first in range(start, len(plan), accumulate):
            step = []
            for _ in range(min(accumulate, len(plan) - first)):
                while len(waiting) < 3 and (number := next(coming, None)) is not None:
                    waiting.append(reader.submit(read, plan[number]))
                step.append(waiting.popleft().result())
            yield [dataclasses.replace(share, batch=to_device(share.batch, device)) for share in step]


def to_device(batch: Any, device: torch.device) -> Any:
    """A batch with all its tensors on `device`; containers keep their kind."""
    if device.type == "cpu":
        return batch
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        moved = {
            field.name: to_device(getattr(batch, field.name), device)
            for field in dataclasses.fields(batch)
            if field.init
        }
        return dataclasses.replace(batch, **moved)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(to_device(value, device) for value in batch)
    return batch
