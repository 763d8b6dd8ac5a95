"""Weights together with what was allowed: a weight may be zero because it is small, or because it was not allowed."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool
from torch import Tensor

from regard.core.relations import DenseRelation


@dataclass(frozen=True, eq=False)
class MaskedRelation(DenseRelation):
    """Dense weights for an edit that has to know the keys that a query may attend to; None allows all."""

    allowed: Bool[Tensor, "#batch #heads #queries #keys"] | None = None
