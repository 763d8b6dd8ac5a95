"""Additive attention (Bahdanau, Cho and Bengio 2015; decks A, C and D): a small network scores each pair.

    s_jk = w . tanh(W_q q_j + W_k k_k)        split, as deck D writes it: `AdditiveAttention`
    s_jk = w . tanh(W [q_j; k_k])             concatenated, as decks A and C write it

Both are the same function: W is [W_q | W_k] side by side. The keys' half does not depend on the query, so it is
computed once for all queries (`prepare`) in either spelling.

Symbols of Bahdanau's paper: w is v_a, W_q is W_a, W_k is U_a, queries are s_{i-1}, keys and values are h_j.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.mechanism import ScoreAttention, mechanisms
from regard.core.linear import Linear


@mechanisms.register("additive")
class AdditiveAttention(ScoreAttention):
    """w . tanh(W_q q + W_k k), with one matrix for queries and one for keys (Bahdanau)"""

    def __init__(self, queries_width: int, keys_width: int, width: int) -> None:
        super().__init__(queries_width, keys_width, width)
        self.query_projection = Linear(queries_width, width, bias=False)
        self.key_projection = Linear(keys_width, width, bias=False)
        self.energy = Linear(width, 1, bias=False)

    def prepare(self, keys: Float[Tensor, "*batch keys keys_width"]) -> Float[Tensor, "*batch keys width"]:
        return self.key_projection(keys)

    def scores(
        self, queries: Float[Tensor, "batch heads queries queries_width"], keys: Float[Tensor, "batch heads keys width"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        return additive_scores(self.query_projection(queries), keys, self.energy.weight[0])


@mechanisms.register("additive_concatenated")
class ConcatenatedAdditiveAttention(ScoreAttention):
    """w . tanh(W [q; k]), with one matrix over query and key side by side (the decks' other spelling)"""

    def __init__(self, queries_width: int, keys_width: int, width: int) -> None:
        super().__init__(queries_width, keys_width, width)
        self.projection = Linear(queries_width + keys_width, width, bias=False)
        self.energy = Linear(width, 1, bias=False)

    def prepare(self, keys: Float[Tensor, "*batch keys keys_width"]) -> Float[Tensor, "*batch keys width"]:
        return nn.functional.linear(keys, self.projection.weight[:, self.queries_width :])

    def scores(
        self, queries: Float[Tensor, "batch heads queries queries_width"], keys: Float[Tensor, "batch heads keys width"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        projected = nn.functional.linear(queries, self.projection.weight[:, : self.queries_width])
        return additive_scores(projected, keys, self.energy.weight[0])


def additive_scores(
    queries: Float[Tensor, "*batch queries width"],
    keys: Float[Tensor, "*batch keys width"],
    energy: Float[Tensor, "width"],
) -> Float[Tensor, "*batch queries keys"]:
    """energy . tanh(query + key) for every pair."""
    return torch.tanh(queries[..., :, None, :] + keys[..., None, :, :]) @ energy
