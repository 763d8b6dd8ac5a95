"""Functions of other libraries that are replaced while a recording is open, and put back with the last one.

A replacement does what it replaces where nobody listens, so that other threads notice nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_open: dict[tuple[int, str], tuple[int, Any]] = {}


@contextmanager
def replaced(owner: Any, name: str, replacement: Callable[[Any], Any]) -> Iterator[None]:
    """`owner.name` is `replacement(what it was)` while the context, or another one of the same name, is open."""
    place = (id(owner), name)
    with _lock:
        count, original = _open.get(place, (0, None))
        if count == 0:
            original = getattr(owner, name)
            setattr(owner, name, replacement(original))
        _open[place] = (count + 1, original)
    try:
        yield
    finally:
        with _lock:
            count, original = _open.pop(place)
            if count == 1:
                setattr(owner, name, original)
            else:
                _open[place] = (count - 1, original)
