"""Pictures from recordings; nothing here ever holds a model.

Loading this room does not load matplotlib: what draws is fetched when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from regard.plots.save import save

if TYPE_CHECKING:
    from regard.plots.alignment import draw_alignment
    from regard.plots.depth import draw_depth, draw_distance, draw_entropy
    from regard.plots.film import draw_training, write_film
    from regard.plots.heads import draw_heads
    from regard.plots.layers import draw_layers
    from regard.plots.overlay import draw_overlay, draw_strip
    from regard.plots.panels import draw_panels
    from regard.plots.positions import draw_positions
    from regard.plots.rollout import draw_rollout
    from regard.plots.scan_path import draw_scan_path
    from regard.plots.verdict import draw_verdict
    from regard.plots.words import draw_words

__all__ = [
    "draw_alignment",
    "draw_depth",
    "draw_distance",
    "draw_entropy",
    "draw_heads",
    "draw_layers",
    "draw_overlay",
    "draw_panels",
    "draw_positions",
    "draw_rollout",
    "draw_scan_path",
    "draw_strip",
    "draw_training",
    "draw_verdict",
    "draw_words",
    "save",
    "write_film",
]

_HOMES = {
    "draw_alignment": "alignment",
    "draw_depth": "depth",
    "draw_distance": "depth",
    "draw_entropy": "depth",
    "draw_heads": "heads",
    "draw_layers": "layers",
    "draw_overlay": "overlay",
    "draw_panels": "panels",
    "draw_positions": "positions",
    "draw_rollout": "rollout",
    "draw_scan_path": "scan_path",
    "draw_strip": "overlay",
    "draw_training": "film",
    "draw_verdict": "verdict",
    "draw_words": "words",
    "write_film": "film",
}
"""Where each function is."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
