"""A training's film: recordings of the same few examples, one every so many steps, in the run's folder.

    for step, recording in regard.film("runs/transformer/..."):
        print(step, recording.outputs["loss"], recording["decoder.0.cross"].entropy().mean())

So the appearance of a diagonal, or the death of a head, can be replayed. A frame is kept compact: numbers of 16 bits,
and the weights themselves where they are fewer than the queries and keys that they come from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.bias import OffsetBias
from regard.core.errors import RecordingError
from regard.core.grouped import GroupedRelation
from regard.core.relations import DenseRelation, DotRelation, Relation, SparseRelation
from regard.recording.recording import Recording

_FRAME = re.compile(r"step-(\d+)\.regard")


def film(run: str | os.PathLike[str] | Any) -> Iterator[tuple[int, Recording]]:
    """The steps of a run that were recorded, in their order, each read when it is asked for."""
    folder = getattr(run, "folder", run)
    path = Path(getattr(folder, "path", folder))
    frames = sorted(
        (int(match[1]), file) for file in (path / "film").glob("*") if (match := _FRAME.fullmatch(file.name))
    )
    if not frames:
        raise RecordingError(
            f"{path} holds no film: train with `--training.record-every 100` to record every hundredth step."
        )
    return ((step, Recording.load(file)) for step, file in frames)


def compact(recording: Recording) -> Recording:
    """The same recording in as few bytes as pictures need."""
    relations = {address: _compact(relation) for address, relation in recording.relations.items()}
    return replace(recording, relations=relations)


def _compact(relation: Relation) -> Relation:
    match relation:
        case GroupedRelation():
            return replace(relation, inner=_compact(relation.inner))
        case DotRelation():
            batch, heads, queries, keys = relation.shape
            if batch * heads * queries * keys < relation.queries.numel() + relation.keys.numel():
                return DenseRelation(_half(relation.weights()), value_norms=relation.value_norms)
            bias = relation.bias
            if isinstance(bias, OffsetBias):
                bias = OffsetBias(_half(bias.values))
            elif bias is not None:
                bias = _half(bias)
            return replace(relation, queries=_half(relation.queries), keys=_half(relation.keys), bias=bias)
        case SparseRelation():
            return replace(relation, indices=relation.indices.to(torch.int32), values=_half(relation.values))
        case DenseRelation():
            return DenseRelation(_half(relation.dense), value_norms=relation.value_norms)
        case _:
            return relation


def _half(tensor: Tensor) -> Tensor:
    """16 bits with eleven digits, unless a number is too large for them."""
    half = tensor.to(torch.float16)
    return half if half.isfinite().all() else tensor
