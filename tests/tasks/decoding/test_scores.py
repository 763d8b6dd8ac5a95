from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from regard.tasks.decoding.scores import best, log_probabilities


@pytest.mark.parametrize("choices", [3, 61, 512, 1031, 8009])
@pytest.mark.parametrize("count", [1, 2, 8, 14])
def test_best_are_the_best(choices: int, count: int) -> None:
    scores = torch.randn(5, 3, choices, generator=torch.Generator().manual_seed(choices))
    values, places = best(scores, count)
    expected = scores.sort(-1, descending=True).values[..., :count]
    assert torch.equal(values, expected)
    assert torch.equal(scores.gather(-1, places), values)
    assert all(len(set(row)) == len(row) for row in places.flatten(0, 1).tolist())


def test_best_with_equal_and_infinite_scores() -> None:
    scores = torch.full((2, 4099), -math.inf)
    scores[0, 100:120] = 1.0
    scores[1, [7, 4098]] = torch.tensor([2.0, 3.0])
    values, places = best(scores, 8)
    assert values[0].tolist() == [1.0] * 8
    assert set(places[0].tolist()) <= set(range(100, 120))
    assert places[1, :2].tolist() == [4098, 7]
    assert values[1, 2:].isneginf().all()


def test_forbidden_tokens_do_not_change_the_others() -> None:
    readout = nn.Linear(5, 11)
    features = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    free = log_probabilities(readout, features, torch.tensor([], dtype=torch.long)).detach()
    bound = log_probabilities(readout, features.detach(), torch.tensor([0, 2])).detach()
    assert bound[..., [0, 2]].isneginf().all()
    allowed = [token for token in range(11) if token not in (0, 2)]
    assert torch.equal(bound[..., allowed], free[..., allowed])
    assert torch.allclose(free.exp().sum(-1), torch.ones(2, 3))
