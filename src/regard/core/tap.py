"""Where attention leaves a model, or is changed: a `Tap` has a stable address and costs nothing while it is not used.

A tap is a module without parameters, so that its place in the module tree is its address. Listeners and edits live in
context variables: two threads, or two nested recordings, never see each other's relations.

Who computes attention asks `tap.edited` first. If it is, the context is to come from `tap.change(relation)` and the
values (`core.context.context_of` does it for every form), and what is emitted is the changed relation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import torch
from torch import Tensor, nn

from regard.core.relations import Relation


class Listener(Protocol):
    """Hears relations. One that also has `witness(tap, relation, values, context)` is called by that instead.

    Values and context are laid out as the relation's keys and queries are, or as those inside its groups; they are the
    model's own tensors, with their graph, or None where a mechanism does not hand them over.
    """

    def hear(self, tap: Tap, relation: Relation) -> None: ...


class Editing(Protocol):
    """All edits that are open in a thread or task, the innermost last."""

    def concerns(self, tap: Tap) -> bool: ...

    def change(self, tap: Tap, relation: Relation, *, shown: bool) -> Relation:
        """`shown` is true where the relation is only looked at and no context is made of it."""


_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("regard_listeners", default=())
_editing: ContextVar[Editing | None] = ContextVar("regard_editing", default=None)

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

    @property
    def edited(self) -> bool:
        """Whether the relation here is to be changed before the context is made of it."""
        editing = _editing.get()
        return editing is not None and _concerns(editing, self)

    def change(self, relation: Relation) -> Relation:
        """The relation that the open edits make of this one; the same where there are none."""
        return _change(self, relation)

    def emit(self, make: Callable[[], Relation], values: Tensor | None = None, context: Tensor | None = None) -> None:
        """Hands the relation, as the open edits leave it, to whoever listens; `make` is not called when nobody does."""
        listeners = _listeners.get()
        if listeners:
            relation = make()
            if _editing.get() is not None:
                relation = _change(self, relation, shown=True)
            for listener in listeners:
                witness = getattr(listener, "witness", None)
                if witness is not None:
                    witness(self, relation, values, context)
                else:
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


@contextmanager
def editing(edits: Editing) -> Iterator[None]:
    """While the context is open, these edits, and no others, apply in this thread or task."""
    token = _editing.set(edits)
    try:
        yield
    finally:
        _editing.reset(token)


def open_editing() -> Editing | None:
    """What applies in the current thread or task, for who adds to it."""
    return _editing.get()


# A compiled model steps out of its graph here: so it is compiled once for all edits, not once for each.
@torch.compiler.disable
def _concerns(editing: Editing, tap: Tap) -> bool:
    return editing.concerns(tap)


@torch.compiler.disable
def _change(tap: Tap, relation: Relation, *, shown: bool = False) -> Relation:
    editing = _editing.get()
    return relation if editing is None else editing.change(tap, relation, shown=shown)


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
