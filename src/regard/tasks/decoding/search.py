"""What all searches have in common: which sentences are still open, what ended, and the links between steps.

The searches are tensors from end to end: one step is a fixed number of operations, whatever the batch, and the
host waits for the device once a step, to learn which sentences are done.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.tasks.decoding.hypotheses import Ended, Hypothesis, read
from regard.tasks.decoding.scores import Candidates


class Search(ABC):
    """Chooses the next tokens of a batch of sentences with `width` hypotheses each.

    `limits` says how many tokens each sentence may have. A sentence that is done keeps what it has found, even
    if its rows are carried along until it pays to take them out with `keep`.
    """

    def __init__(self, limits: Int[Tensor, "batch"], width: int, vocabulary: int, length_penalty: float) -> None:
        device, batch = limits.device, len(limits)
        self.width = width
        self.vocabulary = vocabulary
        self.length_penalty = length_penalty
        self.limits = limits
        self.steps = 0
        self.max_steps = int(limits.max())
        self.sums = torch.zeros(batch, 1, device=device)
        self.done = torch.zeros(batch, dtype=torch.bool, device=device)
        self.sentences = torch.arange(batch, device=device)
        self._ended = Ended.none(batch, width, device)
        self._ended_of_all = Ended.none(batch, width, device)
        self._history = torch.zeros(self.max_steps, batch, width, dtype=torch.long, device=device)

    @property
    @abstractmethod
    def num_candidates(self) -> int | None:
        """How many of the best next tokens of each hypothesis are looked at; None for the whole vocabulary."""

    def advance(self, candidates: Candidates) -> tuple[Int[Tensor, "batch width"], Int[Tensor, "batch width"] | None]:
        """Takes what may come next; returns the tokens chosen and whom they continue.

        The first time there is one hypothesis, later there are `width`. Instead of the second
        tensor, None says that each hypothesis continues itself.
        """
        addresses = self._choose(candidates, self.limits <= self.steps + 1)
        self._history[self.steps].index_copy_(0, self.sentences, addresses)
        self.steps += 1
        return addresses % self.vocabulary, self._beams(addresses)

    @abstractmethod
    def _choose(self, candidates: Candidates, at_limit: Bool[Tensor, "batch"]) -> Int[Tensor, "batch width"]:
        """Addresses of the hypotheses to go on with; updates `sums`, `done` and `_ended`."""

    def _beams(self, addresses: Int[Tensor, "batch width"]) -> Int[Tensor, "batch width"] | None:
        return None if self.width == 1 else addresses // self.vocabulary

    def keep(self, rows: Int[Tensor, "kept"]) -> None:
        """Goes on with these rows of the batch only."""
        self._ended_of_all.write(self.sentences, self._ended)
        self._ended = self._ended.keep(rows)
        self.sums, self.done = self.sums[rows], self.done[rows]
        self.limits, self.sentences = self.limits[rows], self.sentences[rows]

    def hypotheses(self, num_best: int) -> list[list[Hypothesis]]:
        """What was found for each sentence of the first batch, best first."""
        self._ended_of_all.write(self.sentences, self._ended)
        return read(self._ended_of_all, self._history[: self.steps], self.vocabulary, num_best)

    def _end(
        self,
        ends: Bool[Tensor, "batch width"],
        sums: Float[Tensor, "batch width"],
        addresses: Int[Tensor, "batch width"],
    ) -> Ended:
        """The hypotheses that end at this step, as entries; the others of them are free places."""
        scores = torch.where(ends, self._normalised(sums), -math.inf)
        return Ended(scores, sums, addresses + self.steps * self.width * self.vocabulary)

    def _normalised(self, sums: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return sums / (self.steps + 1) ** self.length_penalty
