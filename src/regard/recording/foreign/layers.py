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

_MODULE_CALL = nn.Module._call_impl.__code__


@dataclass(frozen=True, eq=False)
class Running:
    """A layer that has been called and has not returned; `kwargs` is the call's own dictionary, so it names the call."""

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
        room = frame.f_globals.get("__name__", "").split(".")[0]
        if name is None and room not in {"torch", "regard"}:
            name = frame.f_code.co_qualname.replace("<locals>.", "")
        if frame.f_code is inside:
            return name or frame.f_code.co_qualname.replace("<locals>.", "")
        frame = frame.f_back  # type: ignore[assignment]
    return None


def owner(paths: Mapping[nn.Module, str], path: str) -> nn.Module:
    """The layer at a path."""
    return next(module for module, known in paths.items() if known == path)
