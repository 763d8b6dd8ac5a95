"""Compiled models while they are edited: run as they are written, so that no graph is made for each edit.

Otherwise a first edit would cost as much as compiling the model once more, and leave graphs with holes behind that go
on to serve calls without any edit. What stays is that torch has one such switch for all threads: a compiled model that
runs in another thread at the same time gives the numbers of its uncompiled self.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn


class _Switch:
    """On from the first who asks to the last, in whichever order they leave."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.stance = ExitStack()

    @contextmanager
    def on(self) -> Iterator[None]:
        with self.lock:
            self.users += 1
            if self.users == 1:
                self.stance.enter_context(torch.compiler.set_stance("force_eager"))
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if self.users == 0:
                    self.stance.close()


_switch = _Switch()


@contextmanager
def uncompiled(model: nn.Module) -> Iterator[None]:
    """While the context is open, a model that is compiled, or has compiled parts, runs as it is written."""
    if is_compiled(model):
        with _switch.on():
            yield
    else:
        yield


def is_compiled(model: nn.Module) -> bool:
    return any(hasattr(part, "_orig_mod") or part._compiled_call_impl is not None for part in model.modules())
