"""The retina of Mnih et al. 2014: patches around one place, each twice as large as the one before, all equally coarse.

    rho(x, l)_s = the mean over 2^s x 2^s pixels, for each of size x size cells around l;  s = 0, ..., scales - 1

Only these pixels are read, so that a glimpse costs the same on a picture of any size. What lies outside of the picture
is zero. As a relation: each scale is a head, whose weight is spread evenly over the pixels that it covers.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.core.relations import SparseRelation

Locations = Float[Tensor, "batch 2"]


def glimpse(
    images: Float[Tensor, "batch channels height width"], locations: Locations, size: int, num_scales: int
) -> Float[Tensor, "batch scales channels size size"]:
    """`locations` are x and y from -1 (left, upper edge) to 1 (right, lower edge)."""
    height, width = images.shape[2:]
    pixels = images.flatten(2)
    patches = []
    for scale in range(num_scales):
        side = size * 2**scale
        places, inside = covered(locations, height, width, side)
        values = pixels.gather(2, places[:, None].expand(-1, images.shape[1], -1)) * inside[:, None]
        patches.append(F.avg_pool2d(values.unflatten(2, (side, side)), 2**scale))
    return torch.stack(patches, dim=1)


def glimpse_relation(locations: Locations, height: int, width: int, size: int, num_scales: int) -> SparseRelation:
    """One step: a query, from scales to pixels. A scale that lies wholly outside attends to nothing."""
    largest = (size * 2 ** (num_scales - 1)) ** 2
    indices, weights = [], []
    for scale in range(num_scales):
        places, inside = covered(locations.detach(), height, width, size * 2**scale)
        share = inside / inside.sum(dim=1, keepdim=True).clamp(min=1)
        missing = largest - places.shape[1]
        indices.append(F.pad(places.masked_fill(~inside, -1), (0, missing), value=-1))
        weights.append(F.pad(share, (0, missing)))
    return SparseRelation(
        torch.stack(indices, dim=1)[:, :, None], torch.stack(weights, dim=1)[:, :, None], height * width
    )


def covered(
    locations: Locations, height: int, width: int, side: int
) -> tuple[Int[Tensor, "batch places"], Bool[Tensor, "batch places"]]:
    """The pixels of a square around each location, row by row, and which of them the picture has."""
    x, y = in_pixels(locations, height, width).unbind(dim=1)
    offsets = torch.arange(side, device=locations.device)
    columns = (x - side / 2).round().long()[:, None] + offsets
    rows = (y - side / 2).round().long()[:, None] + offsets
    inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[:, None, :]
    places = rows.clamp(0, height - 1)[:, :, None] * width + columns.clamp(0, width - 1)[:, None, :]
    return places.flatten(1), inside.flatten(1)


def in_pixels(locations: Float[Tensor, "*batch 2"], height: int, width: int) -> Float[Tensor, "*batch 2"]:
    """x and y in pixels; what lies outside of the picture is moved to its edge."""
    halves = (locations.detach().float().clamp(-1, 1) + 1) / 2
    return halves * halves.new_tensor([width, height])
