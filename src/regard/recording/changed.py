"""Relations that are another one with changed rows, made when they are asked for.

They are kept by their parts and written to a file as the dense weights that they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from regard.core.relations import DenseRelation, Relation


@dataclass(frozen=True, eq=False)
class ChangedRelation(Relation):
    """As large as `inner`; what becomes of its rows is the heir's to say."""

    form = "dense"
    inner: Relation

    @property
    def batch(self) -> int:  # type: ignore[override]
        return self.inner.batch

    @property
    def heads(self) -> int:  # type: ignore[override]
        return self.inner.heads

    @property
    def num_queries(self) -> int:  # type: ignore[override]
        return self.inner.num_queries

    @property
    def num_keys(self) -> int:  # type: ignore[override]
        return self.inner.num_keys

    def tensors(self) -> dict[str, Tensor]:
        return {"weights": self.weights()}

    @staticmethod
    def restore(tensors: Mapping[str, Tensor], fields: Mapping[str, Any]) -> DenseRelation:
        return DenseRelation(tensors["weights"])
