"""Recording attention, looking at it and changing it.

Nothing is loaded before it is asked for, so that `regard.recording.reader` can be used where there is no torch.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.recording import edits
    from regard.recording.edit import edit
    from regard.recording.film import film
    from regard.recording.importance import Importance, importance
    from regard.recording.record import record
    from regard.recording.recording import RecordedMap, Recording
    from regard.recording.rehearsal import recording_cost
    from regard.recording.relevance import Relevance, relevance
    from regard.recording.rollout import Composed

__all__ = [
    "Composed",
    "Importance",
    "RecordedMap",
    "Recording",
    "Relevance",
    "edit",
    "edits",
    "film",
    "importance",
    "record",
    "recording_cost",
    "relevance",
]

_HOMES = {
    "Composed": "rollout",
    "Importance": "importance",
    "RecordedMap": "recording",
    "Recording": "recording",
    "Relevance": "relevance",
    "edit": "edit",
    "film": "film",
    "importance": "importance",
    "record": "record",
    "recording_cost": "rehearsal",
    "relevance": "relevance",
}
"""In which file of this room each public name lives."""


class _Room(ModuleType):
    """Some functions have the name of their file; `regard.recording.record` is the function, whoever loads the file."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Room


def __getattr__(name: str) -> Any:
    if name == "edits":
        return importlib.import_module("regard.recording.edits")
    if name not in _HOMES:
        raise AttributeError(f"regard.recording has no {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"regard.recording.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
