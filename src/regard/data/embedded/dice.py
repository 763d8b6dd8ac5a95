"""Random choices that fall the same on every Python: only `Random.random` of a text seed is relied on."""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Weighted(Generic[T]):
    """Options with weights, prepared once for many draws."""

    def __init__(self, *rows: tuple[float, T]) -> None:
        self.options = tuple(option for _, option in rows)
        self.bounds = tuple(itertools.accumulate(weight for weight, _ in rows))


class Dice:
    def __init__(self, seed: str) -> None:
        self._roll = random.Random(seed).random

    def chance(self, rate: float) -> bool:
        return self._roll() < rate

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._roll() * len(options))]

    def draw(self, table: Weighted[T]) -> T:
        return table.options[bisect.bisect_right(table.bounds, self._roll() * table.bounds[-1])]
