"""Hypotheses that go their own ways: greedy decoding is one chain, sampling is as many as are asked for."""

from __future__ import annotations

from abc import abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.special import EOS
from regard.tasks.decoding.scores import Candidates
from regard.tasks.decoding.search import Search


class Chains(Search):
    """A chain ends with EOS or at the length limit, a sentence when all its chains have."""

    def _choose(self, candidates: Candidates, at_limit: Bool[Tensor, "batch"]) -> Int[Tensor, "batch width"]:
        scores, tokens = self._pick(candidates)
        # Before the chains part there is one hypothesis, which they all continue.
        origins = torch.arange(self.width, device=tokens.device) if self.steps > 0 else tokens.new_zeros(self.width)
        sums = self.sums + scores
        addresses = origins * self.vocabulary + tokens

        # A place that is taken belongs to a chain that has ended: what it would write further is nobody's.
        open_chains = self._ended.scores.isneginf()
        ends = ((tokens == EOS) | at_limit[:, None]) & open_chains
        self._ended = self._ended.replaced(ends, self._end(ends, sums, addresses))
        self.sums = sums
        self.done = (ends | ~open_chains).all(1)
        return addresses

    @abstractmethod
    def _pick(self, candidates: Candidates) -> tuple[Float[Tensor, "batch width"], Int[Tensor, "batch width"]]:
        """The next token of each chain with its score; there is one row of candidates before the chains part."""


class Greedy(Chains):
    """The most likely token each time, which is beam search of width 1."""

    @property
    def num_candidates(self) -> int:
        # Beam search of width 1 asks for two as well: equal scores then fall the same way in both.
        return 2

    def _pick(self, candidates: Candidates) -> tuple[Float[Tensor, "batch width"], Int[Tensor, "batch width"]]:
        scores, tokens = candidates.best(2)
        return scores[..., 0], tokens[..., 0]
