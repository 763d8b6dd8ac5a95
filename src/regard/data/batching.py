"""Which examples go into a batch together: similar lengths side by side, so that little of a batch is padding.

A batch is padded to its longest source and its longest target. Its cost is

    number of pairs * longest side of any of them (source or target, `num_special` tokens included)

and stays within the token budget; only a pair that is longer than the whole budget makes a batch of its own. An epoch
shuffles all examples, cuts them into pools of some `POOL_BATCHES` batches, sorts each pool by length, cuts it into
batches, and shuffles the batches.

The order is a pure function of the lengths, the budget, the seed and the epoch's number, which is what lets a killed
run go on exactly where it was: nothing else need be remembered than the epoch and the number of batches done. It is
made from the raw bits of PCG64, which numpy promises not to change, and not from `Generator.permutation`.
"""

from __future__ import annotations

from typing import final

import numpy as np
from jaxtyping import Int, Int64

from regard.core.errors import ConfigError

POOL_BATCHES = 40
"""More leave less padding, fewer make batches more random; a small corpus is still cut into two pools."""

FEWEST_BATCHES = 4
"""But not into smaller pools than this."""

Batch = Int64[np.ndarray, " _"]


@final
class BatchPlan:
    """The batches of every epoch over examples of given `lengths` (source and target, or any number of sides)."""

    def __init__(
        self,
        lengths: Int[np.ndarray, "pairs sides"],
        *,
        token_budget: int,
        seed: int,
        num_special: int = 1,
        max_pairs: int | None = None,
    ) -> None:
        """`num_special` is what training adds to each side (EOS, say); `max_pairs` bounds a batch of short ones."""
        if token_budget < 1:
            raise ConfigError(f"A token budget of {token_budget} holds no sentence; some thousands are usual.")
        if max_pairs is not None and max_pairs < 1:
            raise ConfigError(f"A batch of at most {max_pairs} pairs is empty; choose 1 or more.")
        if seed < 0:
            raise ConfigError(f"A seed is 0 or more, not {seed}.")
        assert len(lengths), "nothing to make batches of"
        self.token_budget = token_budget
        self.seed = seed
        self._max_pairs = len(lengths) if max_pairs is None else max_pairs
        self._lengths = lengths.astype(np.int32) + num_special
        self._longest = self._lengths.max(axis=1)
        pairs_per_batch = min(self._max_pairs, max(1, int(token_budget / self._longest.mean())))
        half = len(lengths) // (2 * pairs_per_batch)  # in a pool with all examples batches would stay alike for ever
        self._pool = pairs_per_batch * min(POOL_BATCHES, max(FEWEST_BATCHES, half))

    def epoch(self, number: int) -> list[Batch]:
        """The batches of epoch `number` (from 0), each example in exactly one of them."""
        random = np.random.PCG64(np.random.SeedSequence((self.seed, number)))
        order = np.argsort(random.random_raw(len(self._lengths)), kind="stable")
        batches: list[Batch] = []
        for start in range(0, len(order), self._pool):
            batches += self._cut(self._by_length(order[start : start + self._pool]))
        return [batches[index] for index in np.argsort(random.random_raw(len(batches)), kind="stable")]

    def sequential(self) -> list[Batch]:
        """All examples once, longest first, so that what does not fit in memory shows at once; for evaluation."""
        order = self._by_length(np.arange(len(self._lengths)))
        return self._cut(order[::-1])

    def padding_rate(self, batches: list[Batch]) -> float:
        """The share of the padded batches, both sides together, that holds no token."""
        padded = sum(len(batch) * int(self._lengths[batch].max(axis=0).sum()) for batch in batches)
        return 1 - sum(int(self._lengths[batch].sum()) for batch in batches) / padded

    def _by_length(self, examples: Batch) -> Batch:
        """Sorted by the longest side, which fixes a batch's size, and among equals by how much longer the first is:
        up and down in turn, so that where two groups meet both sides are alike."""
        longest = self._longest[examples]
        surplus = self._lengths[examples, 0] - self._lengths[examples, -1]
        return examples[np.lexsort((np.where(longest % 2, -surplus, surplus), longest))]

    def _cut(self, examples: Batch) -> list[Batch]:
        """As many neighbours at a time as the budget holds."""
        longest = self._longest[examples]
        batches: list[Batch] = []
        start = 0
        while start < len(examples):
            most = min(self._max_pairs, max(1, self.token_budget // int(longest[start])))
            padded = np.maximum.accumulate(longest[start : start + most])
            fits = padded * np.arange(1, len(padded) + 1, dtype=np.int64) <= self.token_budget
            size = max(1, int(np.count_nonzero(fits)))
            batches.append(examples[start : start + size])
            start += size
        return batches
