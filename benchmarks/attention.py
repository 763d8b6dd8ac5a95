"""Attention alone beside torch's `scaled_dot_product_attention` and beside product, softmax, product ("eager").

    python benchmarks/attention.py [--minutes 10] [--tokens 197 1024 4096 16384] [--sizes 256] [--out FILE]

12 heads of 64, one example; forward, and forward with backward; without a mask, causal, and with a bias a pair that all
heads share; float32 and bfloat16. All sides run in turn in this process; a ratio is the median of the rounds. The
outcome of each is compared with that in float64 first (up to 1,024 tokens). Eager is left out where its weights alone
would take more than `EAGER_LIMIT` bytes. `--sizes` measures blocks of other sizes instead, which is where the numbers
in `regard.attention.kernels` come from.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import torch
import torch.nn.functional as F
from in_turn import in_turn
from torch import Tensor

from regard.attention import attend, kernels
from regard.core.files import write_json
from regard.core.masks import Allow, allow_causal
from regard.recipes.machine import describe_machine

HEADS, WIDTH = 12, 64
EAGER_LIMIT = 1 << 31
AIM = 2.5
CLOSENESS = {torch.float32: 1e-4, torch.bfloat16: 0.02}

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def sides(kind: str, tokens: int, bias: Tensor | None, dtype: torch.dtype) -> dict[str, Attention]:
    """The same attention, three times."""
    allow = allow_causal() if kind == "causal" else Allow()
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1) if kind == "causal" else None

    def eager(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        scores = queries @ keys.transpose(-1, -2) * WIDTH**-0.5
        if bias is not None:
            scores = scores + bias
        return (scores if hidden is None else scores.masked_fill(hidden, -torch.inf)).softmax(dim=-1) @ values

    found: dict[str, Attention] = {
        "ours": lambda queries, keys, values: attend(queries, keys, values, allow=allow, bias=bias),
        "sdpa": lambda queries, keys, values: F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=bias, is_causal=kind == "causal"
        ),
    }
    if HEADS * tokens**2 * dtype.itemsize <= EAGER_LIMIT:
        found["eager"] = eager
    return found


def runs(found: dict[str, Attention], tensors: list[Tensor], backward: bool) -> dict[str, Callable[[], int]]:
    """Each side as a call that says how many tokens it has been through."""
    tokens = tensors[0].shape[2]

    def run(attention: Attention) -> int:
        with torch.set_grad_enabled(backward):
            context = attention(*tensors)
            if backward:
                torch.autograd.grad(context, tensors, torch.ones_like(context))
        return tokens

    return {name: lambda attention=attention: run(attention) for name, attention in found.items()}  # type: ignore[misc]


def check(found: dict[str, Attention], kind: str, tensors: list[Tensor], bias: Tensor | None) -> dict[str, float]:
    """How far each side is from float64, as a share of the largest number."""
    exact = [tensor.detach().double() for tensor in tensors]
    wanted = F.scaled_dot_product_attention(
        *exact, attn_mask=None if bias is None else bias.double(), is_causal=kind == "causal"
    )
    distances = {}
    with torch.no_grad():
        for name, attention in found.items():
            distance = (attention(*tensors).double() - wanted).abs().max() / wanted.abs().max()
            assert distance <= CLOSENESS[tensors[0].dtype], f"{name} is {distance:.1e} away"
            distances[name] = float(f"{distance:.1e}")
    return distances


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="time for all measurements together")
    parser.add_argument("--tokens", type=int, nargs="+", default=[197, 1024, 4096, 16384])
    parser.add_argument("--sizes", type=int, nargs="+", default=[kernels.BLOCK_ROWS], help="rows of a block to try")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/attention.json"))
    arguments = parser.parse_args()
    cases = list(
        product(arguments.sizes, arguments.tokens, (torch.float32, torch.bfloat16), ("plain", "causal", "bias"))
    )
    measured = []
    for size, tokens, dtype, kind in cases:
        kernels.BLOCK_ROWS = size
        torch.manual_seed(0)
        tensors = [torch.randn(1, HEADS, tokens, WIDTH).to(dtype).requires_grad_() for _ in range(3)]
        bias = torch.randn(1, 1, tokens, tokens).to(dtype) if kind == "bias" else None
        found = sides(kind, tokens, bias, dtype)
        distances = check(found, kind, tensors, bias) if tokens <= 1024 else None
        for backward in (False, True):
            result = in_turn(runs(found, tensors, backward), arguments.minutes * 60 / (2 * len(cases)))
            case = {"tokens": tokens, "precision": str(dtype)[6:], "kind": kind, "backward": backward, "rows": size}
            measured.append({**case, "distance": distances, **result})
            print(json.dumps(measured[-1]), flush=True)
    write_json(
        arguments.out,
        {
            "command": "python benchmarks/attention.py",
            "date": time.strftime("%Y-%m-%d"),
            "machine": describe_machine(),
            "aim_in_bfloat16_from_1024_tokens": AIM,
            "peak_memory_of_all": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "measured": measured,
        },
    )
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
