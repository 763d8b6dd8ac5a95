"""Pictures from recordings; nothing here ever holds a model.

Loading this room does not load matplotlib: what draws is fetched when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from regard.plots.save import save

if TYPE_CHECKING:
    from regard.plots.alignment import draw_alignment
    from regard.plots.heads import draw_heads
    from regard.plots.layers import draw_layers
    from regard.plots.overlay import draw_overlay
    from regard.plots.verdict import draw_verdict

__all__ = ["draw_alignment", "draw_heads", "draw_layers", "draw_overlay", "draw_verdict", "save"]

_HOMES = {
    "draw_alignment": "alignment",
    "draw_heads": "heads",
    "draw_layers": "layers",
    "draw_overlay": "overlay",
    "draw_verdict": "verdict",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
