"""Draws hang on the seed and the number alone, are even, and are SplitMix64's."""

from __future__ import annotations

import numpy as np
import pytest

from regard.data.pictures.draws import Draws, mix


def test_the_published_sequence() -> None:
    """The first outputs of SplitMix64 from state 1234567, as in the reference program's documentation."""
    draws = object.__new__(Draws)
    draws._state = np.array([1234567], np.uint64)
    found = [int(draws.bits()[0]) for _ in range(5)]
    assert found == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_a_things_draws_do_not_hang_on_its_company() -> None:
    numbers = np.arange(97) << 33
    together, alone = Draws(7, numbers), Draws(7, numbers[13:14])
    for _ in range(5):
        assert together.uniform()[13] == alone.uniform()[0]
    assert together.fork().below(1009)[13] == alone.fork().below(1009)[0]


def test_seeds_numbers_calls_and_forks_differ() -> None:
    numbers = np.arange(101)
    first = Draws(1, numbers)
    found = [first.bits(), first.bits(), first.fork().bits(), Draws(2, numbers).bits(), Draws(1, numbers + 101).bits()]
    assert len(np.unique(np.concatenate(found))) == 5 * 101


def test_draws_are_even() -> None:
    draws = Draws(3, np.arange(100_003) | 1 << 40)
    for _ in range(3):
        uniform = draws.uniform()
        assert 0 <= uniform.min() < 1e-3 < 0.999 < uniform.max() < 1
        assert np.bincount((uniform * 10).astype(int)) == pytest.approx(np.full(10, 10_000), rel=0.05)
        assert abs(np.corrcoef(uniform[1:], uniform[:-1])[0, 1]) < 0.01
    below = draws.below(7)
    assert sorted(set(below.tolist())) == list(range(7))
    table = draws.table(5)
    assert table.shape == (100_003, 5)
    assert np.abs(np.corrcoef(table.T) - np.eye(5)).max() < 0.015


def test_the_mixer_is_a_permutation() -> None:
    assert len(np.unique(mix(np.arange(100_003, dtype=np.uint64)))) == 100_003
