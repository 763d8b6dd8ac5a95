"""The linear map: torch's numbers, its gradients, and torch's own way wherever oneDNN's does not fit."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core import linear as linear_module
from regard.core.linear import Linear, linear

INPUTS, OUTPUTS = 11, 13
SHAPES = [(7, INPUTS), (3, 5, INPUTS), (2, 3, 5, INPUTS), (1, INPUTS), (0, INPUTS)]


@pytest.fixture(autouse=True)
def however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes of these tests are below those for which oneDNN pays."""
    monkeypatch.setattr(linear_module, "MIN_MULTIPLICATIONS", 1)


def tensors(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    sizes = shape, (OUTPUTS, INPUTS), (OUTPUTS,)
    first, second, third = (torch.randn(size, dtype=dtype).requires_grad_() for size in sizes)
    return first, second, third


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients_are_those_of_torch(shape: tuple[int, ...], with_bias: bool) -> None:
    given = tensors(shape)[: 2 + with_bias]
    exact = [tensor.detach().double().requires_grad_() for tensor in given]
    ours, theirs = linear(*given), F.linear(*exact)
    assert ours.shape == theirs.shape
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)
    direction = torch.randn(ours.shape)
    mine = torch.autograd.grad((ours * direction).sum(), given)
    other = torch.autograd.grad((theirs * direction).sum(), exact)
    for one, another in zip(mine, other, strict=True):
        assert one.shape == another.shape
        torch.testing.assert_close(one.double(), another, rtol=1e-5, atol=1e-5)


def test_views_are_read_as_they_lie() -> None:
    inputs, weight, bias = (tensor.detach() for tensor in tensors((5, INPUTS)))
    wide = torch.randn(5, 3 * INPUTS)
    cases = [
        (inputs.t().contiguous().t(), weight),
        (inputs, weight.t().contiguous().t()),
        (wide[:, INPUTS : 2 * INPUTS], weight),
        (inputs[:1].expand(7, INPUTS), weight),
    ]
    for one, matrix in cases:
        torch.testing.assert_close(linear(one, matrix, bias), F.linear(one, matrix, bias), rtol=1e-5, atol=1e-5)


def test_a_summed_gradient_is_one_number_everywhere() -> None:
    inputs, weight, bias = tensors((3, 5, INPUTS))
    linear(inputs, weight, bias).sum().backward()
    torch.testing.assert_close(inputs.grad, weight.detach().sum(dim=0).expand(3, 5, INPUTS), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(bias.grad, torch.full((OUTPUTS,), 15.0))


@pytest.mark.parametrize("frozen", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)])
def test_only_what_asks_for_a_gradient_gets_one(frozen: tuple[int, ...]) -> None:
    given = tensors((7, INPUTS))
    for place in frozen:
        given[place].requires_grad_(False)
    value = linear(*given)
    assert value.requires_grad == (len(frozen) < 3)
    if value.requires_grad:
        value.square().sum().backward()
    assert [tensor.grad is None for tensor in given] == [place in frozen for place in range(3)]


def test_gradients_have_gradients() -> None:
    inputs, weight, bias = tensors((7, INPUTS))
    results = []
    for way in (linear, F.linear):
        (first,) = torch.autograd.grad(way(inputs, weight, bias).square().sum(), inputs, create_graph=True)
        results.append(torch.autograd.grad(first.square().sum(), weight)[0])
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-3)


def test_float32_goes_through_onednn_where_it_is_and_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_module, "_AVAILABLE", True)
    monkeypatch.setattr(linear_module, "_onednn", lambda inputs, weight, bias: "onednn")
    inputs, weight, bias = (tensor.detach() for tensor in tensors((7, INPUTS)))
    assert linear.__wrapped__(inputs, weight, bias) == "onednn"
    monkeypatch.setattr(linear_module, "_onednn", lambda inputs, weight, bias: pytest.fail("not torch's own"))
    linear(inputs.double(), weight.double(), bias.double())
    linear(inputs.bfloat16(), weight.bfloat16(), bias.bfloat16())
    linear(inputs[0], weight, bias)
    linear(inputs.to("meta"), weight.to("meta"), bias.to("meta"))
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(inputs, weight, bias).dtype == torch.bfloat16
    torch.func.vmap(lambda row: linear(row[None], weight, bias))(inputs)
    monkeypatch.setattr(linear_module, "MIN_MULTIPLICATIONS", 7 * INPUTS * OUTPUTS + 1)
    linear(inputs, weight, bias)


def test_the_layer_is_torchs_layer() -> None:
    torch.manual_seed(3)
    ours = Linear(INPUTS, OUTPUTS)
    torch.manual_seed(3)
    theirs = nn.Linear(INPUTS, OUTPUTS)
    inputs = torch.randn(5, INPUTS)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    torch.testing.assert_close(ours(inputs), theirs(inputs), rtol=1e-5, atol=1e-6)
