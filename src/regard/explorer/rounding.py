"""Queries and keys rounded for a page that would otherwise be too large, as coarsely as a given error of scores allows.

A score is a sum over the dimensions of a head, so what counts is how far that sum is off, not each number. Hence

1. the mean key is taken off all keys, which changes each score of a query by the same and hence no weight;
2. queries and keys are turned so that their dimensions do not overlap in importance (singular vectors of their
   product), and are balanced against each other; both change no score;
3. each dimension is rounded to multiples of a step, small where the other side is large, so that every dimension adds
   the same error.

What is left are small whole numbers, most of them near zero, which compress well. How far weights really are off is
measured, and the page says it.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import torch
from jaxtyping import Float, Int
from safetensors.torch import load, save
from torch import Tensor

_LARGEST = 32_000


def split(file: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a .regard file and its description."""
    (length,) = struct.unpack("<Q", file[:8])
    header = json.loads(file[8 : 8 + length])
    return load(file), json.loads(header["__metadata__"]["regard"])


def joined(tensors: dict[str, Tensor], description: dict[str, Any]) -> bytes:
    return save(tensors, {"regard": json.dumps(description, ensure_ascii=False)})


def rounded(file: bytes, error: float) -> bytes:
    """The file with queries and keys rounded so that scores are off by `error` (a standard deviation)."""
    tensors, description = split(file)
    kept = dict(tensors)
    for number, tap in enumerate(description["taps"]):
        queries, keys = kept.get(f"{number}/queries"), kept.get(f"{number}/keys")
        if tap["form"] != "dot" or queries is None or keys is None or not queries.is_floating_point():
            continue
        shapes = {}
        for name, values, steps in zip(
            ("queries", "keys"), *_rounded_pair(queries, keys, error / abs(tap["fields"]["scale"] or 1.0)), strict=True
        ):
            shapes[name] = [values.shape[0], values.shape[1], values.shape[3], values.shape[2]]
            kept[f"{number}/{name}"] = _planes(values)
            kept[f"{number}/{name}.steps"] = steps.float().contiguous()
        tap["fields"]["rounded"] = shapes
    return joined(kept, description)


def _rounded_pair(
    queries: Float[Tensor, "batch heads queries width"], keys: Float[Tensor, "batch groups keys width"], error: float
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Whole numbers (batch, heads or groups, dimensions, positions) of both, and the steps of both."""
    queries, keys = turned(queries, keys)
    groups, share = keys.shape[1], queries.shape[1] // keys.shape[1]
    size_of_queries = queries.unflatten(1, (groups, share)).square().mean(dim=(2, 3)).sqrt()
    size_of_keys = keys.square().mean(dim=2).sqrt()
    unit = error * (6 / keys.shape[-1]) ** 0.5
    tiny = torch.finfo(torch.float64).tiny
    steps_of_queries = (unit / size_of_keys.clamp(min=tiny)).repeat_interleave(share, dim=1)
    steps_of_keys = unit / size_of_queries.clamp(min=tiny)
    values, steps = [], []
    for given, step in ((queries, steps_of_queries), (keys, steps_of_keys)):
        step = torch.maximum(step, given.abs().amax(dim=2) / _LARGEST).clamp(min=1e-30, max=1e30).float()
        values.append((given / step[:, :, None].double()).round().long().transpose(2, 3))
        steps.append(step)
    return (values[0], values[1]), (steps[0], steps[1])


def turned(
    queries: Float[Tensor, "batch heads queries width"], keys: Float[Tensor, "batch groups keys width"]
) -> tuple[Float[Tensor, "batch heads queries rank"], Float[Tensor, "batch groups keys rank"]]:
    """Other queries and keys with the same weights: centred, their dimensions sorted by importance and balanced."""
    groups, share = keys.shape[1], queries.shape[1] // keys.shape[1]
    keys = keys.double()
    keys = keys - keys.mean(dim=2, keepdim=True)
    together = queries.double().unflatten(1, (groups, share)).flatten(2, 3)
    basis_of_queries, inner_of_queries = torch.linalg.qr(together)
    basis_of_keys, inner_of_keys = torch.linalg.qr(keys)
    left, sizes, right = torch.linalg.svd(inner_of_queries @ inner_of_keys.transpose(-1, -2), full_matrices=False)
    root = sizes.sqrt()[..., None, :]
    found = basis_of_queries @ (left * root)
    return (
        found.unflatten(2, (share, queries.shape[2])).flatten(1, 2),
        basis_of_keys @ (right.transpose(-1, -2) * root),
    )


def _planes(values: Int[Tensor, "batch heads dimensions positions"]) -> Tensor:
    """Low bytes, then high bytes; positive and negative numbers take turns, so that small ones have no high byte."""
    folded = torch.where(values >= 0, 2 * values, -2 * values - 1).flatten()
    return torch.stack([folded & 255, folded >> 8]).to(torch.uint8)


def restored(file: bytes) -> bytes:
    """The rounded file as an ordinary one: what the browser makes of it (see browser/rounded.js)."""
    tensors, description = split(file)
    kept = {name: tensor for name, tensor in tensors.items() if not name.endswith(".steps")}
    for number, tap in enumerate(description["taps"]):
        for name, (batch, heads, positions, width) in tap["fields"].pop("rounded", {}).items():
            low, high = tensors[f"{number}/{name}"].int()
            folded = low + 256 * high
            values = torch.where(folded % 2 == 1, -((folded + 1) // 2), folded // 2).view(
                batch, heads, width, positions
            )
            steps = tensors[f"{number}/{name}.steps"][..., None]
            kept[f"{number}/{name}"] = (values * steps).transpose(2, 3).contiguous()
    return joined(kept, description)
