import itertools
import math

import pytest

from regard.core.errors import ConfigError, UnknownNameError
from regard.training.schedules import constant, cosine, inverse_root, linear, schedules


@pytest.mark.parametrize("name", list(schedules))
def test_warming_up_is_a_straight_line_to_one(name):
    factors = [schedules[name](step, 5, 23) for step in range(5)]
    assert factors == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


@pytest.mark.parametrize("name", list(schedules))
def test_never_rises_after_warming_up_and_stays_within_bounds(name):
    factors = [schedules[name](step, 3, 29) for step in range(3, 40)]
    assert all(0 <= later <= earlier <= 1 for earlier, later in itertools.pairwise(factors))


def test_inverse_root_follows_the_transformer_paper():
    width, warmup = 512, 4000
    for step in (1, 17, 4000, 100_000):
        paper = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        peak = (width * warmup) ** -0.5
        assert inverse_root(step - 1, warmup, None) * peak == pytest.approx(paper)


def test_values_along_the_way():
    assert cosine(50, 0, 100) == pytest.approx(0.5)
    assert cosine(25, 0, 100) == pytest.approx((1 + math.sqrt(0.5)) / 2)
    assert linear(25, 0, 100) == pytest.approx(0.75)
    assert constant(10**6, 0, None) == 1.0
    assert cosine(100, 0, 100) == linear(100, 0, 100) == 0.0
    assert cosine(107, 0, 100) == linear(107, 0, 100) == 0.0


@pytest.mark.parametrize("schedule", [cosine, linear])
def test_a_schedule_that_needs_an_end_says_so(schedule):
    with pytest.raises(ConfigError, match=r"max_steps or max_epochs"):
        schedule(0, 0, None)


def test_an_unknown_schedule_names_the_nearest():
    with pytest.raises(UnknownNameError, match="cosine"):
        schedules["cosin"]
