"""Which layer of a model is running, read from the calls that are under way in this thread.

No hook is put on any module: torch leaves its fast path, and so computes other numbers, as soon as there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from torch import nn

# Libraries that stand between an attention call and whoever made it; the last one checks shapes in our tests.
_NOT_THE_CALLER = {"torch", "regard", "jaxtyping"}
_MODULE_CALL = nn.Module._call_impl.__code__


@dataclass(frozen=True, eq=False)
class Running:
    """A layer that has been called and has not returned; `kwargs`, the call's own dictionary, tells calls apart."""

    path: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def running(paths: Mapping[nn.Module, str]) -> list[Running]:
    """The layers among `paths` that are running now, outermost first."""
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _MODULE_CALL:
            values = frame.f_locals
            module = values["self"]
            if module in paths:
                found.append(Running(paths[module], module, values["args"], values["kwargs"]))
        frame = frame.f_back  # type: ignore[assignment]
    return found[::-1]


def calling_function(inside: CodeType) -> str | None:
    """The name of the innermost function that is neither torch's nor ours; None where `inside` is not running."""
    name = None
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "__torch_function__":
            # What stands above is the listening itself.
            name = None
        room = frame.f_globals.get("__name__", "").split(".")[0]
        if name is None and room not in _NOT_THE_CALLER and frame.f_code.co_name != "__torch_function__":
            name = frame.f_code.co_qualname.replace("<locals>.", "")
        if frame.f_code is inside:
            return name or frame.f_code.co_qualname.replace("<locals>.", "")
        frame = frame.f_back  # type: ignore[assignment]
    return None
