"""Beam search with length normalisation, with the rules of the `transformers` library (early_stopping=False).

Each step ranks all continuations of all `width` running hypotheses by their log-probability and looks at the best
`2 * width`. At most `width` of these end with EOS, so `width` that go on are always among them.

- A continuation by EOS is complete, but it counts only if it is one of the best `width`.
- The `width` best complete ones, by log-probability / length ** penalty, are remembered.
- At the length limit the best `width` continuations are complete, with EOS or without.
- A sentence is done once it has `width` complete hypotheses and the best running one, normalised by its present
  length, is not above the worst of them. (With a positive penalty a longer one could still get there: this is
  the usual bet, not a proof.)

Departures: where fewer hypotheses exist than places (a vocabulary of a few tokens), the free places stay free.
Ties go to the better running hypothesis, and among complete ones to the earlier.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from regard.data.special import EOS
from regard.tasks.decoding.scores import Candidates
from regard.tasks.decoding.search import Search


class BeamSearch(Search):
    """`sums` holds the running hypotheses of a sentence, best first."""

    @property
    def num_candidates(self) -> int:
        return 2 * self.width

    def _choose(self, candidates: Candidates, at_limit: Bool[Tensor, "batch"]) -> Int[Tensor, "batch width"]:
        sums, addresses = self._ranked(candidates)
        ends = (addresses % self.vocabulary == EOS) | at_limit[:, None]

        counted = ends[:, : self.width] & ~self.done[:, None]
        ended = self._end(counted, sums[:, : self.width], addresses[:, : self.width])
        self._ended = self._ended.best_with(ended)

        running, order = torch.where(ends, -math.inf, sums).sort(dim=1, descending=True, stable=True)
        self.sums = running[:, : self.width]
        # Written so that a sum that is not a number ends the sentence too.
        self.done = self.done | ~(self._normalised(self.sums[:, 0]) > self._ended.scores[:, -1])
        return addresses.gather(1, order[:, : self.width])

    def _ranked(
        self, candidates: Candidates
    ) -> tuple[Float[Tensor, "batch candidates"], Int[Tensor, "batch candidates"]]:
        """The best continuations by log-probability, best first, twice as many as there are beams.

        None of them can lie outside the best of its own beam, so that the vocabulary is searched once for each
        beam, and never as a whole for all beams.
        """
        count = self.num_candidates
        values, tokens = candidates.best(count)
        beams = torch.arange(values.shape[1], device=values.device)[:, None]
        sums = (self.sums[..., None] + values).flatten(1)
        addresses = (beams * self.vocabulary + tokens).flatten(1)
        missing = max(0, count - sums.shape[1])
        sums = functional.pad(sums, (0, missing), value=-math.inf)
        addresses = functional.pad(addresses, (0, missing))
        sums, order = sums.sort(dim=1, descending=True, stable=True)
        return sums[:, :count], addresses.gather(1, order[:, :count])
