"""`importance`: what is lost by muting each head, over a data set, in one call.

    table = regard.importance(model, batches, loss)
    table = regard.importance(regard.open_run("runs/transformer/..."))
    print(table)

A head that can be muted without a loss may still do something: another may do the same. A number says what is lost
without this head while all others are there.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from regard.core.errors import DataError, RecordingError
from regard.core.tap import taps as taps_of
from regard.core.task import Loss
from regard.recording.edit import edit
from regard.recording.edits import mute
from regard.recording.foreign import taps_by_address
from regard.recording.record import record

Measure = Callable[[nn.Module, Any], Loss | Tensor | float]
"""A batch's loss or metric; of a bare number it is the mean over batches that counts."""


class Measurable(Protocol):
    """A model with data of its own, such as a run."""

    model: nn.Module

    def batches(self, part: str = ..., examples: int | None = ...) -> Iterable[Any]: ...

    def loss(self, model: nn.Module, batch: Any) -> Loss: ...


@dataclass(frozen=True)
class HeadImportance:
    """One head, and what becomes of the loss without it."""

    address: str
    head: int
    loss: float
    change: float
    """Loss without the head less loss with it: positive where the head helps."""
    error: float | None
    """Standard error of the change, from how it differs between batches; None for a single batch."""


@dataclass(frozen=True)
class Importance:
    """A row for each head, in the order of the model."""

    loss: float
    """With all heads."""
    count: int
    """How many things (tokens, pictures, batches) the losses are means over."""
    heads: tuple[HeadImportance, ...]

    def sorted(self) -> list[HeadImportance]:
        """The head that is missed most first."""
        return sorted(self.heads, key=lambda row: -row.change)

    def to_json(self) -> dict[str, Any]:
        return {"loss": self.loss, "count": self.count, "heads": [vars(row) for row in self.heads]}

    def __str__(self) -> str:
        width = max(len(row.address) for row in self.heads)
        lines = [f"loss {self.loss:.4f} with all heads, over {self.count:,}", f"{'without':<{width}}  head    change"]
        for row in self.sorted():
            margin = "" if row.error is None else f" ± {row.error:.4f}"
            lines.append(f"{row.address:<{width}}  {row.head:>4}  {row.change:+.4f}{margin}")
        return "\n".join(lines)


def importance(
    subject: nn.Module | Measurable,
    batches: Iterable[Any] | None = None,
    loss: Measure | None = None,
    *,
    taps: str = "*",
    progress: Callable[[int], None] | None = None,
) -> Importance:
    """Mutes each head of the taps that match, one at a time; `progress` is told how many batches are done.

    A model comes with `batches` and a `loss(model, batch)`, which may be any metric; a run has its own.
    """
    if isinstance(subject, nn.Module):
        model = subject
        assert batches is not None, "a model has no batches of its own: importance(model, batches, loss)"
        assert loss is not None, "a model has no loss of its own: importance(model, batches, loss)"
        measure: Measure = loss
    else:
        model, measure = subject.model, loss or subject.loss
        batches = subject.batches() if batches is None else batches
    there = {**taps_of(model), **taps_by_address(model)}
    addresses = [address for address in there if fnmatch.fnmatchcase(address, taps)]
    if not addresses:
        known = ", ".join(there) or "none: it has no attention that Regard knows"
        raise RecordingError(f"No tap of {type(model).__name__} matches {taps!r}. Its taps: {known}.")
    training = [part for part in model.modules() if part.training]
    try:
        model.eval()
        with torch.no_grad():
            return _measured(model, batches, measure, addresses, taps, progress)
    finally:
        for part in training:
            part.training = True


def _measured(
    model: nn.Module,
    batches: Iterable[Any],
    measure: Measure,
    addresses: Sequence[str],
    pattern: str,
    progress: Callable[[int], None] | None,
) -> Importance:
    base: list[tuple[float, int]] = []
    without: dict[tuple[str, int], list[float]] = {}
    for batch in batches:
        if not base:
            with record(model, pattern) as recording:
                base.append(_sum(measure(model, batch)))
            without = {(address, head): [] for address in addresses for head in range(recording[address].shape[1])}
        else:
            base.append(_sum(measure(model, batch)))
        for (address, head), sums in without.items():
            with edit(model, {address: mute(head)}):
                sums.append(_sum(measure(model, batch))[0])
        if progress is not None:
            progress(len(base))
    if not base:
        raise DataError("There is nothing to measure the heads on: not a single batch.")
    return _table(base, without)


def _table(base: Sequence[tuple[float, int]], without: dict[tuple[str, int], list[float]]) -> Importance:
    count = sum(number for _, number in base)
    whole = sum(total for total, _ in base) / count
    rows = []
    for (address, head), sums in without.items():
        mean = sum(sums) / count
        change = mean - whole
        spread = [total - own - change * number for total, (own, number) in zip(sums, base, strict=True)]
        error = None
        if len(base) > 1:
            error = math.sqrt(sum(value**2 for value in spread) * len(base) / (len(base) - 1)) / count
        rows.append(HeadImportance(address, head, mean, change, error))
    return Importance(whole, count, tuple(rows))


def _sum(measured: Loss | Tensor | float) -> tuple[float, int]:
    if isinstance(measured, Loss):
        return float(measured.total), measured.count
    return float(measured), 1
