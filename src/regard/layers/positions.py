"""Where a token stands: what is added to its embedding, or to the scores.

Sinusoidal positions as deck D writes them (Vaswani et al. 2017), sines and cosines side by side:

    p_t^k = sin(2 pi t / T_2i) for k = 2i,  cos(2 pi t / T_2i) for k = 2i + 1,  T_k = 2 pi 10000^(k/d)

so that <p_t, p_t'> depends on |t - t'| only, and p_{t+k} is p_t turned by angles that depend on k only. Marian and
others write the same numbers in halves, all sines first: another order of the width, so the same models, but weights
trained with one order need that order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.bias import OffsetBias
from regard.core.errors import ConfigError, DataError
from regard.core.registry import Registry

positions: Registry[type[Positions]] = Registry("kind of positions")


def sinusoidal_positions(count: int, width: int) -> Float[Tensor, "count width"]:
    """The encodings of positions 0 to count - 1; an odd width ends with a sine."""
    pairs = (width + 1) // 2
    periods = 2 * math.pi * 10000.0 ** (2 * torch.arange(pairs, dtype=torch.float64) / width)
    angles = 2 * math.pi * torch.arange(count, dtype=torch.float64)[:, None] / periods
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width].float()


class Positions(nn.Module, ABC):
    """Adds nothing, or a vector, to each embedding; may have a bias for scores between positions."""

    def __init__(self, width: int, num_heads: int, max_length: int) -> None:
        super().__init__()
        self.width = width
        self.max_length = max_length

    @abstractmethod
    def forward(self, embeddings: Float[Tensor, "batch length width"], start: int = 0) -> Tensor:
        """The embeddings with their positions; `start` is the position of the first."""

    def bias(self, num_queries: int, num_keys: int) -> OffsetBias | None:
        """What is added to the scores of self-attention."""
        return None


@positions.register("none")
class NoPositions(Positions):
    """Nothing: the model cannot tell one order of the tokens from another"""

    def forward(self, embeddings: Float[Tensor, "batch length width"], start: int = 0) -> Tensor:
        return embeddings


@positions.register("sinusoidal")
class SinusoidalPositions(Positions):
    """Sines and cosines of deck D; no parameters, any length"""

    table: Tensor

    def __init__(self, width: int, num_heads: int, max_length: int) -> None:
        super().__init__(width, num_heads, max_length)
        self.register_buffer("table", self.encodings(max_length), persistent=False)

    def encodings(self, count: int) -> Float[Tensor, "count width"]:
        return sinusoidal_positions(count, self.width)

    def forward(self, embeddings: Float[Tensor, "batch length width"], start: int = 0) -> Tensor:
        stop = start + embeddings.shape[1]
        table = self.table
        if stop > len(table):  # longer than expected: computed for this call, nothing is kept
            table = self.encodings(stop).to(embeddings.device)
        return embeddings + table[start:stop]


@positions.register("sinusoidal_halves")
class HalvedSinusoidalPositions(SinusoidalPositions):
    """The same numbers with all sines before all cosines, as Tensor2Tensor and Marian lay them out"""

    def encodings(self, count: int) -> Float[Tensor, "count width"]:
        interleaved = sinusoidal_positions(count, self.width)
        return torch.cat([interleaved[:, 0::2], interleaved[:, 1::2]], dim=1)


@positions.register("learned")
class LearnedPositions(Positions):
    """One learned vector a position; longer inputs than `max_length` are refused"""

    def __init__(self, width: int, num_heads: int, max_length: int) -> None:
        super().__init__(width, num_heads, max_length)
        self.table = nn.Parameter(torch.randn(max_length, width) * width**-0.5)

    def forward(self, embeddings: Float[Tensor, "batch length width"], start: int = 0) -> Tensor:
        stop = start + embeddings.shape[1]
        if stop > self.max_length:
            raise DataError(
                f"A sequence of {stop} tokens is longer than the {self.max_length} learned positions of this model. "
                f"Shorten it, or train with a larger `--model.max-length` or with sinusoidal positions."
            )
        return embeddings + self.table[start:stop]


@positions.register("relative")
class RelativePositions(Positions):
    """A learned bias a head for each distance up to `radius`; farther ones share the last"""

    radius = 16

    def __init__(self, width: int, num_heads: int, max_length: int) -> None:
        super().__init__(width, num_heads, max_length)
        if num_heads < 1:
            raise ConfigError("Relative positions need at least one head.")
        self.by_distance = nn.Parameter(torch.zeros(num_heads, 2 * self.radius + 1))

    def forward(self, embeddings: Float[Tensor, "batch length width"], start: int = 0) -> Tensor:
        return embeddings

    def bias(self, num_queries: int, num_keys: int) -> OffsetBias:
        offsets = torch.arange(1 - num_keys, num_queries, device=self.by_distance.device)
        return OffsetBias(self.by_distance[:, offsets.clamp(-self.radius, self.radius) + self.radius])
