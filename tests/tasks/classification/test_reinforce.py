"""REINFORCE on problems whose gradient is known."""

from __future__ import annotations

import math

import pytest
import torch

from regard.core.classifier import Choices
from regard.tasks.classification.reinforce import reinforce

DEVIATION = 0.7
NUMBER = 200_000


def estimates(mean: torch.Tensor, baseline: float, steps: int = 1) -> torch.Tensor:
    """For each of many episodes the estimate of the gradient with respect to the mean, reward = (sum of draws)^2."""
    generator = torch.Generator().manual_seed(0)
    draws = mean.detach() + DEVIATION * torch.randn(NUMBER, steps, generator=generator)
    rewards = draws.sum(dim=1).square()
    means = mean.detach().expand(NUMBER).clone().requires_grad_()
    log_probabilities = -0.5 * ((draws - means[:, None]) / DEVIATION).square() - math.log(DEVIATION)
    choices = Choices(log_probabilities, torch.full((NUMBER, steps), baseline))
    surrogate, _ = reinforce(choices, rewards)
    surrogate.backward()
    assert means.grad is not None
    return -means.grad


@pytest.mark.parametrize("baseline", [0.0, 1.3, -5.0])
def test_it_is_unbiased_whatever_the_baseline(baseline: float) -> None:
    """E[x^2] = mu^2 + sigma^2, whose gradient is 2 mu."""
    found = estimates(torch.tensor(0.8), baseline)
    error = found.std() / NUMBER**0.5
    assert abs(found.mean() - 1.6) < 4 * error
    assert error < 0.03


def test_all_choices_get_the_reward_of_the_end() -> None:
    """E[(x + y)^2] = 4 mu^2 + 2 sigma^2, whose gradient is 8 mu."""
    found = estimates(torch.tensor(0.8), 2.0, steps=2)
    assert abs(found.mean() - 6.4) < 4 * found.std() / NUMBER**0.5


def test_the_expected_reward_as_baseline_lessens_the_variance() -> None:
    mean = torch.tensor(2.0)
    assert estimates(mean, 4.0 + DEVIATION**2).std() < 0.7 * estimates(mean, 0.0).std()


def test_by_hand() -> None:
    log_probabilities = torch.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
    baselines = torch.tensor([[0.5, 0.25], [0.0, 1.0]], requires_grad=True)
    policy, baseline = reinforce(Choices(log_probabilities, baselines), torch.tensor([1.0, 0.0]))
    assert policy.item() == 0.0
    assert baseline.item() == pytest.approx(0.25 + 0.5625 + 0.0 + 1.0)
    (policy + baseline).backward()
    assert log_probabilities.grad.tolist() == [[-0.5, -0.75], [0.0, 1.0]]
    assert baselines.grad.tolist() == [[-1.0, -1.5], [0.0, 2.0]], "the reward's advantage teaches no baseline"
