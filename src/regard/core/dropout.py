"""Dropout that does not cost more than the layer before it.

torch draws one float a value, on a CPU four times as slow as it need be, which was a quarter of a small Transformer's
training step. Here 64 random bits decide four values: each survives when its 16 bits reach a threshold, so a rate is
met to within 1/65536, and the survivors are scaled by exactly what the threshold keeps.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

_LEVELS = 1 << 16


def dropout(inputs: Float[Tensor, "*shape"], rate: float, training: bool) -> Float[Tensor, "*shape"]:
    """Zero with probability `rate`, else scaled up such that the mean stays; the inputs themselves in evaluation."""
    if not training or rate <= 0.0:
        return inputs
    if inputs.device.type != "cpu":
        return F.dropout(inputs, rate, training)
    dropped = min(round(rate * _LEVELS), _LEVELS)
    if dropped == _LEVELS:
        return inputs * 0.0  # still a function of the inputs, whose gradient is zero
    size = inputs.numel()
    bits = torch.empty((size + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None)
    survives = bits.view(torch.int16)[:size].view(inputs.shape) >= dropped - _LEVELS // 2
    return inputs * survives.to(inputs.dtype).mul_(_LEVELS / (_LEVELS - dropped))
