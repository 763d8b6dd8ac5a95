"""Other people's masks, additive or boolean, as the smallest `Allow` and bias that say the same.

In an additive mask what is far below zero hides a key; its smaller numbers are a bias. A row that hides every key by a
finite number is uniform in their model, not zero as in ours: such a mask is kept as the bias that it is.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.core.bias import OffsetBias
from regard.core.masks import Allow

# No learned bias comes near it, and what libraries add to hide a key lies below it: -10000, the lowest number, -inf.
HIDES = -9000.0

Bias = OffsetBias | Float[Tensor, "#batch #heads queries keys"]


def read_mask(mask: Tensor | None, num_queries: int, num_keys: int) -> tuple[Allow, Bias | None]:
    """Of a mask that broadcasts to (batch, heads, queries, keys); a boolean one says True where a key may be seen."""
    if mask is None:
        return Allow(), None
    mask = mask.detach()[(None,) * (4 - mask.dim())]
    mask = mask.expand(*mask.shape[:2], -1, num_keys)
    if mask.dtype == torch.bool:
        return smallest_allow(mask, num_queries), None
    hidden = mask < HIDES
    hides_all = hidden.all(dim=-1, keepdim=True)
    if (hides_all & mask.isfinite()).any():
        return Allow(), mask.expand(-1, -1, num_queries, -1)
    bias = mask.masked_fill(hidden, 0.0)
    return smallest_allow(~hidden, num_queries), smallest_bias(bias, num_queries) if bias.any() else None


def smallest_allow(allowed: Bool[Tensor, "batch heads rows keys"], num_queries: int) -> Allow:
    """All, some keys, causal, a window, or the pairs where it is none of these."""
    if allowed.all():
        return Allow()
    if (allowed == allowed[:, :1]).all():
        if (allowed == allowed[:, :, :1]).all():
            return Allow(keys=allowed[:, 0, 0])
        seen = allowed[:, 0].any(dim=1)
        keys = None if seen.all() else seen
        rows = torch.arange(num_queries, device=allowed.device)[:, None] + (allowed.shape[-1] - num_queries)
        distance = rows - torch.arange(allowed.shape[-1], device=allowed.device)
        reach = int(distance.abs().expand(allowed[:, 0].shape)[allowed[:, 0]].max())
        for causal, window in ((True, None), (False, reach), (True, reach)):
            simple = Allow(keys, causal, window)
            block = simple.block(0, num_queries, num_queries, allowed.shape[-1], allowed.device)
            assert block is not None, "it is causal or has a window"
            if (block == allowed[:, :1]).all():
                return simple
        allowed = allowed[:, :1]
    return Allow(pairs=allowed)


def smallest_bias(bias: Float[Tensor, "batch heads rows keys"], num_queries: int) -> Bias:
    """One number a distance, where it depends on nothing else (T5, ALiBi); otherwise one a pair."""
    bias = bias.detach().expand(-1, -1, num_queries, -1)
    if bias.shape[0] == 1 or bias.stride(0) == 0:
        offsets = OffsetBias(torch.cat([bias[0, :, :, 0].flip(-1), bias[0, :, 0, 1:]], dim=-1).float())
        if (offsets.block(0, num_queries, num_queries, bias.shape[-1]) == bias[0]).all():
            return offsets
    return bias


def sum_of(one: Bias | None, other: Bias | None, num_queries: int, num_keys: int) -> Bias | None:
    """Two biases as one."""
    if one is None or other is None:
        return other if one is None else one
    parts = [
        part.block(0, num_queries, num_queries, num_keys)[None] if isinstance(part, OffsetBias) else part
        for part in (one, other)
    ]
    return parts[0] + parts[1]
