"""Splitting validation and test parts off a training text, always the same ones.

The k sentences whose hash is smallest are held out, so the choice depends on the text alone, not on its order, on a
seed or on the machine. The hash is of the source sentence: translations of one sentence never stand on both sides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from jaxtyping import UInt64

from regard.core.errors import DataError

MOST = 2000
"""Sentences held out for each part, of a large corpus."""

SHARE = 100
"""One in so many is held out for each part, of a small one."""

_BLOCK = 1 << 16


class HeldOut:
    """Knows which part ("train" or one of `parts`) a source sentence belongs to; made in one pass, in little memory."""

    def __init__(self, sources: Iterable[str], parts: tuple[str, ...]) -> None:
        smallest = np.empty(0, np.uint64)
        block: list[int] = []
        num_sentences = 0
        for source in sources:
            num_sentences += 1
            block.append(_hash(source))
            if len(block) == _BLOCK:
                smallest = _merge(smallest, block, len(parts))
                block = []
        smallest = _merge(smallest, block, len(parts))
        self.size = max(1, min(MOST, num_sentences // SHARE))
        if len(smallest) <= self.size * len(parts):
            raise DataError(
                f"The training text has only {len(smallest)} different source sentences, too few to hold some out for "
                f"{' and '.join(parts)}. Name files for these parts."
            )
        self._limits = [(part, int(smallest[self.size * (index + 1) - 1])) for index, part in enumerate(parts)]

    def part_of(self, source: str) -> str:
        digest = _hash(source)
        return next((part for part, limit in self._limits if digest <= limit), "train")


def _merge(smallest: UInt64[np.ndarray, " _"], block: list[int], num_parts: int) -> UInt64[np.ndarray, " _"]:
    """The smallest of all, each once, and one more than can be needed so that it is seen whether any are left."""
    return np.unique(np.concatenate([smallest, np.array(block, np.uint64)]))[: MOST * num_parts + 1]


def _hash(source: str) -> int:
    return int.from_bytes(hashlib.blake2b(source.encode(), digest_size=8, person=b"regard-held-out").digest(), "big")
