"""What a mechanism is: scores, then weights, then context. A new one is a class with a method `scores`::

    @mechanisms.register("cosine")
    class CosineAttention(ScoreAttention):
        def scores(self, queries, keys):
            return 10 * F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).transpose(-1, -2)

From then on `--attention cosine` trains it, recordings see it and the contracts test it. A mechanism is made
with (queries_width, keys_width, width): the sizes it is given and the size it may use inside.

Queries are (batch, queries, width) or, inside multi-head attention, (batch, heads, queries, width); `scores`
always sees the latter, with one head where there are none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.kernels import Bias, attend
from regard.core.bias import OffsetBias
from regard.core.context import context_of
from regard.core.dropout import dropout
from regard.core.errors import ConfigError
from regard.core.masked import MaskedRelation
from regard.core.masks import AllowLike, as_allow
from regard.core.registry import Registry
from regard.core.relations import DenseRelation, masked_softmax
from regard.core.tap import Tap

mechanisms: Registry[type[Mechanism]] = Registry(
    "attention mechanism", hint="A mechanism of your own is made known with `--import your_file.py`."
)


class Mechanism(nn.Module, ABC):
    """context = mechanism(queries, keys, values, allow=...); its weights leave through `tap`, before dropout."""

    def __init__(self, queries_width: int, keys_width: int, width: int) -> None:
        super().__init__()
        self.queries_width = queries_width
        self.keys_width = keys_width
        self.width = width
        self.dropout_rate = 0.0
        self.tap = Tap("queries", "keys")

    def prepare(self, keys: Float[Tensor, "*batch keys keys_width"]) -> Tensor:
        """What is computed once for all queries, such as projected keys."""
        return keys

    def forward(
        self,
        queries: Float[Tensor, "*batch queries queries_width"],
        keys: Float[Tensor, "*batch keys keys_width"],
        values: Float[Tensor, "*batch keys value_width"],
        *,
        allow: AllowLike = None,
        bias: Bias | None = None,
    ) -> Float[Tensor, "*batch queries value_width"]:
        return self.attend(queries, self.prepare(keys), values, allow=allow, bias=bias)

    def attend(
        self,
        queries: Float[Tensor, "*batch queries queries_width"],
        prepared: Tensor,
        values: Float[Tensor, "*batch keys value_width"],
        *,
        allow: AllowLike = None,
        bias: Bias | None = None,
    ) -> Float[Tensor, "*batch queries value_width"]:
        """The context, from keys that have been through `prepare`."""
        if queries.dim() == 3:
            return self._attend(queries[:, None], prepared[:, None], values[:, None], allow, bias)[:, 0]
        return self._attend(queries, prepared, values, allow, bias)

    @abstractmethod
    def _attend(self, queries: Tensor, prepared: Tensor, values: Tensor, allow: AllowLike, bias: Bias | None) -> Tensor:
        """The same with a head axis always present."""

    @property
    def _dropout_now(self) -> float:
        return self.dropout_rate if self.training else 0.0


class ScoreAttention(Mechanism):
    """Softmax over scores that are computed for every pair."""

    @abstractmethod
    def scores(
        self, queries: Float[Tensor, "batch heads queries queries_width"], keys: Tensor
    ) -> Float[Tensor, "batch heads queries keys"]:
        """How relevant each key is to each query; `keys` have been through `prepare`."""

    def _attend(self, queries: Tensor, prepared: Tensor, values: Tensor, allow: AllowLike, bias: Bias | None) -> Tensor:
        scores = self.scores(queries, prepared)
        batch, heads, num_queries, num_keys = scores.shape
        allow = as_allow(allow)
        allow.check(batch, heads, num_queries, num_keys)
        if isinstance(bias, OffsetBias):
            scores = scores + bias.block(0, num_queries, num_queries, num_keys)
        elif bias is not None:
            scores = scores + bias
        mask = allow.simplified(num_queries).matrix(num_queries, num_keys, scores.device)
        weights = masked_softmax(scores, mask)
        if self.tap.edited:
            context = context_of(self.tap.change(MaskedRelation(weights, allowed=mask)), values, self._dropout_now)
        else:
            context = dropout(weights, self._dropout_now, self.training) @ values
        if self.tap.open:
            detached = weights.detach()
            self.tap.emit(
                lambda: MaskedRelation(detached, allowed=mask) if self.tap.edited else DenseRelation(detached),
                values,
                context,
            )
        return context


class DotAttention(Mechanism):
    """Softmax over dot products of keys with (possibly projected) queries: runs on the fused kernels."""

    scale: float | None = 1.0

    def project(self, queries: Tensor) -> Tensor:
        """The queries that are multiplied with the keys."""
        return queries

    def _attend(self, queries: Tensor, prepared: Tensor, values: Tensor, allow: AllowLike, bias: Bias | None) -> Tensor:
        return attend(
            self.project(queries),
            prepared,
            values,
            allow=allow,
            bias=bias,
            scale=self.scale,
            dropout_rate=self._dropout_now,
            tap=self.tap,
        )


def build_mechanism(
    name: str,
    queries_width: int,
    keys_width: int,
    width: int,
    *,
    queries: str,
    keys: str,
    dropout_rate: float = 0.0,
) -> Mechanism:
    """A registered mechanism with its sizes, the axes it relates and the dropout of its weights."""
    mechanism = mechanisms[name](queries_width, keys_width, width)
    mechanism.tap = Tap(queries, keys)
    mechanism.dropout_rate = dropout_rate
    return mechanism


def require_equal_widths(name: str, queries_width: int, keys_width: int) -> None:
    if queries_width != keys_width:
        raise ConfigError(
            f"{name} attention multiplies queries with keys and needs them equally wide, but the queries have "
            f"{queries_width} numbers and the keys {keys_width}. Make them equal, or take `bilinear` or `additive`, "
            f"which have a matrix between the two."
        )


def describe(mechanism: type[Any]) -> str:
    """The first line of a mechanism's docstring, for lists."""
    return (mechanism.__doc__ or "").strip().splitlines()[0] if mechanism.__doc__ else ""
