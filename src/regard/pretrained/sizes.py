"""Sizes that are read off tensors or a peer's config: sides of squares, the width that heads share."""

from __future__ import annotations

import math
from typing import Any

from regard.core.errors import CheckpointError


def side_of(count: int, what: str) -> int:
    """The side of a square of `count` places."""
    side = math.isqrt(count)
    if side * side != count:
        raise CheckpointError(f"The {what} has {count} places, which make no square; only square ones can be read.")
    return side


PUBLISHED_HEADS = {1280: 16}
"""By width: of the published sizes only ViT-H has heads that are not 64 wide."""


def heads_of(width: int, num_heads: int | None) -> int:
    """The number of heads, which no tensor shows: given, or such that each has 64 numbers as in published sizes."""
    if num_heads is None and width in PUBLISHED_HEADS:
        return PUBLISHED_HEADS[width]
    if num_heads is None and width % 64:
        raise CheckpointError(
            f"How many heads share the width of {width} cannot be seen in the tensors; pass `num_heads`."
        )
    return num_heads or width // 64


def require(config: Any, name: str, *allowed: Any) -> None:
    """Refuses what our model has no place for, by the name of the peer's option."""
    value = config.get(name, allowed[0])
    if value not in allowed:
        known = " or ".join(map(repr, allowed))
        raise CheckpointError(f"The checkpoint's config has {name} = {value!r}; our model can be {known} only.")
