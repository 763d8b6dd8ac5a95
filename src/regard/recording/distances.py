"""How far apart queries and keys are, in the unit of their axes.

Two axes have a common measure where both are positions along the same text or series, moments of the same signal,
places of the same picture (patches, boxes) or of the same volume. A word and a patch have none.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.axes import Axis
from regard.core.errors import RecordingError


class Distances:
    """Distances between the places of a recorded map, a block of queries at a time, the last block kept."""

    def __init__(
        self, queries: Float[Tensor, "examples queries dims"], keys: Float[Tensor, "examples keys dims"]
    ) -> None:
        self.queries_known = queries.isfinite().all(dim=-1)
        self.keys_known = keys.isfinite().all(dim=-1)
        self.everywhere = bool(self.queries_known.all() and self.keys_known.all())
        self.queries = queries.nan_to_num()
        self.keys = keys.nan_to_num()
        self._last: tuple[tuple[slice, int, int], tuple[Tensor, Tensor | None]] | None = None
        self._room = queries.new_empty(0)

    def __call__(
        self, examples: slice, start: int, stop: int
    ) -> tuple[Float[Tensor, "examples 1 rows keys"], Float[Tensor, "examples 1 rows keys"] | None]:
        """Euclidean distances, and ones where there are any, zeros elsewhere (None: everywhere).

        What is returned is written over by the next call.
        """
        asked = (examples, start, stop)
        if self._last is None or self._last[0] != asked:
            away = self._away(self.queries[examples, start:stop], self.keys[examples])
            known = None
            if not self.everywhere:
                known = (self.queries_known[examples, start:stop, None] & self.keys_known[examples, None]).float()
                away = away * known
            self._last = (asked, (away[:, None], None if known is None else known[:, None]))
        return self._last[1]

    def _away(
        self, queries: Float[Tensor, "examples rows dims"], keys: Float[Tensor, "examples keys dims"]
    ) -> Float[Tensor, "examples rows keys"]:
        if queries.shape[-1] > 1:
            return torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist")
        shape = (len(queries), queries.shape[1], keys.shape[1])
        if self._room.shape != shape:
            self._room = queries.new_empty(shape)
        return torch.sub(queries, keys.transpose(1, 2), out=self._room).abs_()


def distances(
    address: str,
    roles: tuple[str, str],
    axes: tuple[Sequence[Axis], Sequence[Axis]],
    sizes: tuple[int, int],
) -> tuple[Distances, str]:
    """The distances of a map and their unit, or an error that says why there are none."""
    query_axes, key_axes = axes
    if not query_axes or not key_axes:
        lacking = roles[0] if not query_axes else roles[1]
        raise RecordingError(
            f"Nothing is known of the places of {lacking!r} in {address}, so there is no distance. Say what they are "
            f"with `recording.label({lacking}=[...])`, one axis an example."
        )
    for queries, keys in zip(query_axes, key_axes, strict=True):
        if not _comparable(queries, keys, roles[0] == roles[1]):
            raise RecordingError(
                f"{address} relates {roles[0]!r} ({queries.kind}) to {roles[1]!r} ({keys.kind}), which have no common "
                f"measure, so there is no distance between them."
            )
    measured = Distances(_places(query_axes, sizes[0]), _places(key_axes, sizes[1]))
    return measured, query_axes[0].space_unit


def _comparable(queries: Axis, keys: Axis, same_role: bool) -> bool:
    if queries.space is None or queries.space != keys.space:
        return False
    if queries.space == "line":
        return same_role
    # Blocks of voxels of two sizes count in different units.
    return queries.space != "volume" or queries == keys


def _places(axes: Sequence[Axis], size: int) -> Float[Tensor, "examples positions dims"]:
    """Coordinates of every example, filled up with NaN where its axis is shorter."""
    made: dict[Axis, Tensor] = {}
    for axis in axes:
        if axis not in made:
            coordinates = torch.tensor(axis.coordinates(), dtype=torch.float32).reshape(len(axis), -1)
            made[axis] = torch.nn.functional.pad(coordinates, (0, 0, 0, size - len(axis)), value=torch.nan)
    return torch.stack([made[axis] for axis in axes])
