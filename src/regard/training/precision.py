"""Which number format the matrix products of a training run use.

Weights, gradients and optimizer state are float32 throughout; `bfloat16` and `float16` mean torch's autocast.
"""

from __future__ import annotations

import contextlib
from typing import Literal

import torch

from regard.core.errors import ConfigError

Precision = Literal["float32", "bfloat16", "float16"]

# Instruction sets that multiply bfloat16 matrices in hardware, under the names torch reports them.
NATIVE_BFLOAT16 = ("avx512_bf16", "amx_bf16", "avx10_2", "bf16", "sve_bf16")


def resolve_precision(wanted: Precision | Literal["auto"], device: torch.device) -> Precision:
    """The precision to train in; `auto` becomes bfloat16 where `device` has it natively, else float32."""
    if wanted == "auto":
        return "bfloat16" if has_native_bfloat16(device) else "float32"
    if wanted == "float16" and device.type == "cpu":
        raise ConfigError(
            "precision float16 needs a GPU, because it relies on scaled losses that torch implements only there; "
            "on the processor choose bfloat16, float32 or auto."
        )
    return wanted


def autocast(precision: Precision, device: torch.device) -> contextlib.AbstractContextManager[None]:
    """The context in which a model computes in this precision."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=getattr(torch, precision))


def has_native_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 is a speed-up on this device and not an emulation."""
    if device.type == "cpu":
        capabilities = torch.cpu.get_capabilities()
        return any(capabilities.get(name, False) for name in NATIVE_BFLOAT16)
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return False
