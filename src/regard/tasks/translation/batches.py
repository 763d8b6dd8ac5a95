"""Sentence pairs as padded tensors: what the model reads, and what it should have written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.core.special import BOS, EOS, PAD
from regard.data.batching import BatchPlan
from regard.data.tokenized import TokenizedCorpus

Ids = Sequence[int] | np.ndarray


@final
@dataclass(frozen=True)
class TranslationBatch:
    """`target_in` starts with BOS, `target_out` ends with EOS; the source ends with EOS, too."""

    source: Int[Tensor, "batch sources"]
    target_in: Int[Tensor, "batch targets"]
    target_out: Int[Tensor, "batch targets"]


@final
class TranslationBatches:
    """A tokenised corpus, batched by a plan; counts target tokens with their EOS."""

    def __init__(self, corpus: TokenizedCorpus, *, token_budget: int, seed: int) -> None:
        self.corpus = corpus
        self.plan = BatchPlan(corpus.lengths, token_budget=token_budget, seed=seed)
        self._things = corpus.lengths[:, 1] + 1

    def epoch(self, number: int) -> Sequence[np.ndarray]:
        return self.plan.epoch(number)

    def sequential(self) -> Sequence[np.ndarray]:
        """All examples once, for evaluation."""
        return self.plan.sequential()

    def count(self, indices: np.ndarray) -> int:
        return int(self._things[indices].sum())

    def collate(self, indices: np.ndarray) -> TranslationBatch:
        return collate([self.corpus[int(index)] for index in indices])


def collate(pairs: Sequence[tuple[Ids, Ids]]) -> TranslationBatch:
    """Pairs of token ids without special tokens, as one batch."""
    sources, targets = zip(*pairs, strict=True)
    target_in, target_out = padded(targets, first=BOS), padded(targets, last=EOS)
    return TranslationBatch(padded(sources, last=EOS), target_in, target_out)


def padded(rows: Sequence[Ids], *, first: int | None = None, last: int | None = None) -> Int[Tensor, "batch longest"]:
    """Rows of ids side by side, with a token before or behind each, filled up with PAD."""
    head, tail = int(first is not None), int(last is not None)
    longest = max(len(row) for row in rows) + head + tail
    table = np.full((len(rows), longest), PAD, dtype=np.int64)
    for line, row in zip(table, rows, strict=True):
        line[head : head + len(row)] = row
        if first is not None:
            line[0] = first
        if last is not None:
            line[head + len(row)] = last
    return torch.from_numpy(table)
