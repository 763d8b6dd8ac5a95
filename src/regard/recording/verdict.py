"""Does a map say anything about the output? What a model loses when what it looks at is taken away, and controls.

    deletion    the most attended go first: the sooner the score falls, the more the map says (a small area)
    insertion   the most attended come first, from nothing: the sooner the score rises (a large area)

(Petsiuk, Das and Saenko 2018.) An area is the mean of the score over the share of positions taken away or put in. It is
compared with the areas of random orders, and a map has something to say where it is beyond nearly all of them. Deletion
in an order is insertion in the reverse one, so one set of random orders serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.core.errors import DataError

Score = Callable[[Bool[Tensor, "cases positions"]], Float[Tensor, "cases"]]
"""The model's score for its own answer, given which positions of the input are there."""

CONFIDENCE = 0.05
"""Of random orders, at most this share may do as well as a map that has something to say."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Scores over the share of positions that are gone (deletion) or there (insertion)."""

    shares: Float[np.ndarray, "points"]
    deletion: Float[np.ndarray, "points"]
    insertion: Float[np.ndarray, "points"]

    @property
    def deletion_area(self) -> float:
        return area(self.shares, self.deletion)

    @property
    def insertion_area(self) -> float:
        return area(self.shares, self.insertion)

    def to_json(self) -> dict[str, Any]:
        return {
            "shares": self.shares.tolist(),
            "deletion": self.deletion.tolist(),
            "insertion": self.insertion.tolist(),
            "deletion_area": self.deletion_area,
            "insertion_area": self.insertion_area,
        }


@dataclass(frozen=True, eq=False)
class Verdict:
    """The curves of a map, those of random orders, and controls by name."""

    curves: Curves
    random: Float[np.ndarray, "orders points"]
    """Deletion curves of random orders."""
    controls: Mapping[str, Curves] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """What was asked and answered, as JSON."""

    @property
    def random_areas(self) -> Float[np.ndarray, "orders"]:
        return np.array([area(self.curves.shares, curve) for curve in self.random])

    def interval(self, share: float = 0.95) -> tuple[float, float]:
        """Between which areas that share of random orders lies."""
        low, high = np.quantile(self.random_areas, [(1 - share) / 2, (1 + share) / 2])
        return float(low), float(high)

    @property
    def deletion_p(self) -> float:
        """How likely a random order is to lose the score as soon."""
        return _rank(int((self.random_areas <= self.curves.deletion_area).sum()), len(self.random))

    @property
    def insertion_p(self) -> float:
        """How likely a random order is to win the score as soon."""
        return _rank(int((self.random_areas >= self.curves.insertion_area).sum()), len(self.random))

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        removing, adding = self.deletion_p <= CONFIDENCE, self.insertion_p <= CONFIDENCE
        if removing and adding:
            return (
                "The map says something about the output: taking away what is looked at hurts, and it alone suffices, "
                "more than by chance."
            )
        if removing:
            return "Taking away what is looked at hurts more than by chance, but it alone does not suffice."
        if adding:
            return "What is looked at suffices sooner than by chance, but the output does not depend on it alone."
        return "The map says no more about the output than a random order does."

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval()
        return {
            **self.outputs,
            "map": self.curves.to_json(),
            "random": {
                "orders": len(self.random),
                "mean_area": float(self.random_areas.mean()),
                "interval": [low, high],
            },
            "deletion_p": self.deletion_p,
            "insertion_p": self.insertion_p,
            "controls": {name: curves.to_json() for name, curves in self.controls.items()},
            "verdict": self.sentence,
        }


def judge(
    score: Score,
    relevance: Float[Tensor, "positions"],
    *,
    controls: Mapping[str, tuple[Score, Float[Tensor, "positions"]]] | None = None,
    orders: int = 100,
    points: int = 20,
    seed: int = 0,
    outputs: Mapping[str, Any] | None = None,
) -> Verdict:
    """The verdict on a map; a control has a score and a map of its own. At most `points` shares are measured."""
    count = len(relevance)
    if count < 2:
        raise DataError("An input of a single position has no order in which it could be taken away.")
    if orders < 1 or points < 1:
        raise DataError("A verdict needs at least one random order and one point on its curves.")
    sizes = np.linspace(0, count, min(points, count) + 1).astype(int)
    sizes = np.unique(np.concatenate([sizes, count - sizes]))  # what is left at one share is put in at another
    generator = torch.Generator().manual_seed(seed)
    order = descending(relevance, generator)
    chance = [torch.randperm(count, generator=generator) for _ in range(orders)]
    measured = {
        name: _curves(own_score, descending(own, generator), sizes, count)
        for name, (own_score, own) in (controls or {}).items()
    }
    random = np.stack([_deletion(score, one, sizes, count) for one in chance])
    return Verdict(_curves(score, order, sizes, count), random, measured, dict(outputs or {}))


def descending(relevance: Float[Tensor, "positions"], generator: torch.Generator) -> Int[Tensor, "positions"]:
    """Positions, the most attended first; equals by lot, so that their place in the input does not matter."""
    lot = torch.randperm(len(relevance), generator=generator)
    return lot[relevance.float().cpu()[lot].argsort(descending=True, stable=True)]


def area(shares: Float[np.ndarray, "points"], scores: Float[np.ndarray, "points"]) -> float:
    """Under the straight lines between the points."""
    return float((np.diff(shares) * (scores[1:] + scores[:-1]) / 2).sum())


def _curves(score: Score, order: Tensor, sizes: np.ndarray, count: int) -> Curves:
    inserted = score(_present(order, sizes)).float().numpy(force=True)
    return Curves(sizes / count, _deletion(score, order, sizes, count), inserted)


def _deletion(score: Score, order: Tensor, sizes: Sequence[int] | np.ndarray, count: int) -> np.ndarray:
    return score(~_present(order, sizes)).float().numpy(force=True)


def _present(order: Tensor, sizes: Sequence[int] | np.ndarray) -> Bool[Tensor, "points positions"]:
    """For each size, the first so many of the order."""
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order))
    return rank < torch.as_tensor(np.asarray(sizes))[:, None]


def _rank(as_good: int, orders: int) -> float:
    """The order in question counts as one of the random ones, so that no chance is said to be zero."""
    return (as_good + 1) / (orders + 1)
