"""Learning rates over time: pure functions from a step to a factor between 0 and 1.

`step` is the number of updates already made. All of them rise linearly over `warmup` updates, reach 1 with the
last of these, and then
    inverse_root  falls as 1 / sqrt(step)  (Vaswani et al. 2017, eq. 3, with the peak scaled to 1)
    cosine        falls along half a cosine to 0 at `total`  (Loshchilov and Hutter 2017, no restarts)
    linear        falls in a straight line to 0 at `total`
    constant      stays
"""

from __future__ import annotations

import math
from collections.abc import Callable

from regard.core.errors import ConfigError
from regard.core.registry import Registry

Schedule = Callable[[int, int, int | None], float]
"""(step, warmup, total) -> factor; `total` is None where the length of the run is not known beforehand."""

schedules: Registry[Schedule] = Registry("learning-rate schedule", hint="Option: training.schedule.")


@schedules.register("inverse_root")
def inverse_root(step: int, warmup: int, total: int | None) -> float:
    warmup = max(warmup, 1)
    return min((step + 1) / warmup, math.sqrt(warmup / (step + 1)))


@schedules.register("cosine")
def cosine(step: int, warmup: int, total: int | None) -> float:
    if step < warmup:
        return (step + 1) / warmup
    return (1 + math.cos(math.pi * _fraction_done("cosine", step, warmup, total))) / 2


@schedules.register("linear")
def linear(step: int, warmup: int, total: int | None) -> float:
    if step < warmup:
        return (step + 1) / warmup
    return 1 - _fraction_done("linear", step, warmup, total)


@schedules.register("constant")
def constant(step: int, warmup: int, total: int | None) -> float:
    return min((step + 1) / max(warmup, 1), 1.0)


def _fraction_done(name: str, step: int, warmup: int, total: int | None) -> float:
    """How much of the time after warming up has gone, at most 1."""
    if total is None:
        raise ConfigError(
            f"The {name} schedule has to know where it ends: give max_steps or max_epochs, "
            "or choose inverse_root or constant."
        )
    return min((step - warmup) / max(total - warmup, 1), 1.0)
