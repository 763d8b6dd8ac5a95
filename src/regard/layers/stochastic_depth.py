"""Stochastic depth (Huang et al. 2016): in training a residual branch is left out for some examples altogether."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor


def drop_branch(branch: Float[Tensor, "batch *rest"], rate: float, training: bool) -> Float[Tensor, "batch *rest"]:
    """Zero for an example with probability `rate`, else scaled up such that the mean stays."""
    if not training or rate <= 0.0:
        return branch
    kept = branch.new_empty(len(branch), *(1,) * (branch.dim() - 1)).bernoulli_(1.0 - rate)
    return branch * kept / max(1.0 - rate, 1e-12)


def depth_rates(rate: float, num_blocks: int) -> list[float]:
    """From zero in the first block up to `rate` in the last, in even steps."""
    return [rate * block / max(num_blocks - 1, 1) for block in range(num_blocks)]
