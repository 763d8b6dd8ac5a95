"""Random numbers that belong to a thing and not to a moment: each is computed from a seed and the thing's number.

An augmented picture must come out the same whichever process makes it, in whatever company, before a run was killed or
after. So nothing is drawn from a generator that others draw from, too. A thing's number n (which picture, in which
epoch) and the seed are hashed into the start of a SplitMix64 sequence (Steele, Lea and Flood, 2014) of its own,

    state_k = start(seed, n) + k * 0x9E3779B97F4A7C15,   draw_k = mix(state_k),

and all things of a batch are drawn for at once. It is plain 64-bit arithmetic: no version of numpy can change it.
"""

from __future__ import annotations

from typing import final

import numpy as np
from jaxtyping import Float64, Int64, UInt64

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@final
class Draws:
    """One sequence for each of `numbers`; every call takes the next draw of all of them."""

    def __init__(self, seed: int, numbers: Int64[np.ndarray, " things"]) -> None:
        start = mix(np.asarray([seed & (2**64 - 1)], np.uint64) + _STEP)
        self._state = mix(numbers.astype(np.uint64) ^ start)

    def bits(self) -> UInt64[np.ndarray, " things"]:
        self._state = self._state + _STEP
        return mix(self._state)

    def uniform(self) -> Float64[np.ndarray, " things"]:
        """In [0, 1), on a grid of 2**-53."""
        return (self.bits() >> np.uint64(11)) * 2.0**-53

    def below(self, bound: int) -> Int64[np.ndarray, " things"]:
        """Whole numbers from 0 to `bound` - 1."""
        return (self.uniform() * bound).astype(np.int64)

    def fork(self) -> Draws:
        """Sequences of their own, one for each of these."""
        branch = object.__new__(Draws)
        branch._state = self.bits()
        return branch

    def table(self, columns: int) -> Float64[np.ndarray, "things {columns}"]:
        """The next `columns` uniform draws of each thing side by side."""
        return np.stack([self.uniform() for _ in range(columns)], axis=1)


def mix(values: UInt64[np.ndarray, " things"]) -> UInt64[np.ndarray, " things"]:
    """The finaliser of SplitMix64: a permutation of the 64-bit numbers in which every bit hangs on every other."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))
