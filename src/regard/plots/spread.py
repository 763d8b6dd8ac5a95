"""What a head's numbers are measured against, and their mean over all that was recorded."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.errors import RecordingError
from regard.core.grouped import GroupedRelation
from regard.core.relations import DenseRelation, DotRelation, Relation
from regard.recording import RecordedMap


def mean_by_head(recorded: RecordedMap, values: Float[Tensor, "examples heads queries"]) -> Float[Tensor, "heads"]:
    """The mean over all queries of all examples; padding does not count, nor a query that has no value (NaN).

    A class token is nowhere, so it has no distance. Weights that are not numbers are an error, and no missing value.
    """
    if not _kept(recorded, recorded.entropy()).isfinite().all():
        raise RecordingError(f"The weights of {recorded.address} are not all finite, so they cannot be drawn.")
    means = _kept(recorded, values).nanmean(dim=1)
    if not means.isfinite().all():
        raise RecordingError(f"A head of {recorded.address} has no value for any query, so it cannot be drawn.")
    return means


def _kept(recorded: RecordedMap, values: Float[Tensor, "examples heads queries"]) -> Float[Tensor, "heads kept"]:
    """All queries of all examples, without padding."""
    examples, _, queries = values.shape
    lengths = [len(axis) for axis in recorded.query_axes] or [queries] * examples
    return torch.cat([values[example, :, :length] for example, length in enumerate(lengths)], dim=1)


def uniform(recorded: RecordedMap) -> RecordedMap | None:
    """The same map with one head that looks everywhere alike, where this one may look; None where that is unknown."""
    relation = _uniform(recorded.relation)
    return None if relation is None else replace(recorded, relation=relation)


def _uniform(relation: Relation) -> Relation | None:
    if isinstance(relation, DotRelation):
        nothing = relation.queries[:, :1, :, :1] * 0
        allow = relation.allow
        if allow.pairs is not None and allow.pairs.dim() == 4:
            allow = replace(allow, pairs=allow.pairs[:, :1])
        return DotRelation(nothing, relation.keys[:, :1, :, :1] * 0, 1.0, allow)
    if isinstance(relation, DenseRelation):
        may = (relation.dense[:, :1] > 0).float()
        return DenseRelation(may / may.sum(dim=-1, keepdim=True).clamp(min=1.0))
    if isinstance(relation, GroupedRelation):
        inner = _uniform(relation.inner)
        return None if inner is None else replace(relation, inner=inner)
    return None
