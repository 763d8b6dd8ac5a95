"""Recordings to explore in a browser: a one-file page, a notebook widget, and a server that can ask a model.

All three are the same ES modules, in `browser/`; none of them asks the network for anything.
"""

from __future__ import annotations

import importlib
from typing import Any

from regard.explorer.page import write_page

__all__ = ["make_app", "show", "write_page"]

_HOMES = {"make_app": "regard.explorer.server", "show": "regard.explorer.widget"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
