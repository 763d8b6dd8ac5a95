"""What a classifier costs: its parameters, and the multiplications and additions of one picture.

Counted are matrix products, convolutions and attention, each multiplication and each addition as one, by torch's own
counter; what else there is (norms, sums, local attention's element-wise products) it does not see.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


@torch.inference_mode()
def cost(model: nn.Module, channels: int, height: int, width: int) -> dict[str, int]:
    """`parameters`, and `flops` of a picture of this size."""
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(1, channels, height, width, device=device))
    model.train(training)
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "flops": counter.get_total_flops(),
    }
