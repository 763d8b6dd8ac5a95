"""Multi-head attention: several small attentions beside each other (Vaswani et al. 2017; decks A to E).

    head_h = Attention(X W_Q^(h), Y W_K^(h), Y W_V^(h)),   T = [head_1, ..., head_H] W_0

| class | queries from | keys and values from | projections |
| --- | --- | --- | --- |
| `MultiHeadSelfAttention` | X | X | every head sees all of X (Vaswani) |
| `SplitHeadSelfAttention` | X_h | X_h | X is first cut into H pieces, head h sees piece h only (deck D) |
| `MultiHeadCrossAttention` | X | the memory Y | every head sees all of X and Y |

The split variant has H times fewer projection weights (they are the diagonal blocks of the full ones); mixing
between pieces is left to W_0. Any registered mechanism can be the attention inside a head; a mechanism with
parameters shares them between the heads. Our W_0 has a bias, as in every implementation; deck D's has none.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.kernels import Bias
from regard.attention.mechanism import build_mechanism
from regard.core.errors import ConfigError
from regard.core.linear import Linear
from regard.core.masks import AllowLike

Heads = Float[Tensor, "batch heads positions head_width"]


class MultiHeadSelfAttention(nn.Module):
    """Queries, keys and values from one sequence, by one fused projection."""

    def __init__(
        self, width: int, num_heads: int, *, axis: str, mechanism: str = "scaled_dot", dropout_rate: float = 0.0
    ) -> None:
        super().__init__()
        head_width = head_size(width, num_heads)
        self.num_heads = num_heads
        self.projection: nn.Module = Linear(width, 3 * width)
        self.mechanism = build_mechanism(
            mechanism, head_width, head_width, head_width, queries=axis, keys=axis, dropout_rate=dropout_rate
        )
        self.output = Linear(width, width)

    def project(self, inputs: Float[Tensor, "batch positions width"]) -> tuple[Heads, Heads, Heads]:
        queries, keys, values = self.projection(inputs).chunk(3, dim=-1)
        queries, keys, values = (split_heads(part, self.num_heads) for part in (queries, keys, values))
        return queries, self.mechanism.prepare(keys), values

    def forward(
        self,
        inputs: Float[Tensor, "batch positions width"],
        *,
        allow: AllowLike = None,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch positions width"]:
        return self.attend(*self.project(inputs), allow=allow, bias=bias)

    def attend(
        self, queries: Heads, keys: Tensor, values: Tensor, *, allow: AllowLike = None, bias: Bias | None = None
    ) -> Float[Tensor, "batch positions width"]:
        """From projected queries, keys and values; a decoder brings the keys and values of its cache."""
        return self.output(merge_heads(self.mechanism.attend(queries, keys, values, allow=allow, bias=bias)))


class SplitHeadSelfAttention(MultiHeadSelfAttention):
    """Deck D's variant: the input is cut into one piece a head before it is projected."""

    def __init__(
        self, width: int, num_heads: int, *, axis: str, mechanism: str = "scaled_dot", dropout_rate: float = 0.0
    ) -> None:
        super().__init__(width, num_heads, axis=axis, mechanism=mechanism, dropout_rate=dropout_rate)
        self.projection = PiecewiseLinear(width, 3 * width, num_heads)


class PiecewiseLinear(nn.Module):
    """One small linear map for each piece of the input; outputs are ordered as `MultiHeadSelfAttention` expects.

    The output is `parts` blocks (queries, keys, values) of `num_pieces` pieces each.
    """

    def __init__(self, inputs_width: int, outputs_width: int, num_pieces: int) -> None:
        super().__init__()
        self.num_pieces = num_pieces
        self.parts = outputs_width // inputs_width
        piece = inputs_width // num_pieces
        self.weight = nn.Parameter(torch.empty(num_pieces, piece, self.parts * piece))
        self.bias = nn.Parameter(torch.zeros(num_pieces, self.parts * piece))
        nn.init.uniform_(self.weight, -(piece**-0.5), piece**-0.5)

    def forward(self, inputs: Float[Tensor, "batch positions inputs"]) -> Float[Tensor, "batch positions outputs"]:
        pieces = inputs.unflatten(-1, (self.num_pieces, -1))
        outputs = torch.einsum("bnhi,hio->bnho", pieces, self.weight) + self.bias
        return outputs.unflatten(-1, (self.parts, -1)).transpose(-2, -3).flatten(-3)


class MultiHeadCrossAttention(nn.Module):
    """Queries from one sequence, keys and values from a memory that is projected once."""

    def __init__(
        self,
        width: int,
        num_heads: int,
        *,
        queries: str,
        keys: str,
        memory_width: int | None = None,
        mechanism: str = "scaled_dot",
        dropout_rate: float = 0.0,
    ) -> None:
        super().__init__()
        head_width = head_size(width, num_heads)
        self.num_heads = num_heads
        self.query_projection = Linear(width, width)
        self.memory_projection = Linear(memory_width or width, 2 * width)
        self.mechanism = build_mechanism(
            mechanism, head_width, head_width, head_width, queries=queries, keys=keys, dropout_rate=dropout_rate
        )
        self.output = Linear(width, width)

    def project_memory(self, memory: Float[Tensor, "batch keys memory_width"]) -> tuple[Tensor, Heads]:
        """Keys and values of the memory, for all queries to come."""
        keys, values = self.memory_projection(memory).chunk(2, dim=-1)
        return self.mechanism.prepare(split_heads(keys, self.num_heads)), split_heads(values, self.num_heads)

    def forward(
        self,
        inputs: Float[Tensor, "batch queries width"],
        keys: Tensor,
        values: Heads,
        *,
        allow: AllowLike = None,
    ) -> Float[Tensor, "batch queries width"]:
        queries = split_heads(self.query_projection(inputs), self.num_heads)
        return self.output(merge_heads(self.mechanism.attend(queries, keys, values, allow=allow)))


def head_size(width: int, num_heads: int) -> int:
    if num_heads < 1 or width % num_heads:
        raise ConfigError(f"A width of {width} cannot be shared evenly by {num_heads} heads.")
    return width // num_heads


def split_heads(inputs: Float[Tensor, "batch positions width"], num_heads: int) -> Heads:
    return inputs.view(*inputs.shape[:-1], num_heads, inputs.shape[-1] // num_heads).transpose(1, 2)


def merge_heads(heads: Heads) -> Float[Tensor, "batch positions width"]:
    return heads.transpose(1, 2).flatten(2)
