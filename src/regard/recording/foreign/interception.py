"""Where attention calls of other people's models are met: told to whoever listens, changed by the edits that are open.

A mode of torch's own dispatch is handed every function that is called in its thread, and calls it with the same
arguments. One is open in a thread at a time, whoever opened it first; the registry of `transformers` hands its calls to
the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.core.errors import EditError, RecordingError
from regard.core.relations import Relation
from regard.core.tap import Tap
from regard.recording.foreign import scaled_dot, torch_modules, transformers_models
from regard.recording.foreign.calls import Attention, edited
from regard.recording.foreign.layers import Running, running
from regard.recording.foreign.plain_softmax import FOLLOWED, PRODUCTS, Weights, multiplied
from regard.recording.foreign.seams import replaced
from regard.recording.foreign.windows import on_the_grid

if TYPE_CHECKING:
    from regard.recording.foreign.ear import Ear
    from regard.recording.foreign.handles import Hand

ears: ContextVar[tuple[Ear, ...]] = ContextVar("regard_ears", default=())
hands: ContextVar[tuple[Hand, ...]] = ContextVar("regard_hands", default=())
_mode: ContextVar[Interception | None] = ContextVar("regard_interception", default=None)

_CALLS: dict[Callable[..., Any], Callable[..., Attention]] = {
    F.scaled_dot_product_attention: scaled_dot.call,
    **torch_modules.CALLS,
}
_CONVOLUTIONS = {torch.conv2d, F.conv2d}


class Interception(TorchFunctionMode):
    """Meets attention calls in one thread."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = 0
        """Above zero while an attention function runs whose inside is not to be met again."""
        self._weights = Weights()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.closed:
            return func(*args, **kwargs)
        make = _CALLS.get(func)
        if make is not None:
            return self.meet(make(lambda: func(*args, **kwargs), *args, **kwargs))
        if func in PRODUCTS:
            weights = self._weights.multiplied(func, args)
            if weights is not None:
                return self.meet(multiplied(func, args, kwargs, weights, _innermost_heads()))
        result = func(*args, **kwargs)
        if func in FOLLOWED:
            self._weights.follow(func, args, kwargs, result)
        elif func in _CONVOLUTIONS and isinstance(result, Tensor):
            for ear in ears.get():
                ear.see(args[0] if args else kwargs["input"], result)
        return result

    def meet(self, call: Attention) -> Any:
        """Runs the call, changed as the edits that are open say, and tells the relation to all who listen."""
        self._weights.forget()
        self.closed += 1
        try:
            result = call.run()
            running_taps = [(hand, tap) for hand in hands.get() for tap in hand.taps()]
            found = [(hand, tap) for hand, tap in running_taps if tap.edited]
            if not found:
                for ear in ears.get():
                    ear.hear(lambda: call.relation(result), inside=call.inside)
                return _witnessed(call, running_taps, result) if running_taps else result
            layers = running(found[0][0].paths)
            changed, result = _changed(call, [tap for _, tap in found], layers, result)
            for ear in ears.get():
                ear.hear(lambda: changed, inside=call.inside, placed=True)
            return result
        finally:
            self.closed -= 1


def _changed(call: Attention, taps: list[Tap], layers: list[Running], returned: Any) -> tuple[Relation, Any]:
    """The relation as edits leave it, and what the call returns then."""
    with torch._C.DisableTorchFunction():
        try:
            with torch.no_grad():
                original, _ = on_the_grid(call.relation(returned), layers)
            changed = original
            for tap in dict.fromkeys(taps):
                changed = tap.change(changed)
            return changed, edited(call, original, changed, returned)
        except (EditError, RecordingError) as error:
            raise EditError(f"{layers[-1].path or 'The attention'} cannot be edited: {error}") from error


def _witnessed(call: Attention, taps: list[tuple[Hand, Tap]], returned: Any) -> Any:
    """The same result, after whoever listens at taps has been given the tensors that it was made of and goes on in."""
    open_taps = {tap: hand for hand, tap in taps if tap.open}
    if not open_taps:
        return returned
    with torch._C.DisableTorchFunction():
        context = None if call.context is None else call.context(returned)
        for tap, hand in open_taps.items():
            with torch.no_grad():
                relation, _ = on_the_grid(call.relation(returned), running(hand.paths))
            values = None if context is None or call.values is None else call.values()
            tap.emit(lambda told=relation: told, values, context)  # type: ignore[misc]
        return returned if context is None or call.put is None else call.put(context, relation, returned)


def _innermost_heads() -> Any:
    """The layer that is running, which may say how many heads it has."""
    for paths in (*(ear.paths for ear in ears.get()), *(hand.paths for hand in hands.get())):
        layers = running(paths)
        if layers:
            return layers[-1].module
    return None


@contextmanager
def intercepting() -> Iterator[None]:
    """While open, attention calls of this thread are met; nothing more is opened where that is so already."""
    if _mode.get() is not None:
        yield
        return
    with ExitStack() as stack:
        mode = Interception()
        stack.enter_context(
            replaced(torch.overrides, "has_torch_function", torch_modules.blind_to(Interception, _edits))
        )
        registry = transformers_models.registry()
        if registry is not None:
            stack.enter_context(replaced(registry, "get_interface", transformers_models.met_by(_mode.get)))
        token = _mode.set(mode)
        stack.callback(_mode.reset, token)
        stack.enter_context(mode)
        yield


def _edits() -> bool:
    """Whether a layer may have to be changed inside, for which torch's fast path has no place."""
    return bool(hands.get())
