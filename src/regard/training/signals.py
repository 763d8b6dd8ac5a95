"""Ctrl-C and SIGTERM as a wish to stop, not as an accident."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


class Interrupted(BaseException):
    """Raised inside a block that said it may be abandoned; not an error, hence not an `Exception`."""


class StopSignals:
    """While open, the first SIGINT or SIGTERM only sets `received`; the second one ends the program at once.

    Signals can be handled in the main thread alone; elsewhere this does nothing. The handlers that were
    there before come back when it closes.
    """

    def __init__(self, announce: Callable[[str], None]) -> None:
        self.received: int | None = None
        self._announce = announce
        self._abandon = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    @contextlib.contextmanager
    def may_abandon(self, allowed: bool = True) -> Iterator[None]:
        """A block, such as a long validation, that a signal leaves by `Interrupted` instead of waiting for its end."""
        if allowed and self.received is not None:
            raise Interrupted
        self._abandon = allowed
        try:
            yield
        finally:
            self._abandon = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            self._restore()
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            raise SystemExit(128 + number)
        self.received = number
        self._announce(f"{signal.Signals(number).name}: finishing this step, then saving. Once more ends at once.")
        if self._abandon:
            self._abandon = False
            raise Interrupted

    def _restore(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())
