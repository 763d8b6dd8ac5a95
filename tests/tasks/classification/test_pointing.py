from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.core.axes import Grid, Text
from regard.core.errors import ConfigError
from regard.core.relations import DenseRelation
from regard.recording import Recording
from regard.tasks.classification.cost import cost
from regard.tasks.classification.pointing import Pointing, middles_on, point, pooled


def recording(weights: list[list[float]], extras: tuple[str, ...] = ()) -> Recording:
    """One query for each picture, a grid of 2 x 2 places over 4 x 4 pixels."""
    dense = torch.tensor(weights)[:, None, None]
    made = Recording({"tap": DenseRelation(dense)}, {"tap": ("class", "places")})
    count = len(weights)
    return made.label(**{"class": [Text(("all",))] * count, "places": [Grid(2, 2, 4, 4, extras)] * count})


def mask(row: int, column: int) -> np.ndarray:
    """The quarter of the picture that this place covers."""
    made = np.zeros((4, 4), bool)
    made[2 * row : 2 * row + 2, 2 * column : 2 * column + 2] = True
    return made


def test_hits_and_chance() -> None:
    seen = recording([[0.1, 0.6, 0.2, 0.1], [0.1, 0.6, 0.2, 0.1], [0.0, 0.0, 0.0, 1.0]])["tap"]
    found = point(seen, [mask(0, 1), mask(1, 0), mask(1, 1)])
    assert found.hits == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert found.chance == pytest.approx(0.25)


def test_extra_tokens_do_not_play() -> None:
    seen = recording([[0.9, 0.0, 0.1, 0.0, 0.0]], extras=("class",))["tap"]
    assert point(seen, [mask(0, 1)], query=0).hits == (1.0, 1.0)


def test_places_beyond_the_edge_are_no_hits() -> None:
    assert middles_on(Grid(1, 2, 4, 16), np.ones((4, 6), bool)).tolist() == [True, False]


def test_sets_of_pictures_together() -> None:
    whole = pooled([Pointing((1.0, 0.5), 0.1), Pointing((0.0, 0.5), 0.4)], [1, 3])
    assert whole.hits == (0.25, 0.5)
    assert whole.chance == pytest.approx(0.325)


def test_what_cannot_be_played() -> None:
    seen = recording([[0.25] * 4])["tap"]
    with pytest.raises(ConfigError, match="but 2 masks"):
        point(seen, [mask(0, 0)] * 2)
    words = Recording({"tap": DenseRelation(torch.ones(1, 1, 1, 1))}, {"tap": ("a", "b")})
    words.label(a=[Text(("x",))], b=[Text(("y",))])
    with pytest.raises(ConfigError, match="does not look at places"):
        point(words["tap"], [mask(0, 0)])


def test_cost_of_a_known_network() -> None:
    """A convolution of 2 x 3 x 3 x 5 weights at 6 x 7 places, two operations a weight, then a matrix."""
    network = torch.nn.Sequential(torch.nn.Conv2d(2, 5, 3, padding=1), torch.nn.Flatten(), torch.nn.Linear(210, 3))
    network.train()
    assert cost(network, 2, 6, 7) == {
        "parameters": 90 + 5 + 630 + 3,
        "flops": 2 * 90 * 42 + 2 * 630,
    }
    assert network.training
