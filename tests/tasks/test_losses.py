"""Cross entropy in one go, against torch's own: values, gradients, dtypes, label smoothing."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.tasks.losses import readout_cross_entropy

TOKENS, WIDTH, VOCABULARY = 13, 11, 101


def case(dtype: torch.dtype, bias: bool, scale: float = 1.0) -> tuple[torch.Tensor, nn.Linear, torch.Tensor]:
    readout = nn.Linear(WIDTH, VOCABULARY, bias=bias, dtype=dtype)
    features = (scale * torch.randn(TOKENS, WIDTH, dtype=dtype)).requires_grad_()
    targets = torch.randint(VOCABULARY, (TOKENS,))
    targets[3] = targets[7]  # two tokens whose gradients meet in one row
    return features, readout, targets


def theirs(features: torch.Tensor, readout: nn.Linear, targets: torch.Tensor, smoothing: float) -> torch.Tensor:
    return F.cross_entropy(readout(features).double(), targets, reduction="sum", label_smoothing=smoothing)


def gradients(loss: torch.Tensor, features: torch.Tensor, readout: nn.Linear) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, [features, *readout.parameters()]))


TOLERANCES = {torch.float64: (1e-12, 1e-12), torch.float32: (1e-5, 1e-5)}


@pytest.mark.parametrize("dtype", list(TOLERANCES), ids=str)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_value_and_gradients(dtype: torch.dtype, bias: bool, smoothing: float) -> None:
    features, readout, targets = case(dtype, bias)
    rtol, atol = TOLERANCES[dtype]
    ours = readout_cross_entropy(features, readout, targets, smoothing)
    wanted = theirs(features, readout, targets, smoothing)
    assert ours.dtype == dtype
    torch.testing.assert_close(ours.double(), wanted, rtol=rtol, atol=atol)
    pairs = zip(gradients(ours, features, readout), gradients(wanted, features, readout), strict=True)
    for mine, other in pairs:
        assert mine.dtype == dtype
        torch.testing.assert_close(mine, other, rtol=rtol, atol=10 * atol)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_under_autocast_to_bfloat16(bias: bool, smoothing: float) -> None:
    """As close to the exact loss as the rounding of the logits allows; gradients in the parameters' own dtype."""
    features, readout, targets = case(torch.float32, bias)
    wanted = theirs(features, readout, targets, smoothing)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = readout_cross_entropy(features, readout, targets, smoothing)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours.double(), wanted, rtol=0.01, atol=0)
    for mine, other in zip(gradients(ours, features, readout), gradients(wanted, features, readout), strict=True):
        assert mine.dtype == torch.float32
        assert (mine - other).norm() < 0.02 * other.norm()


def test_under_autocast_to_float16() -> None:
    features, readout, targets = case(torch.float32, True)
    wanted = theirs(features, readout, targets, 0.1)
    with torch.autocast("cpu", dtype=torch.float16):
        ours = readout_cross_entropy(features, readout, targets, 0.1)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours.double(), wanted, rtol=0.01, atol=0)


@pytest.mark.parametrize("bias", [False, True])
def test_backward_of_a_scaled_loss(bias: bool) -> None:
    """Gradient accumulation divides the loss, a scaler multiplies it."""
    features, readout, targets = case(torch.float64, bias)
    plain = gradients(readout_cross_entropy(features, readout, targets, 0.1), features, readout)
    scaled = gradients(readout_cross_entropy(features, readout, targets, 0.1) * -7.5, features, readout)
    for one, other in zip(plain, scaled, strict=True):
        torch.testing.assert_close(-7.5 * one, other)


def test_a_weight_that_is_also_the_embedding_gets_both_gradients() -> None:
    embedding = nn.Embedding(VOCABULARY, WIDTH, dtype=torch.float64)
    readout = nn.Linear(WIDTH, VOCABULARY, bias=False, dtype=torch.float64)
    readout.weight = embedding.weight
    tokens, targets = torch.randint(VOCABULARY, (2, TOKENS))
    (mine,) = torch.autograd.grad(readout_cross_entropy(embedding(tokens), readout, targets), embedding.weight)
    (other,) = torch.autograd.grad(theirs(embedding(tokens), readout, targets, 0.0), embedding.weight)
    torch.testing.assert_close(mine, other)


def test_large_logits_do_not_overflow() -> None:
    features, readout, targets = case(torch.float32, True, scale=1e4)
    ours = readout_cross_entropy(features, readout, targets, 0.1)
    torch.testing.assert_close(ours.double(), theirs(features, readout, targets, 0.1), rtol=1e-5, atol=0)
    assert all(gradient.isfinite().all() for gradient in gradients(ours, features, readout))


@pytest.mark.parametrize("frozen", ["features", "readout"])
def test_only_what_asks_for_a_gradient_gets_one(frozen: str) -> None:
    features, readout, targets = case(torch.float64, True)
    features.requires_grad_(frozen != "features")
    readout.requires_grad_(frozen != "readout")
    asking = [tensor for tensor in (features, *readout.parameters()) if tensor.requires_grad]
    mine = torch.autograd.grad(readout_cross_entropy(features, readout, targets), asking)
    for one, other in zip(mine, torch.autograd.grad(theirs(features, readout, targets, 0.0), asking), strict=True):
        torch.testing.assert_close(one, other)


def test_without_gradients_the_value_is_the_same() -> None:
    features, readout, targets = case(torch.float32, True)
    with torch.no_grad():
        quiet = readout_cross_entropy(features, readout, targets, 0.1)
    assert not quiet.requires_grad
    assert torch.equal(quiet, readout_cross_entropy(features, readout, targets, 0.1).detach())


def test_no_tokens_cost_nothing() -> None:
    _, readout, _ = case(torch.float32, False)
    loss = readout_cross_entropy(torch.zeros(0, WIDTH), readout, torch.zeros(0, dtype=torch.long))
    assert loss.item() == 0.0
