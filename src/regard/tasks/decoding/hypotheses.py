"""What a search hands back, and how token sequences are read out of the links it kept.

While searching, a hypothesis is one number, its address: which of the sentence's hypotheses it continues
(`beam`), and with which token, as `beam * vocabulary + token`. The addresses of every step are kept; one that
ended also says at which step. Nothing as long as a sentence is copied while searching: the tokens are found
once, at the end, by walking the addresses backwards, for all hypotheses at the same time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.special import EOS


@dataclass(frozen=True)
class Hypothesis:
    """One way to write the sentence."""

    tokens: tuple[int, ...]
    """Without BOS and EOS."""

    log_probability: float
    """What the model gives these tokens (and EOS, where it was reached), whatever they were drawn from."""

    score: float
    """The log-probability normalised by length; the best hypothesis has the highest."""

    finished: bool
    """Whether EOS was reached before the length limit."""


@dataclass(frozen=True)
class Ended:
    """The hypotheses that are complete, for some sentences; a free place has the score -inf."""

    scores: Float[Tensor, "batch places"]
    log_probabilities: Float[Tensor, "batch places"]
    addresses: Int[Tensor, "batch places"]

    @classmethod
    def none(cls, batch: int, places: int, device: torch.device) -> Ended:
        nothing = torch.full((batch, places), -math.inf, device=device)
        return cls(nothing, nothing.clone(), torch.zeros(batch, places, dtype=torch.long, device=device))

    def keep(self, sentences: Int[Tensor, "kept"]) -> Ended:
        """Only these sentences."""
        return Ended(self.scores[sentences], self.log_probabilities[sentences], self.addresses[sentences])

    def write(self, sentences: Int[Tensor, "kept"], ended: Ended) -> None:
        """Puts `ended` into the places of these sentences."""
        self.scores.index_copy_(0, sentences, ended.scores)
        self.log_probabilities.index_copy_(0, sentences, ended.log_probabilities)
        self.addresses.index_copy_(0, sentences, ended.addresses)

    def replaced(self, places: Bool[Tensor, "batch places"], others: Ended) -> Ended:
        """The others' entries in these places."""
        return Ended(
            others.scores.where(places, self.scores),
            others.log_probabilities.where(places, self.log_probabilities),
            others.addresses.where(places, self.addresses),
        )

    def best_with(self, others: Ended) -> Ended:
        """The best of these and the others, as many as there are places, best first; who came first wins ties."""
        scores, order = torch.cat((self.scores, others.scores), 1).sort(dim=1, descending=True, stable=True)
        places = self.scores.shape[1]
        order = order[:, :places]
        return Ended(
            scores[:, :places],
            torch.cat((self.log_probabilities, others.log_probabilities), 1).gather(1, order),
            torch.cat((self.addresses, others.addresses), 1).gather(1, order),
        )


def read(
    ended: Ended, history: Int[Tensor, "steps batch width"], vocabulary: int, num_best: int
) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence as tokens, best first; those whose score is not finite are left out."""
    history = history.cpu()
    width = history.shape[2]
    addresses = ended.addresses.cpu()
    last_steps, addresses = addresses // (width * vocabulary), addresses % (width * vocabulary)
    tokens = torch.zeros(len(history), *addresses.shape, dtype=torch.long)
    for step in reversed(range(len(history))):
        reached = last_steps >= step
        tokens[step] = addresses % vocabulary
        if step > 0:
            earlier = history[step - 1].gather(1, addresses // vocabulary)
            addresses = torch.where(reached, earlier, addresses)
    sentences = zip(
        tokens.permute(1, 2, 0).tolist(),
        last_steps.tolist(),
        ended.log_probabilities.tolist(),
        ended.scores.tolist(),
        strict=True,
    )
    return [_sentence(list(zip(*sentence, strict=True)), num_best) for sentence in sentences]


def _sentence(places: list[tuple[list[int], int, float, float]], num_best: int) -> list[Hypothesis]:
    hypotheses = []
    for tokens, last_step, log_probability, score in places:
        if math.isfinite(score):
            finished = tokens[last_step] == EOS
            written = tuple(tokens[: last_step if finished else last_step + 1])
            hypotheses.append(Hypothesis(written, log_probability, score, finished))
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[:num_best]
