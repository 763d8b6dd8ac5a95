"""Taps for layers that have none, so that edits reach other people's models as they reach ours.

A layer has the same tap as long as it lives, whoever asks; so edits of several contexts meet at it. A layer that runs
several times in one call of the model has one tap for all of these calls and one for each.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from regard.core.tap import Tap
from regard.recording.foreign import expected, places
from regard.recording.foreign.layers import Running, running

_lock = threading.Lock()
_taps: WeakKeyDictionary[nn.Module, dict[int, Tap]] = WeakKeyDictionary()

EVERY = 0
"""The number of the tap for all calls of a layer."""


class Numbers:
    """Tells calls of one layer within one call of the model from calls of the model after each other."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self._outermost: Any = None

    def count(self, path: str, layers: list[Running]) -> int:
        """Of this call, from 1; the outermost call is told by its `kwargs`, held here so that none is like it."""
        outermost = layers[0].kwargs if layers else self
        if outermost is not self._outermost:
            self._outermost = outermost
            self._calls.clear()
        self._calls[path] = self._calls.get(path, 0) + 1
        return self._calls[path]


class Hand:
    """Finds the taps of the layer that is running, for the edits of one model."""

    def __init__(self, model: nn.Module) -> None:
        self.paths = expected.layers(model)
        self.ours = expected.tapped(model)
        self._two_sided = places.two_sided(self.paths.values())
        self._numbers = Numbers()

    def taps(self) -> list[Tap]:
        """Of the call under way; none where it belongs to no layer of this model, or to one of ours."""
        layers = running(self.paths)
        if not layers or layers[-1].module in self.ours:
            return []
        number = self._numbers.count(layers[-1].path, layers)
        return [self.tap(layers[-1].module, layers[-1].path, which) for which in (EVERY, number)]

    def tap(self, module: nn.Module, path: str, number: int) -> Tap:
        with _lock:
            of_layer = _taps.setdefault(module, {})
            if number not in of_layer:
                of_layer[number] = Tap(*places.roles(path, 1, 1, self._two_sided))
            return of_layer[number]


def taps_by_address(model: nn.Module, pattern: str = "") -> Mapping[str, Tap]:
    """The taps of all layers that are attention and not ours; a pattern ending in `#3` asks for their third calls."""
    hand = Hand(model)
    number = pattern.rpartition("#")[2]
    which = int(number) if "#" in pattern and number.isdecimal() else EVERY
    ending = f"#{which}" if which else ""
    layers = expected.expected(model)
    for module, path in hand.paths.items():
        # A layer that nothing gives away as attention has to be named in full.
        asked = (path or "attention") + ending == pattern and module not in hand.ours
        if asked and not expected.is_plain_torch(module):
            layers[path] = module
    return {(path or "attention") + ending: hand.tap(module, path, which) for path, module in layers.items()}


@contextmanager
def reaching_foreign(model: nn.Module) -> Iterator[None]:
    """While open, edits at these taps take effect in this thread."""
    from regard.recording.foreign.interception import hands, intercepting

    with ExitStack() as stack:
        token = hands.set((*hands.get(), Hand(model)))
        stack.callback(hands.reset, token)
        stack.enter_context(intercepting())
        yield
