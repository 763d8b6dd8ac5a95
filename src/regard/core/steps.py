"""Which rows of a whole map one call computes, where a decoder writes step by step.

A cached self-attention has one query a hypothesis in the rows of its batch, attention to a source has the hypotheses
of a sentence as queries beside each other, and finished sentences leave the batch: from the shapes alone nobody could
say which position of which example a row belongs to. So a decoder's state carries it, and says it in a context
variable while it attends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace

from jaxtyping import Int
from torch import Tensor

from regard.core.tap import Tap


@dataclass(frozen=True, eq=False)
class Step:
    """Every query of a call stands at `position`; `examples` are those still in the batch, None while all are."""

    position: int = 0
    examples: Int[Tensor, "batch"] | None = None

    def following(self) -> Step:
        return replace(self, position=self.position + 1)

    def keep(self, examples: Int[Tensor, "kept"]) -> Step:
        return replace(self, examples=examples if self.examples is None else self.examples[examples])


_step: ContextVar[Step | None] = ContextVar("regard_step", default=None)


def at_step(step: Step, tap: Tap) -> AbstractContextManager[None]:
    """While the context is open, the queries of `tap` are those of one step; said only where an edit may ask for it."""
    return _said(step) if tap.edited else nullcontext()


def current_step() -> Step | None:
    return _step.get()


@contextmanager
def _said(step: Step) -> Iterator[None]:
    token = _step.set(step)
    try:
        yield
    finally:
        _step.reset(token)
