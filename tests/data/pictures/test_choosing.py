"""What is held out and what is kept: by class, by content, always the same."""

from __future__ import annotations

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.data.pictures.choosing import hashes, held_out, kept

LABELS = np.arange(1009) % 7
MARKS = [str(number).encode() for number in range(1009)]


def test_a_share_of_each_class_is_held_out() -> None:
    chosen = held_out(hashes(MARKS, "a"), LABELS, 0.1, "x")
    assert np.bincount(LABELS[chosen]).tolist() == [round(0.1 * count) for count in np.bincount(LABELS)]
    assert held_out(hashes(MARKS, "a"), LABELS, 0.0001, "x").sum() == 7


def test_the_choice_does_not_hang_on_the_order() -> None:
    chosen = held_out(hashes(MARKS, "a"), LABELS, 0.1, "x")
    turned = held_out(hashes(MARKS[::-1], "a"), LABELS[::-1], 0.1, "x")
    assert np.array_equal(turned, chosen[::-1])
    assert not np.array_equal(chosen, held_out(hashes(MARKS, "b"), LABELS, 0.1, "x"))


def test_equal_pictures_fall_on_one_side() -> None:
    marks = [str(number // 3).encode() for number in range(1009)]
    labels = np.arange(1009) // 3 % 7
    chosen = held_out(hashes(marks, "a"), labels, 0.1, "x")
    for number in range(0, 1005, 3):
        assert len(set(chosen[number : number + 3].tolist())) == 1


def test_classes_that_cannot_be_split_are_named() -> None:
    with pytest.raises(DataError, match="The class 1 of mine has 1 pictures"):
        held_out(hashes([b"a", b"b", b"c"], "a"), np.array([0, 0, 1]), 0.1, "mine")
    with pytest.raises(DataError, match="The class 0 of mine has 3 pictures that differ in nothing"):
        held_out(hashes([b"a", b"a", b"a"], "a"), np.array([0, 0, 0]), 0.1, "mine")


def test_a_smaller_fraction_is_part_of_a_larger_one() -> None:
    hashed = hashes(MARKS, "fraction 1")
    before = np.zeros(1009, bool)
    for fraction in (0.001, 0.01, 0.1, 0.25, 0.9, 1.0):
        chosen = kept(hashed, LABELS, fraction)
        assert not (before & ~chosen).any()
        counts = np.bincount(LABELS)
        assert np.bincount(LABELS[chosen]).tolist() == [max(1, round(fraction * count)) for count in counts]
        before = chosen
    assert before.all()
    assert kept(np.zeros(1009, np.uint64), LABELS, 0.5).sum() == pytest.approx(504.5, abs=4)
