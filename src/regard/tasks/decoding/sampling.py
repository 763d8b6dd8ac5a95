"""Drawing tokens at random, in a way that does not depend on which sentences share the batch.

Each sentence has a generator of its own, seeded by (seed, its position in the data), which gives all its random
numbers before the first step: uniform ones, one a token. A token is then found by inverting the cumulative
distribution: p' ∝ p ** (1 / temperature), restricted to the `top_k` likeliest tokens and of these to the fewest
that together have the probability `top_p` (the one that reaches it included).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.tasks.decoding.chains import Chains
from regard.tasks.decoding.config import DecodingConfig
from regard.tasks.decoding.scores import Candidates


class Sampling(Chains):
    """`num_best` independent draws of each sentence; `positions` says which sentences these are."""

    def __init__(
        self, limits: Int[Tensor, "batch"], vocabulary: int, config: DecodingConfig, positions: Sequence[int]
    ) -> None:
        super().__init__(limits, config.num_best, vocabulary, config.length_penalty)
        self.config = config
        uniforms = torch.zeros(self.max_steps, len(positions), self.width)
        for column, (position, limit) in enumerate(zip(positions, limits.tolist(), strict=True)):
            generator = torch.Generator().manual_seed(_mixed(config.seed, position))
            uniforms[:limit, column] = torch.rand(self.width, limit, generator=generator).T
        self._uniforms = uniforms.to(limits.device)

    @property
    def num_candidates(self) -> int | None:
        return self.config.top_k

    def _pick(self, candidates: Candidates) -> tuple[Float[Tensor, "batch width"], Int[Tensor, "batch width"]]:
        scores, tokens = candidates.scores, candidates.tokens
        if tokens is None and self.config.top_p < 1:  # without it, the vocabulary's own order needs no sorting
            scores, tokens = scores.sort(dim=-1, descending=True, stable=True)
        probabilities = (scores / self.config.temperature).softmax(-1)
        cumulative = probabilities.cumsum(-1)
        if self.config.top_p < 1:
            inside = cumulative - probabilities < self.config.top_p
            cumulative = probabilities.where(inside, 0).cumsum(-1)
        # Before the chains part, all draws of a sentence come from its one row; afterwards each has its own.
        uniforms = self._uniforms[self.steps][self.sentences].unflatten(1, (scores.shape[1], -1))
        # A uniform number is below 1, so its product is below the total: no token of probability 0 is ever met.
        drawn = torch.searchsorted(cumulative, uniforms * cumulative[..., -1:], right=True)
        # Holds only for numbers; where the model gave none the index is made harmless, and `decode` reports it.
        drawn = drawn.clamp(max=cumulative.shape[-1] - 1)
        written = drawn if tokens is None else tokens.gather(-1, drawn)
        return scores.gather(-1, drawn).flatten(1), written.flatten(1)


def _mixed(seed: int, position: int) -> int:
    """One number from two, such that neighbours in either have nothing in common."""
    return int(np.random.SeedSequence((seed, position)).generate_state(1, np.uint64)[0])
