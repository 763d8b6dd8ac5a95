"""Where attention leaves a model: a `Tap` has a stable address and costs nothing while nobody listens.

A tap is a module without parameters, so that its place in the module tree is its address. Listeners live in a
context variable: two threads, or two nested recordings, never see each other's relations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from torch import nn

from regard.core.relations import Relation


class Listener(Protocol):
    def hear(self, tap: Tap, relation: Relation) -> None: ...


_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("regard_listeners", default=())

# Steps in a module path that say how a layer is built, not which layer it is.
_SILENT_STEPS = {"tap", "mechanism"}


class Tap(nn.Module):
    """Says which axes a mechanism relates: `Tap(queries="target", keys="source")`."""

    def __init__(self, queries: str, keys: str) -> None:
        super().__init__()
        self.queries = queries
        self.keys = keys

    def extra_repr(self) -> str:
        return f"{self.queries} -> {self.keys}"

    @property
    def open(self) -> bool:
        """Whether anybody listens; ask before making a relation that is not at hand anyway."""
        return bool(_listeners.get())

    def emit(self, make: Callable[[], Relation]) -> None:
        """Hands the relation to whoever listens; `make` is not called when nobody does."""
        listeners = _listeners.get()
        if listeners:
            relation = make()
            for listener in listeners:
                listener.hear(self, relation)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """While the context is open, `listener` hears every tap that fires in this thread or task."""
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


def is_listening(listener: Listener) -> bool:
    """Whether `listener` hears taps in the current thread or task."""
    return any(known is listener for known in _listeners.get())


def taps(model: nn.Module) -> dict[str, Tap]:
    """All taps of a model by address, in the order of its modules: `decoder.2.cross`."""
    found: dict[str, Tap] = {}
    for path, module in model.named_modules():
        if isinstance(module, Tap):
            steps = [step for step in path.split(".") if step not in _SILENT_STEPS and step != "_orig_mod"]
            address = ".".join(steps) or "attention"
            assert address not in found, f"two taps of {type(model).__name__} would share the address {address!r}"
            found[address] = module
    return found
