"""`Ear`: what is heard of one foreign model in this thread, by address.

A call of attention belongs to the innermost layer that is running; further calls of the same layer within one call of
the model (as in ALBERT, whose layers share weights) are told apart by number, calls of the model after each other are
steps of a decoder.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.axes import Grid
from regard.core.errors import RecordingError
from regard.core.relations import DotRelation, Relation
from regard.recording.foreign import expected, places
from regard.recording.foreign.handles import Numbers
from regard.recording.foreign.interception import ears, intercepting
from regard.recording.foreign.layers import Running, calling_function, running
from regard.recording.foreign.steps import Steps
from regard.recording.foreign.windows import PADDING, cut_of, on_the_grid
from regard.recording.recording import Recording


class Ear:
    """Collects relations by address until it is asked for them."""

    def __init__(self, model: nn.Module | Callable[..., Any], pattern: str = "*") -> None:
        self.name = type(model).__name__ if isinstance(model, nn.Module) else getattr(model, "__name__", repr(model))
        self.model = model if isinstance(model, nn.Module) else nn.Module()
        self.function: CodeType | None = None if isinstance(model, nn.Module) else _code(model)
        self.pattern = pattern
        self.paths = expected.layers(self.model)
        self.ours = expected.tapped(self.model)
        everything = expected.expected(self.model)
        self.known = [path or "attention" for path in everything]
        self.wanted = {path: module for path, module in everything.items() if self._may_match(path or "attention")}
        self.keep: Callable[[Relation], Relation] = lambda relation: relation
        self.heard: dict[str, Steps] = {}
        self.grids: dict[str, Grid] = {}
        self.faults: dict[str, str] = {}
        self._picture: places.Picture | None = None
        self._extras = places.names_of_extras(self.model)
        self._numbers = Numbers()

    def hear(self, read: Callable[[], Relation], inside: str = "", placed: bool = False) -> None:
        """A call of attention under way; `read` makes its relation, if this is one that is wanted.

        One that is `placed` stands on the grid of its picture already, if it has one.
        """
        layers = running(self.paths)
        path = self._path(layers, inside)
        # In a backward pass, a checkpointed layer runs once more; that is not another call.
        if path is None or torch._C._current_graph_task_id() != -1:
            return
        number = self._numbers.count(path, layers)
        address = path if number == 1 else f"{path}#{number}"
        if not (self._matches(path) or self._matches(f"{path}#{number}")) or address in self.faults:
            return
        try:
            # What is computed for the recording is nobody's attention.
            with torch.no_grad(), torch._C.DisableTorchFunction():
                relation = _settled(read())
                relation, cut = (relation, cut_of(relation, layers)) if placed else on_the_grid(relation, layers)
                relation = self.keep(relation)
            if address in self.heard:
                self.heard[address].add(relation)
            else:
                self.heard[address] = Steps(relation)
        except RecordingError as error:
            self.faults[address] = str(error)
            return
        self._see(address, relation, None if cut is None else (cut.rows, cut.columns, (PADDING,) * cut.extras))

    def needed(self, has_taps: bool) -> bool:
        """Whether there may be anything to hear. Compiled models are refused: torch runs them where nobody listens."""
        compiled = [path or self.name for module, path in self.paths.items() if expected.is_compiled(module)]
        if has_taps and not self.wanted:
            return False
        if compiled:
            raise RecordingError(
                f"{', '.join(compiled)} of {self.name} is compiled, and compiled attention of other libraries "
                f"cannot be heard. Record the model itself (after `torch.compile`, that is `model._orig_mod`)."
            )
        own = [path for module, path in self.paths.items() if not expected.is_plain_torch(module)]
        return bool(self.wanted) or self.function is not None or any(self._may_match(path) for path in own)

    def check(self) -> None:
        """An error that names each layer that could not be read."""
        if self.faults:
            lines = "; ".join(f"{address}: {fault}" for address, fault in self.faults.items())
            raise RecordingError(f"{self.name} cannot be recorded truthfully. {lines}.")
        if not self.heard and not self.wanted:
            raise RecordingError(
                f"No attention of {self.name} was heard: inside the block, in this thread, it computed none that "
                f"Regard can hear, or it was not called."
            )

    def silent(self) -> list[str]:
        """Layers that should have spoken."""
        return expected.unheard(self.wanted, {address.split("#")[0] for address in self.heard})

    def fill(self, recording: Recording) -> None:
        """Puts what was heard into a recording, with roles, and axes where positions are places of a picture."""
        again = {address.split("#")[0] for address in self.heard if "#" in address}
        named = {address: f"{address}#1" if address in again else address for address in self.heard}
        joined = {named[address]: steps.joined() for address, steps in self.heard.items()}
        grids = {named[address]: grid for address, grid in self.grids.items()}
        recording.relations.update(joined)
        recording.roles.update(places.all_roles(joined, grids, list(self.paths.values())))
        for address, grid in grids.items():
            recording.axes[recording.roles[address][1]] = [grid] * joined[address].batch

    def _path(self, layers: list[Running], inside: str) -> str | None:
        if self.function is not None:
            return calling_function(self.function)
        if not layers or layers[-1].module in self.ours:
            return None
        path = ".".join(part for part in (layers[-1].path, inside) if part)
        return path or "attention"

    def see(self, pixels: Tensor, features: Tensor) -> None:
        """A convolution, which may say what grid a picture has become."""
        if running(self.paths):
            self._picture = places.seen(self._picture, pixels, features)

    def _see(self, address: str, relation: Relation, cut: tuple[int, int, tuple[str, ...]] | None) -> None:
        if self._picture is None or not places.may_be_picture(address):
            return
        if cut is not None:
            self.grids[address] = self._picture.grid(*cut)
        elif relation.num_queries == relation.num_keys:
            grid = self._picture.positions(relation.num_keys, self._extras)
            if grid is not None:
                self.grids[address] = grid

    def _matches(self, path: str) -> bool:
        return fnmatch.fnmatchcase(path, self.pattern)

    def _may_match(self, path: str) -> bool:
        """Whether some call of this layer matches: the pattern may name a number that is only known once it runs."""
        before, numbered, _ = self.pattern.rpartition("#")
        return self._matches(path) or (bool(numbered) and fnmatch.fnmatchcase(path, before))


@contextmanager
def listening_to_foreign(ear: Ear) -> Iterator[None]:
    """While open, `ear` hears this thread."""
    with ExitStack() as stack:
        token = ears.set((*ears.get(), ear))
        stack.callback(ears.reset, token)
        stack.enter_context(intercepting())
        yield


def _settled(relation: Relation) -> Relation:
    """Without tensors that somebody writes into, such as a cache of fixed size: these are copied."""
    if isinstance(relation, DotRelation):
        return replace(relation, queries=_own(relation.queries), keys=_own(relation.keys))
    return relation


def _own(tensor: Tensor) -> Tensor:
    return tensor.clone() if tensor.is_inference() or tensor._version > 0 else tensor


def _code(function: Callable[..., Any]) -> CodeType:
    code = getattr(function, "__code__", None)
    if code is None and isinstance(call := vars(type(function)).get("__call__"), FunctionType):
        code = call.__code__
    if code is None:
        raise RecordingError(f"{function!r} is neither a model nor a Python function, so its calls cannot be told.")
    return code
