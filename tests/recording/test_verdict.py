"""`judge`: areas by hand, a map that is the model, a map that is noise, and the reverse of a map."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.core.errors import DataError
from regard.recording.verdict import Verdict, area, descending, judge

WORTH = torch.tensor([0.05, 0.4, 0.0, 0.3, 0.0, 0.2, 0.0, 0.05, 0.0, 0.0, 0.0])


def additive(present: Tensor) -> Tensor:
    """Each position adds what it is worth."""
    return (present * WORTH).sum(dim=1)


def three(present: Tensor) -> Tensor:
    return (present * torch.tensor([0.5, 0.3, 0.2])).sum(dim=1)


def test_areas_by_hand() -> None:
    verdict = judge(three, torch.tensor([0.9, 0.5, 0.1]), orders=3, points=9)
    assert verdict.curves.deletion.tolist() == pytest.approx([1.0, 0.5, 0.2, 0.0])
    assert verdict.curves.insertion.tolist() == pytest.approx([0.0, 0.5, 0.8, 1.0])
    assert verdict.curves.deletion_area == pytest.approx((0.75 + 0.35 + 0.1) / 3)
    assert verdict.curves.insertion_area == pytest.approx((0.25 + 0.65 + 0.9) / 3)
    assert area(np.array([0.0, 0.5, 1.0]), np.array([1.0, 1.0, 0.0])) == 0.75


def test_a_map_that_is_the_model_beats_chance() -> None:
    verdict = judge(additive, WORTH, orders=99)
    assert verdict.deletion_p == verdict.insertion_p == 0.01
    assert "says something" in verdict.sentence
    low, high = verdict.interval()
    assert verdict.curves.deletion_area < low < high < verdict.curves.insertion_area


def test_the_reverse_of_a_map_says_nothing() -> None:
    verdict = judge(additive, -WORTH, orders=99)
    assert verdict.deletion_p > 0.95
    assert "no more about the output than a random order" in verdict.sentence


def test_noise_is_found_out_as_often_as_it_should_be() -> None:
    """Among maps of noise, p is small no more often than it says."""
    generator = torch.Generator().manual_seed(0)
    found = [
        judge(additive, torch.rand(len(WORTH), generator=generator), orders=39, seed=seed).deletion_p <= 0.1
        for seed in range(60)
    ]
    assert sum(found) <= 14


def test_equals_are_ordered_by_lot_and_the_same_seed_gives_the_same() -> None:
    flat = torch.zeros(11)
    orders = {tuple(descending(flat, torch.Generator().manual_seed(seed)).tolist()) for seed in range(5)}
    assert len(orders) == 5
    one, again = (judge(additive, flat, orders=7, seed=3) for _ in range(2))
    assert one.to_json() == again.to_json()
    assert one.to_json() != judge(additive, flat, orders=7, seed=4).to_json()


def test_few_points_are_those_of_many() -> None:
    fine, coarse = (judge(additive, WORTH, orders=5, points=points) for points in (11, 4))
    shares = {round(share, 6): score for share, score in zip(fine.curves.shares, fine.curves.deletion, strict=True)}
    for share, score in zip(coarse.curves.shares, coarse.curves.deletion, strict=True):
        assert shares[round(share, 6)] == pytest.approx(score)
    torch.testing.assert_close(coarse.curves.shares, 1 - coarse.curves.shares[::-1])


def test_controls_have_a_score_and_a_map_of_their_own() -> None:
    def constant(present: Tensor) -> Tensor:
        return torch.full((len(present),), 0.25)

    verdict = judge(additive, WORTH, controls={"blind": (constant, WORTH), "reverse": (additive, -WORTH)}, orders=3)
    assert verdict.controls["blind"].deletion_area == pytest.approx(0.25)
    assert verdict.controls["reverse"].deletion_area == pytest.approx(verdict.curves.insertion_area, abs=1e-6)
    assert verdict.to_json()["controls"]["blind"]["insertion_area"] == pytest.approx(0.25)


def test_what_cannot_be_judged() -> None:
    with pytest.raises(DataError, match="single position"):
        judge(additive, torch.ones(1))
    with pytest.raises(DataError, match="at least one random order"):
        judge(additive, WORTH, orders=0)


def test_the_sentence_tells_the_two_apart() -> None:
    curves = judge(additive, WORTH, orders=1).curves
    points = len(curves.shares)
    removing, adding = Verdict(curves, np.ones((99, points))), Verdict(curves, np.zeros((99, points)))
    assert (removing.deletion_p, removing.insertion_p) == (0.01, 1.0)
    assert "hurts more than by chance, but it alone does not suffice" in removing.sentence
    assert (adding.deletion_p, adding.insertion_p) == (1.0, 0.01)
    assert "suffices sooner than by chance" in adding.sentence
