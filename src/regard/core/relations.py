"""Attention as a relation between two axes, kept in the smallest form that its mechanism has.

| form | kept | for |
| --- | --- | --- |
| `DotRelation` | queries, keys, scale, allow, bias | every softmax of dot products, fused or not |
| `DenseRelation` | weights | mechanisms that compute all weights anyway (additive scores of a recurrent decoder) |
| `SparseRelation` | for each query a few keys and their weights | hard choices, glimpses, local windows, Gaussians |
| `GroupedRelation` (`core.grouped`) | a relation inside each group, and its places | windows of a picture |

All speak one language: `rows(start, stop)` gives weights in float32 for a block of queries, whatever is kept.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.bias import OffsetBias
from regard.core.errors import RecordingError
from regard.core.masks import Allow

# A block of this many weights is made at once: 1 MB in float32, which stays in a processor's cache.
_BLOCK_WEIGHTS = 1 << 18


class Relation(ABC):
    """How much each query attends to each key, for a batch of examples and a number of heads."""

    form: ClassVar[str]
    batch: int
    heads: int
    num_queries: int
    num_keys: int
    value_norms: Float[Tensor, "batch #groups keys"] | None = None
    """How long the value of each key is, where that was recorded; groups of heads may share values."""
    separable: ClassVar[bool] = False
    """Whether heads can be selected."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows keys"]:
        """The weights of queries `start` to `stop`, in float32."""

    @abstractmethod
    def select(self, examples: Int[Tensor, "kept"]) -> Self:
        """The same relation for some examples of the batch."""

    def select_heads(self, heads: Int[Tensor, "kept"]) -> Self:
        """The same relation for some of the heads; only for forms that keep them apart (`separable`)."""
        raise NotImplementedError(f"the heads of {type(self).__name__} are not kept apart")

    @abstractmethod
    def joined(self, later: Sequence[Self]) -> Self:
        """With the queries that came after, whose keys include these: a decoder that goes step by step."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What is kept, by name; the rest is in `fields`."""

    def fields(self) -> dict[str, Any]:
        """What is kept beside tensors, as JSON."""
        return {}

    @staticmethod
    @abstractmethod
    def restore(tensors: Mapping[str, Tensor], fields: Mapping[str, Any]) -> Relation:
        """The inverse of `tensors` and `fields`."""

    def blocks(self) -> Iterator[tuple[int, Float[Tensor, "batch heads rows keys"]]]:
        """All rows, in blocks of bounded size, each with the index of its first query."""
        size = max(1, _BLOCK_WEIGHTS // max(1, self.batch * self.heads * self.num_keys))
        for start in range(0, self.num_queries, size):
            yield start, self.rows(start, min(start + size, self.num_queries))

    def weights(self) -> Float[Tensor, "batch heads queries keys"]:
        """The whole map; mind its size."""
        return self.rows(0, self.num_queries)

    def pieces(self) -> Iterator[tuple[slice, slice, Self]]:
        """The relation in parts, each with its examples and heads: one head of one example where maps are large.

        A block of rows of such a part stays in the cache while all that is asked of it is computed.
        """
        if self.batch * self.heads * self.num_queries * self.num_keys <= _BLOCK_WEIGHTS:
            yield slice(None), slice(None), self
            return
        for example in range(self.batch):
            one = self.select(torch.tensor([example])) if self.batch > 1 else self
            for heads, part in one.by_head():
                yield slice(example, example + 1), heads, part

    def by_head(self) -> list[tuple[slice, Self]]:
        """Each head by itself, or all together where they are not kept apart."""
        if not self.separable:
            return [(slice(None), self)]
        return [(slice(head, head + 1), self.select_heads(torch.tensor([head]))) for head in range(self.heads)]

    @property
    def nbytes(self) -> int:
        """Memory of what is kept."""
        return sum(tensor.nbytes for tensor in self.tensors().values())

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.batch, self.heads, self.num_queries, self.num_keys


@dataclass(frozen=True, eq=False)
class DotRelation(Relation):
    """softmax(scale * queries keys^T + bias), never written out. Heads may share keys in groups."""

    form = "dot"
    separable = True
    queries: Float[Tensor, "batch heads queries width"]
    keys: Float[Tensor, "batch groups keys width"]
    scale: float
    allow: Allow = field(default_factory=Allow)
    bias: OffsetBias | Float[Tensor, "#batch #heads queries keys"] | None = None
    value_norms: Float[Tensor, "batch #groups keys"] | None = field(default=None, kw_only=True)

    @property
    def batch(self) -> int:  # type: ignore[override]
        return self.queries.shape[0]

    @property
    def heads(self) -> int:  # type: ignore[override]
        return self.queries.shape[1]

    @property
    def num_queries(self) -> int:  # type: ignore[override]
        return self.queries.shape[2]

    @property
    def num_keys(self) -> int:  # type: ignore[override]
        return self.keys.shape[2]

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows keys"]:
        return masked_softmax(*self.scores(start, stop))

    def scores(self, start: int, stop: int) -> tuple[Float[Tensor, "batch heads rows keys"], Tensor | None]:
        """What stands in the softmax for queries `start` to `stop`, with the mask of what is allowed."""
        queries = self.queries[:, :, start:stop].float()
        keys = spread(self.keys.float(), self.heads)
        scores = self.bias_scores(self.scale * queries @ keys.transpose(-1, -2), start, stop)
        return scores, self.allow.block(start, stop, self.num_queries, self.num_keys, scores.device)

    def bias_scores(
        self, scores: Float[Tensor, "batch heads rows keys"], start: int, stop: int
    ) -> Float[Tensor, "batch heads rows keys"]:
        """The same tensor, with the bias of these rows added to it."""
        if isinstance(self.bias, OffsetBias):
            scores += self.bias.block(start, stop, self.num_queries, self.num_keys)
        elif self.bias is not None:
            scores += self.bias[:, :, start:stop]
        return scores

    def blocks(self) -> Iterator[tuple[int, Float[Tensor, "batch heads rows keys"]]]:
        """All rows, in blocks; keys are made float32 once for all of them."""
        keys = spread(self.keys.float(), self.heads)
        whole = replace(self, queries=self.queries.float(), keys=keys, value_norms=None)
        yield from Relation.blocks(whole)

    def select(self, examples: Int[Tensor, "kept"]) -> DotRelation:
        bias = self.bias
        if isinstance(bias, Tensor) and bias.shape[0] > 1:
            bias = bias[examples]
        return replace(
            self,
            queries=self.queries[examples],
            keys=self.keys[examples],
            allow=self.allow.select(examples),
            bias=bias,
            value_norms=None if self.value_norms is None else self.value_norms[examples],
        )

    def select_heads(self, heads: Int[Tensor, "kept"]) -> DotRelation:
        bias, pairs = self.bias, self.allow.pairs
        if isinstance(bias, OffsetBias):
            bias = OffsetBias(bias.values[heads])
        elif bias is not None and bias.shape[1] > 1:
            bias = bias[:, heads]
        if pairs is not None and pairs.dim() == 4 and pairs.shape[1] > 1:
            pairs = pairs[:, heads]
        return replace(
            self,
            queries=self.queries[:, heads],
            keys=self.keys[:, heads // (self.heads // self.keys.shape[1])],
            allow=replace(self.allow, pairs=pairs),
            bias=bias,
            value_norms=_of_heads(self.value_norms, heads, self.heads),
        )

    def joined(self, later: Sequence[DotRelation]) -> DotRelation:
        steps = (self, *later)
        if any(step.bias is not None or not _same_pairs(step.allow, self.allow) for step in steps):
            raise RecordingError("Relations with a bias or with pairs of their own cannot be joined step by step.")
        return replace(later[-1], queries=torch.cat([step.queries for step in steps], dim=2))

    def tensors(self) -> dict[str, Tensor]:
        kept = {"queries": self.queries, "keys": self.keys}
        if self.allow.keys is not None:
            kept["allow_keys"] = self.allow.keys
        if self.allow.pairs is not None:
            kept["allow_pairs"] = self.allow.pairs
        if isinstance(self.bias, OffsetBias):
            kept["bias_offsets"] = self.bias.values
        elif self.bias is not None:
            kept["bias"] = self.bias
        return _with_norms(kept, self.value_norms)

    def fields(self) -> dict[str, Any]:
        return {"scale": self.scale, "causal": self.allow.causal, "window": self.allow.window}

    @staticmethod
    def restore(tensors: Mapping[str, Tensor], fields: Mapping[str, Any]) -> DotRelation:
        allow = Allow(
            keys=tensors.get("allow_keys"),
            causal=fields["causal"],
            window=fields["window"],
            pairs=tensors.get("allow_pairs"),
        )
        offsets = tensors.get("bias_offsets")
        bias = OffsetBias(offsets) if offsets is not None else tensors.get("bias")
        norms = tensors.get("value_norms")
        return DotRelation(tensors["queries"], tensors["keys"], fields["scale"], allow, bias, value_norms=norms)


@dataclass(frozen=True, eq=False)
class DenseRelation(Relation):
    """Weights as they were computed."""

    form = "dense"
    separable = True
    dense: Float[Tensor, "batch heads queries keys"]
    value_norms: Float[Tensor, "batch #groups keys"] | None = field(default=None, kw_only=True)

    @property
    def batch(self) -> int:  # type: ignore[override]
        return self.dense.shape[0]

    @property
    def heads(self) -> int:  # type: ignore[override]
        return self.dense.shape[1]

    @property
    def num_queries(self) -> int:  # type: ignore[override]
        return self.dense.shape[2]

    @property
    def num_keys(self) -> int:  # type: ignore[override]
        return self.dense.shape[3]

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows keys"]:
        return self.dense[:, :, start:stop].float()

    def select(self, examples: Int[Tensor, "kept"]) -> DenseRelation:
        norms = None if self.value_norms is None else self.value_norms[examples]
        return DenseRelation(self.dense[examples], value_norms=norms)

    def select_heads(self, heads: Int[Tensor, "kept"]) -> DenseRelation:
        return DenseRelation(self.dense[:, heads], value_norms=_of_heads(self.value_norms, heads, self.heads))

    def joined(self, later: Sequence[DenseRelation]) -> DenseRelation:
        num_keys = later[-1].num_keys
        steps = [torch.nn.functional.pad(step.dense, (0, num_keys - step.num_keys)) for step in (self, *later)]
        return DenseRelation(torch.cat(steps, dim=2), value_norms=later[-1].value_norms)

    def tensors(self) -> dict[str, Tensor]:
        return _with_norms({"weights": self.dense}, self.value_norms)

    @staticmethod
    def restore(tensors: Mapping[str, Tensor], fields: Mapping[str, Any]) -> DenseRelation:
        return DenseRelation(tensors["weights"], value_norms=tensors.get("value_norms"))


@dataclass(frozen=True, eq=False)
class SparseRelation(Relation):
    """For each query the few keys it attends to; a key index of -1 is an unused place."""

    form = "sparse"
    separable = True
    indices: Int[Tensor, "batch heads queries places"]
    values: Float[Tensor, "batch heads queries places"]
    keys: int
    value_norms: Float[Tensor, "batch #groups keys"] | None = field(default=None, kw_only=True)

    @property
    def batch(self) -> int:  # type: ignore[override]
        return self.indices.shape[0]

    @property
    def heads(self) -> int:  # type: ignore[override]
        return self.indices.shape[1]

    @property
    def num_queries(self) -> int:  # type: ignore[override]
        return self.indices.shape[2]

    @property
    def num_keys(self) -> int:  # type: ignore[override]
        return self.keys

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows keys"]:
        indices = self.indices[:, :, start:stop].long()
        used = indices >= 0
        values = self.values[:, :, start:stop].float() * used
        weights = values.new_zeros(*indices.shape[:3], self.keys)
        return weights.scatter_add_(3, indices.clamp(min=0), values)

    def select(self, examples: Int[Tensor, "kept"]) -> SparseRelation:
        norms = None if self.value_norms is None else self.value_norms[examples]
        return SparseRelation(self.indices[examples], self.values[examples], self.keys, value_norms=norms)

    def select_heads(self, heads: Int[Tensor, "kept"]) -> SparseRelation:
        norms = _of_heads(self.value_norms, heads, self.heads)
        return SparseRelation(self.indices[:, heads], self.values[:, heads], self.keys, value_norms=norms)

    def joined(self, later: Sequence[SparseRelation]) -> SparseRelation:
        steps = (self, *later)
        indices = torch.cat([step.indices for step in steps], dim=2)
        values = torch.cat([step.values for step in steps], dim=2)
        return SparseRelation(indices, values, later[-1].keys, value_norms=later[-1].value_norms)

    def tensors(self) -> dict[str, Tensor]:
        return _with_norms({"indices": self.indices, "values": self.values}, self.value_norms)

    def fields(self) -> dict[str, Any]:
        return {"keys": self.keys}

    @staticmethod
    def restore(tensors: Mapping[str, Tensor], fields: Mapping[str, Any]) -> SparseRelation:
        norms = tensors.get("value_norms")
        return SparseRelation(tensors["indices"], tensors["values"], fields["keys"], value_norms=norms)


def _same_pairs(one: Allow, other: Allow) -> bool:
    """No pairs at all, or the same whole heads that look at nothing."""
    if one.pairs is None or other.pairs is None:
        return one.pairs is other.pairs
    return one.of_heads is not None and other.of_heads is not None and torch.equal(one.of_heads, other.of_heads)


FORMS: dict[str, type[Relation]] = {form.form: form for form in (DotRelation, DenseRelation, SparseRelation)}


def masked_softmax(scores: Float[Tensor, "*batch keys"], allow: Tensor | None) -> Float[Tensor, "*batch keys"]:
    """Softmax over the keys that are allowed; the others get exactly zero, and so does a row without any.

    The lowest finite number stands in for -inf, so that a row without any allowed key has no NaN in its gradient.
    """
    if allow is None:
        return scores.softmax(dim=-1)
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~allow, lowest).softmax(dim=-1).masked_fill(~allow, 0.0)


def spread(grouped: Float[Tensor, "batch groups *rest"], heads: int) -> Float[Tensor, "batch heads *rest"]:
    """What groups of heads share, once for each head."""
    groups = grouped.shape[1]
    return grouped if groups == heads else grouped.repeat_interleave(heads // groups, dim=1)


def _of_heads(norms: Tensor | None, heads: Tensor, num_heads: int) -> Tensor | None:
    return None if norms is None else norms[:, heads // (num_heads // norms.shape[1])]


def _with_norms(kept: dict[str, Tensor], norms: Tensor | None) -> dict[str, Tensor]:
    return kept if norms is None else {**kept, "value_norms": norms}


# The form that is made of others stands in a file of its own and adds itself to `FORMS`, whichever is imported first.
importlib.import_module("regard.core.grouped")
