"""Cross entropy over a large vocabulary, the dearest part of a small translator.

    loss = sum_n [ lse(x_n W) - (1 - s) x_n . w_t(n) - s mean_v(x_n . w_v) ],   s = label smoothing

The gradient of the logits is softmax - (1 - s) onehot - s / V. Its last two parts have rank one or one entry a
row, so they are applied to inputs and weights directly and only the exponentials are ever made as a matrix, once, in
the dtype of the products. (`torch.nn.functional.linear_cross_entropy` has no fused path with label smoothing.)
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.linear import linear


def readout_cross_entropy(
    features: Float[Tensor, "tokens width"],
    readout: nn.Linear,
    targets: Int[Tensor, "tokens"],
    label_smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """The summed loss of predicting `targets` through `readout`; sums are in float32 at least."""
    device = features.device.type
    autocast = torch.is_autocast_enabled(device)
    dtype = torch.get_autocast_dtype(device) if autocast else features.dtype
    weight, bias = readout.weight, readout.bias
    if dtype == torch.float16:  # its range does not hold sums over a vocabulary
        logits = F.linear(features, weight, bias).float()
        return F.cross_entropy(logits, targets, reduction="sum", label_smoothing=label_smoothing)
    if bias is not None:  # one more input that is always one
        features = torch.cat([features, features.new_ones(len(features), 1)], dim=1)
        weight = torch.cat([weight, bias[:, None]], dim=1)
    with torch.autocast(device, enabled=False):
        return _FusedCrossEntropy.apply(features, weight, targets, label_smoothing, dtype)


class _FusedCrossEntropy(torch.autograd.Function):
    """Loss and both gradients in one go, so that the exponentials can be forgotten at once."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, targets: Tensor, smoothing: float, dtype: torch.dtype
    ) -> Tensor:
        inputs, matrix = features.to(dtype), weight.to(dtype)
        wide, vocabulary = torch.promote_types(dtype, torch.float32), len(weight)
        exact = inputs.to(wide)
        of_targets = matrix[targets].to(wide)
        mean_weight = matrix.to(wide).mean(dim=0)
        logits = linear(inputs, matrix)
        largest = logits.amax(dim=1, keepdim=True)
        exponentials = logits.sub_(largest).exp_()
        sums = (exponentials @ exponentials.new_ones(vocabulary, 1)).to(wide)
        log_sums = largest.to(wide) + sums.log()
        target_scores = (exact * of_targets).sum(dim=1)
        loss = log_sums.sum() - (1 - smoothing) * target_scores.sum() - smoothing * (exact @ mean_weight).sum()
        if features.requires_grad or weight.requires_grad:
            to_features = linear(exponentials, matrix.t()).to(wide).div_(sums)
            to_features.sub_(mean_weight, alpha=smoothing).sub_(of_targets, alpha=1 - smoothing)
            to_weight = linear(exponentials.t(), (exact / sums).to(dtype).t()).to(wide)
            to_weight.sub_(exact.sum(dim=0), alpha=smoothing / vocabulary)
            to_weight.index_add_(0, targets, exact, alpha=smoothing - 1)
            ctx.save_for_backward(to_features.to(features.dtype), to_weight.to(weight.dtype))
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        to_features, to_weight = ctx.saved_tensors
        return to_features * gradient.to(to_features.dtype), to_weight * gradient, None, None, None
