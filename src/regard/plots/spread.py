"""What a head's numbers are measured against, and their mean over all that was recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.errors import RecordingError
from regard.core.grouped import GroupedRelation
from regard.core.relations import DenseRelation, DotRelation, Relation
from regard.recording import RecordedMap

Statistic = Literal["distance", "entropy"]


def mean_by_head(recorded: RecordedMap, statistic: Statistic) -> Float[Tensor, "heads"] | None:
    """The mean over all queries of all examples; None where the axes have no common measure for distances.

    Padding does not count, nor a query without a value: a class token is nowhere, so it has no distance. Weights that
    are not numbers are an error, and no missing value.
    """
    found = recorded.survey(measure=statistic == "distance")
    if not _kept(recorded, found.largest).isfinite().all():
        raise RecordingError(f"The weights of {recorded.address} are not all finite, so they cannot be drawn.")
    values = found.distance if statistic == "distance" else found.entropy
    if values is None:
        return None
    means = _kept(recorded, values).nanmean(dim=1)
    if not means.isfinite().all():
        raise RecordingError(f"A head of {recorded.address} has no {statistic} for any query, so it cannot be drawn.")
    return means


def _kept(recorded: RecordedMap, values: Float[Tensor, "examples heads queries"]) -> Float[Tensor, "heads kept"]:
    """All queries of all examples, without padding."""
    examples, _, queries = values.shape
    lengths = [len(axis) for axis in recorded.query_axes] or [queries] * examples
    return torch.cat([values[example, :, :length] for example, length in enumerate(lengths)], dim=1)


def uniform(recorded: RecordedMap) -> RecordedMap | None:
    """The same map with one head that looks everywhere alike, where this one may look; None where that is unknown."""
    relation = _uniform(recorded.relation)
    return None if relation is None else recorded.with_relation(relation)


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
