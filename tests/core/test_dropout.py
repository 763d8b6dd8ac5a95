"""Dropout of our own: the mean stays, the rate is met, and the gradient goes where the values went."""

from __future__ import annotations

import pytest
import torch

from regard.core.dropout import dropout

COUNT = 1 << 18


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_rate_and_mean(rate: float, dtype: torch.dtype) -> None:
    """Within five standard deviations of what independent draws give (and the rounding of the scale)."""
    kept = dropout(torch.ones(COUNT, dtype=dtype), rate, True).double()
    deviation = (rate * (1 - rate) / COUNT) ** 0.5
    assert abs((kept == 0).double().mean() - rate) < 5 * deviation + 2**-17
    rounding = torch.finfo(dtype).eps
    assert abs(kept.mean() - 1) < 5 * deviation / (1 - rate) + 2**-15 + rounding
    assert len(kept.unique()) == 2


def test_neighbours_are_independent() -> None:
    """Four values share one draw of 64 bits; each has bits of its own."""
    survives = dropout(torch.ones(COUNT), 0.5, True).view(-1, 4) != 0
    for first in range(4):
        for second in range(first):
            both = (survives[:, first] & survives[:, second]).double().mean()
            assert abs(both - 0.25) < 5 * (0.25 * 0.75 / (COUNT / 4)) ** 0.5


def test_every_place_and_every_call_differs() -> None:
    inputs = torch.ones(3, 1009)
    first, second = dropout(inputs, 0.5, True), dropout(inputs, 0.5, True)
    assert not torch.equal(first, second)
    assert not torch.equal(first[0], first[1])


def test_nothing_happens_in_evaluation_and_at_rate_zero() -> None:
    inputs = torch.randn(3, 5)
    assert dropout(inputs, 0.7, False) is inputs
    assert dropout(inputs, 0.0, True) is inputs


def test_rate_one_leaves_nothing() -> None:
    inputs = torch.randn(3, 5, requires_grad=True)
    outputs = dropout(inputs, 1.0, True)
    assert not outputs.any()
    outputs.sum().backward()
    assert inputs.grad is not None
    assert not inputs.grad.any()


def test_gradient_is_the_mask_with_its_scale() -> None:
    inputs = torch.randn(7, 11, dtype=torch.float64, requires_grad=True)
    outputs = dropout(inputs, 0.3, True)
    outputs.sum().backward()
    torch.testing.assert_close(inputs.grad, (outputs / inputs).detach(), rtol=1e-14, atol=0)
    survivors = inputs.grad[inputs.grad != 0]
    torch.testing.assert_close(survivors, torch.full_like(survivors, 1 / 0.7), rtol=1e-4, atol=0)


def test_the_seed_decides() -> None:
    inputs = torch.randn(5, 7)
    torch.manual_seed(3)
    first, then = dropout(inputs, 0.5, True), torch.rand(2)
    torch.manual_seed(3)
    assert torch.equal(first, dropout(inputs, 0.5, True))
    assert torch.equal(then, torch.rand(2)), "the generator goes on from the same place"
    torch.manual_seed(4)
    assert not torch.equal(first, dropout(inputs, 0.5, True))


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (5, 0), (7, 1, 11)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    outputs = dropout(torch.ones(shape), 0.5, True)
    assert outputs.shape == shape
    assert set(outputs.flatten().tolist()) <= {0.0, 2.0}


def test_a_transposed_view_is_as_good() -> None:
    inputs = torch.randn(3, 5).t()
    outputs = dropout(inputs, 0.5, True)
    survives = outputs != 0
    torch.testing.assert_close(outputs[survives], 2 * inputs[survives])
