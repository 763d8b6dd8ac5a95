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
from regard.tasks.decoding.scores import best


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

    def _pick(self, scores: Float[Tensor, "batch beams vocabulary"]) -> Int[Tensor, "batch width"]:
        values, tokens = self._candidates(scores)
        probabilities = (values / self.config.temperature).softmax(-1)
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
        return (drawn if tokens is None else tokens.gather(-1, drawn)).flatten(1)

    def _candidates(
        self, scores: Float[Tensor, "batch beams vocabulary"]
    ) -> tuple[Float[Tensor, "batch beams candidates"], Int[Tensor, "batch beams candidates"] | None]:
        """What is drawn from; None stands for the whole vocabulary in its own order, which needs no sorting."""
        if self.config.top_k is not None:
            return best(scores, self.config.top_k)
        if self.config.top_p < 1:
            values, tokens = scores.sort(dim=-1, descending=True, stable=True)
            return values, tokens
        return scores, None


def _mixed(seed: int, position: int) -> int:
    """One number from two, such that neighbours in either have nothing in common."""
    return int(np.random.SeedSequence((seed, position)).generate_state(1, np.uint64)[0])
