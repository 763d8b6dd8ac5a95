"""Hypotheses that go their own ways: greedy decoding is one chain, sampling is as many as are asked for."""

from __future__ import annotations

from abc import abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.special import EOS
from regard.tasks.decoding.scores import best
from regard.tasks.decoding.search import Search


class Chains(Search):
    """A chain ends with EOS or at the length limit, a sentence when all its chains have."""

    def _choose(
        self, scores: Float[Tensor, "batch beams vocabulary"], at_limit: Bool[Tensor, "batch"]
    ) -> Int[Tensor, "batch width"]:
        tokens = self._pick(scores)
        if self.steps == 0:
            scores = scores.expand(-1, self.width, -1)
            origins = torch.zeros(self.width, dtype=torch.long, device=scores.device)
        else:
            origins = torch.arange(self.width, device=scores.device)
        sums = self.sums + scores.gather(2, tokens[..., None])[..., 0]
        addresses = origins * self.vocabulary + tokens

        # A place that is taken belongs to a chain that has ended: what it would write further is nobody's.
        open_chains = self._ended.scores.isneginf()
        ends = ((tokens == EOS) | at_limit[:, None]) & open_chains
        self._ended = self._ended.replaced(ends, self._end(ends, sums, addresses))
        self.sums = sums
        self.done = (ends | ~open_chains).all(1)
        return addresses

    @abstractmethod
    def _pick(self, scores: Float[Tensor, "batch beams vocabulary"]) -> Int[Tensor, "batch width"]:
        """The next token of each chain; there is one row of scores before the chains part."""


class Greedy(Chains):
    """The most likely token each time, which is beam search of width 1."""

    def _pick(self, scores: Float[Tensor, "batch beams vocabulary"]) -> Int[Tensor, "batch width"]:
        # Beam search of width 1 asks for two as well: equal scores then fall the same way in both.
        return best(scores, 2)[1][..., 0]
