"""How deep each parameter of a model lies, read off the numbers in its address; no model is known here by name.

A layer is what stands behind one number or two (`encoder.3`, `stages.2.5`). Layers follow each other by their first
number, and those of one first number as the model defines them: so `mergings.0` comes after the blocks of `stages.0`.
What stands before the first of them is below all (patches, positions), what stands behind is above all (norm, head).
"""

from __future__ import annotations

import re

from torch import nn

_LAYER = re.compile(r"[A-Za-z_]+\.(\d+)(?:\.\d+(?=\.))?")


def layer_heights(model: nn.Module) -> dict[str, int]:
    """For each parameter how many layers lie between it and the top; 0 is the top."""
    first: dict[str, int] = {}
    placed: dict[str, str | None] = {}
    for name, _ in model.named_parameters():
        match = _LAYER.match(name)
        placed[name] = match[0] if match else None
        if match:
            first.setdefault(match[0], int(match[1]))
    # Sorting keeps the order of definition among layers of one first number.
    levels = {layer: level for level, layer in enumerate(sorted(first, key=first.__getitem__), start=1)}
    top = len(levels) + 1
    heights, begun = {}, False
    for name, layer in placed.items():
        begun = begun or layer is not None
        level = levels[layer] if layer is not None else (top if begun else 0)
        heights[name] = top - level
    return heights
