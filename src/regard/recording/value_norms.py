"""How long the values are, one number a key, kept beside the weights: `RecordedMap.norm_weighted` needs no more."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from regard.core.grouped import GroupedRelation
from regard.core.relations import DenseRelation, DotRelation, Relation, SparseRelation


def with_value_norms(relation: Relation, values: Tensor) -> Relation:
    """The relation with the norms of the values it was used for; forms that do not keep them stay as they are."""
    if isinstance(relation, GroupedRelation):
        return replace(relation, inner=with_value_norms(relation.inner, values))
    if not isinstance(relation, DotRelation | DenseRelation | SparseRelation):
        return relation
    dtype = torch.promote_types(values.dtype, torch.float32)
    return replace(relation, value_norms=torch.linalg.vector_norm(values.detach(), dim=-1, dtype=dtype).float())
