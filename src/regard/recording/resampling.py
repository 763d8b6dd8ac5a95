"""From one axis to a coarser or finer one over the same picture, volume or signal: shares of cells that overlap.

Pooling, patch merging and strides leave no attention map, but both grids know where their places lie. A place of the
new axis stands for the places of the old one under it, each by the share that it covers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.axes import Axis, Frames, Grid, Volume


@dataclass(frozen=True, eq=False)
class Resampling:
    """new = M old, where M is the product of one small matrix a dimension; extras go to extras of the same name."""

    shares: tuple[Float[Tensor, "_ _"], ...]
    extras: tuple[int | None, ...] = ()
    """For each extra of the new axis the old one it continues; None where there is none."""
    num_old_extras: int = 0

    @property
    def num_new(self) -> int:
        return len(self.extras) + reduce(int.__mul__, (len(share) for share in self.shares), 1)

    @property
    def num_old(self) -> int:
        return self.num_old_extras + reduce(int.__mul__, (share.shape[1] for share in self.shares), 1)

    def pull(self, rows: Float[Tensor, "vectors new"]) -> Float[Tensor, "vectors old"]:
        """rows M."""
        places = rows[:, len(self.extras) :].unflatten(1, [len(share) for share in self.shares])
        for dim, share in enumerate(self.shares, start=1):
            places = torch.tensordot(places, share.to(rows), dims=([dim], [0])).movedim(-1, dim)
        extras = rows.new_zeros(len(rows), self.num_old_extras)
        for new, old in enumerate(self.extras):
            if old is not None:
                extras[:, old] += rows[:, new]
        return torch.cat([extras, places.flatten(1)], dim=1)

    def push(self, columns: Float[Tensor, "old width"]) -> Float[Tensor, "new width"]:
        """M columns."""
        places = columns[self.num_old_extras :].unflatten(0, [share.shape[1] for share in self.shares])
        for dim, share in enumerate(self.shares):
            places = torch.tensordot(places, share.to(columns), dims=([dim], [1])).movedim(-1, dim)
        missing = columns.new_zeros(columns.shape[1])
        extras = [missing if old is None else columns[old] for old in self.extras]
        return torch.cat([*(extra[None] for extra in extras), places.flatten(0, len(self.shares) - 1)])

    def matrix(self) -> Float[Tensor, "new old"]:
        """M itself."""
        return self.push(torch.eye(self.num_old))


def resampling(new: Axis, old: Axis) -> Resampling | None:
    """How positions of `new` stand for those of `old`; None where they are not places of the same thing."""
    if isinstance(new, Grid) and isinstance(old, Grid):
        shares = (
            _overlaps(new.rows, new.image_height, old.rows, old.image_height),
            _overlaps(new.columns, new.image_width, old.columns, old.image_width),
        )
        names = {name: place for place, name in enumerate(old.extras)}
        return Resampling(shares, tuple(names.get(name) for name in new.extras), len(old.extras))
    if isinstance(new, Volume) and isinstance(old, Volume):
        sizes = zip((new.depth, new.rows, new.columns), (old.depth, old.rows, old.columns), strict=True)
        return Resampling(tuple(_overlaps(many, 1.0, others, 1.0) for many, others in sizes))
    if isinstance(new, Frames) and isinstance(old, Frames):
        lengths = new.count * new.seconds, old.count * old.seconds
        return Resampling((_overlaps(new.count, lengths[0], old.count, lengths[1]),))
    return None


def _overlaps(new: int, new_length: float, old: int, old_length: float) -> Float[Tensor, "new old"]:
    """Which share of each new cell is covered by each old one, of what is covered at all."""
    new_edges = torch.linspace(0, new_length, new + 1, dtype=torch.float64)
    old_edges = torch.linspace(0, old_length, old + 1, dtype=torch.float64)
    ends = torch.minimum(new_edges[1:, None], old_edges[None, 1:])
    covered = (ends - torch.maximum(new_edges[:-1, None], old_edges[None, :-1])).clamp(min=0)
    # Rounding of the edges leaves slivers, which are no overlap.
    covered[covered < 1e-9 * max(new_length, old_length)] = 0.0
    return (covered / covered.sum(dim=1, keepdim=True).clamp(min=1e-30)).float()
