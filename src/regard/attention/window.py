"""A window that is cut out of a picture by an affine map, smoothly, so that the map can be learned (Jaderberg et al.
2015; deck A).

    source(x, y) = Theta (x, y, 1)^T for each place (x, y) of the window, both in halves of the sides, from -1 to 1
    window(x, y) = sum over the four pixels around source(x, y) of their bilinear weight times the pixel

As a relation: each place of the window attends to four pixels, with weights that sum to one. A source outside of the
picture is moved to its nearest edge.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.core.relations import SparseRelation

Maps = Float[Tensor, "batch heads 2 3"]
Sources = Float[Tensor, "batch heads rows columns 2"]


def window_sources(maps: Maps, rows: int, columns: int) -> Sources:
    """Where in the picture each place of each head's window comes from: x, then y; in float32."""
    batch, heads = maps.shape[:2]
    with torch.autocast(maps.device.type, enabled=False):
        flat = F.affine_grid(maps.flatten(0, 1).float(), [batch * heads, 1, rows, columns], align_corners=False)
    return flat.unflatten(0, (batch, heads))


def cut_windows(
    images: Float[Tensor, "batch channels height width"], sources: Sources
) -> Float[Tensor, "batch heads channels rows columns"]:
    """The window of each head; in float32, because places need its digits."""
    heads = sources.shape[1]
    pictures = images.float().repeat_interleave(heads, dim=0)
    with torch.autocast(images.device.type, enabled=False):
        cut = F.grid_sample(pictures, sources.flatten(0, 1), padding_mode="border", align_corners=False)
    return cut.unflatten(0, (len(images), heads))


def window_relation(sources: Sources, height: int, width: int) -> SparseRelation:
    """From places of the windows to pixels, row by row."""
    x, y = (
        ((sources[..., axis] + 1) * side / 2 - 0.5).clamp(0, side - 1).flatten(2)
        for axis, side in ((0, width), (1, height))
    )
    left, top = x.floor(), y.floor()
    indices, weights = [], []
    for below in (0, 1):
        for beside in (0, 1):
            row, column = (top + below).clamp(max=height - 1), (left + beside).clamp(max=width - 1)
            indices.append(row * width + column)
            weights.append((1 - (y - top - below).abs()) * (1 - (x - left - beside).abs()))
    return SparseRelation(torch.stack(indices, dim=-1).long(), torch.stack(weights, dim=-1), height * width)


def corners(maps: Maps, height: int, width: int) -> Float[Tensor, "batch heads 4 2"]:
    """Where the corners of each window lie in the picture, in pixels: x, y; clockwise from the upper left."""
    unit = maps.new_tensor([[-1.0, -1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [-1.0, 1.0, 1.0]])
    with torch.autocast(maps.device.type, enabled=False):
        halves = torch.einsum("bhij,cj->bhci", maps.detach().float(), unit.float())
    return (halves + 1) / 2 * halves.new_tensor([width, height])
