"""Which layers of a model should be heard when it runs, so that one that is not can be named.

They are found by what their classes say: a name with "attention" or "attn" and methods that speak of a softmax, a
product or another attention function, the innermost of such a nest; or methods that call a function heard here.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from torch import nn

from regard.core.tap import Tap

_HEARD = {"scaled_dot_product_attention", "ALL_ATTENTION_FUNCTIONS", "multi_head_attention_forward"}
_NAMES = ("attention", "attn")
_SPEAKS_OF = ("attention", "softmax", "matmul", "bmm", "einsum", "@")


def layers(model: nn.Module) -> dict[nn.Module, str]:
    """All modules by path; that of the model itself is empty."""
    return {module: path for path, module in model.named_modules()}


def expected(model: nn.Module) -> dict[str, nn.Module]:
    """The layers that are attention but have no tap of ours, in the order of the modules."""
    ours = tapped(model)
    others = {path: module for path, module in model.named_modules() if module not in ours}
    alike = {path for path, module in others.items() if _looks_like(module)}
    around = {path[:end] for path in alike for end, letter in enumerate(path) if letter == "."}
    around |= {""} if alike - {""} else set()
    return {
        path: module
        for path, module in others.items()
        if (path in alike and path not in around)
        or (not isinstance(module, nn.MultiheadAttention) and _HEARD & _words(type(module)))  # type: ignore[arg-type]
    }


def tapped(model: nn.Module) -> set[nn.Module]:
    """Modules of ours: what has a tap of its own or inside, with all that is inside the former."""
    ours: set[nn.Module] = set()
    if not any(isinstance(module, Tap) for module in model.modules()):
        return ours
    for module in model.modules():
        if any(isinstance(child, Tap) for child in module.children()):
            ours.update(module.modules())
        elif any(isinstance(child, Tap) for child in module.modules()):
            ours.add(module)
    return ours


def is_compiled(module: nn.Module) -> bool:
    """By `torch.compile`, as a module around it or in place."""
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def is_plain_torch(module: nn.Module) -> bool:
    return type(module).__module__.startswith("torch.nn.")


def unheard(wanted: Mapping[str, nn.Module], heard: set[str]) -> list[str]:
    """The layers of which neither they nor a part of them was heard."""
    spoken = {path: any(one == (path or "attention") or one.startswith(f"{path}.") for one in heard) for path in wanted}
    return [path or "attention" for path, spoke in spoken.items() if not spoke]


def _looks_like(module: nn.Module) -> bool:
    if isinstance(module, nn.MultiheadAttention):
        return True
    name = type(module).__name__.lower()
    named = any(part in name for part in _NAMES)
    return named and any(part in word.lower() for word in _words(type(module)) for part in _SPEAKS_OF)  # type: ignore[arg-type]


@functools.lru_cache(maxsize=4096)
def _words(kind: Any) -> frozenset[str]:
    """Names that the `forward` of a module uses, and those of the methods of its own that it calls."""
    words, ahead = set[str](), ["forward"]
    while ahead:
        method = getattr(kind, ahead.pop(), None)
        if isinstance(method, FunctionType):
            new = set(method.__code__.co_names) - words
            words |= new
            ahead += new
            if any(step.opname == "BINARY_OP" and step.argrepr == "@" for step in dis.get_instructions(method)):
                words.add("@")
    return frozenset(words)
