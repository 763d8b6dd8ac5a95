"""The pointing game (Zhang et al. 2016): does the place that is looked at most lie on the thing?

    hits = share of pictures whose most attended place has its middle on the thing
    chance = mean share of the picture that would have been a hit

Only where things have known places, as in generated shapes. The weights are those of one query (a class token), or the
mean over all queries; extra tokens are not in the game.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from regard.core.axes import Grid
from regard.core.errors import ConfigError
from regard.recording import RecordedMap


@dataclass(frozen=True)
class Pointing:
    """Shares from 0 to 1."""

    hits: tuple[float, ...]
    """Of each head, and last of the mean over heads."""
    chance: float


def point(
    recorded: RecordedMap, masks: Sequence[Bool[np.ndarray, "height width"]], *, query: int | None = None
) -> Pointing:
    """One mask for each example that was recorded; the picture's size is the masks'."""
    if not recorded.key_axes or not isinstance(recorded.key_axes[0], Grid):
        raise ConfigError(f"{recorded.address} does not look at places in a picture, so nothing can be pointed at.")
    if len(masks) != recorded.shape[0]:
        raise ConfigError(f"There are {recorded.shape[0]} pictures in the recording, but {len(masks)} masks.")
    found, chances = [], []
    for example, mask in enumerate(masks):
        axis = recorded.key_axes[example]
        assert isinstance(axis, Grid)
        weights = looked_at(recorded, example, query)
        on = middles_on(axis, mask)
        best = np.concatenate([weights, weights.mean(axis=0, keepdims=True)])[:, len(axis.extras) :].argmax(axis=1)
        found.append(on[best])
        chances.append(on.mean())
    return Pointing(tuple(np.mean(found, axis=0).tolist()), float(np.mean(chances)))


def pooled(parts: Sequence[Pointing], weights: Sequence[int]) -> Pointing:
    """Games on several sets of pictures as one; `weights` are their numbers."""
    hits = np.average([part.hits for part in parts], axis=0, weights=weights)
    return Pointing(tuple(hits.tolist()), float(np.average([part.chance for part in parts], weights=weights)))


def looked_at(recorded: RecordedMap, example: int, query: int | None) -> Float[np.ndarray, "heads keys"]:
    """What each place gets, of one query or on the mean of all."""
    if query is not None:
        return recorded.weights(example=example, rows=query).numpy(force=True)
    return recorded.weights(example=example).mean(dim=1).numpy(force=True)


def middles_on(axis: Grid, mask: Bool[np.ndarray, "height width"]) -> Bool[np.ndarray, "places"]:
    """For each place whether its middle lies on the thing; one beyond the picture's edge does not."""
    height, width = mask.shape
    on = np.zeros(axis.rows * axis.columns, bool)
    for place in range(len(on)):
        left, top, right, bottom = axis.box(len(axis.extras) + place)
        row, column = int((top + bottom) / 2), int((left + right) / 2)
        on[place] = row < height and column < width and mask[row, column]
    return on
