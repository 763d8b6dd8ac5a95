"""From features to log-probabilities and to the few best of them.

On a CPU the fused log-softmax is quicker than a log-sum-exp, which torch does in several passes; on top of that it
gives the same rounding as a softmax over the whole vocabulary elsewhere, so that near ties fall alike. Finding the
best tokens is then the slow part, because torch looks at one number after another; hence the two stages below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

# So many numbers are normalised and ranked at once: 2 MB.
_ROWS_OF = 1 << 19

_BLOCK = 64
# Fewer blocks than this, times the wanted number, and one pass over everything is quicker.
_MIN_BLOCKS = 7


@dataclass(frozen=True)
class Candidates:
    """The tokens that may come next, with their log-probabilities; without `tokens`, the whole vocabulary in order."""

    scores: Float[Tensor, "batch beams candidates"]
    tokens: Int[Tensor, "batch beams candidates"] | None = None

    def best(self, count: int) -> tuple[Float[Tensor, "batch beams count"], Int[Tensor, "batch beams count"]]:
        """The best of them, best first."""
        if self.tokens is None:
            return best(self.scores, count)
        return self.scores[..., :count], self.tokens[..., :count]


def candidates(
    readout: nn.Linear,
    features: Float[Tensor, "batch beams features"],
    forbidden: Int[Tensor, "forbidden"],
    count: int | None,
) -> Candidates:
    """The `count` best next tokens of each hypothesis, best first, or all of them.

    A few rows at a time, so that what is made of them on the way to the few stays near the processor.
    """
    if count is None:
        return Candidates(log_probabilities(readout, features, forbidden))
    logits = readout(features)
    rows = max(1, _ROWS_OF // logits.shape[-1]) if logits.device.type == "cpu" else logits.shape[:-1].numel()
    found = [best(_normalised(part, forbidden), count) for part in logits.flatten(0, 1).split(rows)]
    values, tokens = (torch.cat(parts).unflatten(0, features.shape[:2]) for parts in zip(*found, strict=True))
    return Candidates(values, tokens)


def log_probabilities(
    readout: nn.Linear, features: Float[Tensor, "batch width features"], forbidden: Int[Tensor, "forbidden"]
) -> Float[Tensor, "batch width vocabulary"]:
    """In float32 whatever the features are; forbidden tokens have -inf, the others keep what they had."""
    return _normalised(readout(features), forbidden)


def _normalised(logits: Tensor, forbidden: Tensor) -> Tensor:
    # Converted first: asked to do it on the way, torch takes eight times as long on a CPU.
    return logits.float().log_softmax(-1).index_fill_(-1, forbidden, -math.inf)


def best(
    scores: Float[Tensor, "*rows choices"], count: int
) -> tuple[Float[Tensor, "*rows count"], Int[Tensor, "*rows count"]]:
    """The highest scores and where they are, highest first; all of them if there are fewer than `count`.

    The `count` best lie in the `count` blocks with the highest maxima, and a maximum is found many numbers at a time.
    """
    choices = scores.shape[-1]
    count = min(count, choices)
    num_blocks = choices // _BLOCK
    if num_blocks < _MIN_BLOCKS * count:
        values, places = scores.topk(count)
        return values, places
    blocked = num_blocks * _BLOCK
    blocks = scores[..., :blocked].unflatten(-1, (num_blocks, _BLOCK))
    chosen = blocks.amax(-1).topk(count).indices[..., None]
    candidates = blocks.gather(-2, chosen.expand(*chosen.shape[:-1], _BLOCK)).flatten(-2)
    places = (chosen * _BLOCK + torch.arange(_BLOCK, device=scores.device)).flatten(-2)
    if blocked < choices:
        rest = torch.arange(blocked, choices, device=scores.device).expand(*scores.shape[:-1], -1)
        candidates = torch.cat((candidates, scores[..., blocked:]), -1)
        places = torch.cat((places, rest), -1)
    values, order = candidates.topk(count)
    return values, places.gather(-1, order)
