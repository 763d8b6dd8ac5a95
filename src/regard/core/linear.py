"""Linear maps in float32 at the speed that the processor has.

torch gives float32 products on a CPU to MKL, which on processors that are not Intel's uses half of an AVX-512 unit.
oneDNN, which torch carries as well, uses all of it: measured on an AMD EPYC with one thread, 255 against 112 GFLOP/s
for 1,024 rows of 256 numbers. It computes in plain float32 too; only the order of the additions differs.

Everything else (bfloat16, autocast, other devices, small products, compiled or transformed functions) is torch's own.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

# Below this many multiplications oneDNN's preparations take longer than the product: 10 microseconds.
MIN_MULTIPLICATIONS = 1 << 21

_PLAIN = (Tensor, nn.Parameter)
_AVAILABLE = (
    torch.backends.mkldnn.is_available()
    and torch.backends.cpu.get_cpu_capability() == "AVX512"
    and hasattr(torch.ops.mkldnn, "_linear_pointwise")
)


def linear(
    inputs: Float[Tensor, "*batch inputs"], weight: Float[Tensor, "outputs inputs"], bias: Tensor | None = None
) -> Float[Tensor, "*batch outputs"]:
    """inputs weight^T + bias, as `torch.nn.functional.linear`, with gradients of any order."""
    if not _suits_onednn(inputs, weight):
        return F.linear(inputs, weight, bias)
    tensors = (inputs, weight) if bias is None else (inputs, weight, bias)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return _Linear.apply(inputs, weight, bias)
    return _onednn(inputs, weight, bias)


class Linear(nn.Linear):
    """torch's linear layer, computed by `linear`."""

    def forward(self, input: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        return linear(input, self.weight, self.bias)


class _Linear(torch.autograd.Function):
    """Both gradients are linear maps again, of transposed matrices."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return _onednn(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        inputs, weight = ctx.saved_tensors
        for_inputs, for_weight, for_bias = ctx.needs_input_grad
        rows = gradient.flatten(0, -2)
        return (
            linear(gradient, weight.t()) if for_inputs else None,
            linear(rows.t(), inputs.flatten(0, -2).t()) if for_weight else None,
            rows.sum(dim=0) if for_bias else None,
        )


def _onednn(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")


def _suits_onednn(inputs: Tensor, weight: Tensor) -> bool:
    return bool(
        inputs.dtype == weight.dtype == torch.float32
        and _AVAILABLE
        and inputs.device.type == weight.device.type == "cpu"
        and inputs.numel() * weight.shape[0] >= MIN_MULTIPLICATIONS
        and inputs.dim() > 1
        and type(inputs) in _PLAIN  # not sharded, nor anything else that has ideas of its own
        and type(weight) in _PLAIN
        and torch.backends.mkldnn.enabled
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
    )
