"""Feed-forward networks, residual sums in both orders, and how embeddings start."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.layers.embedding import initialise_embeddings
from regard.layers.feed_forward import FeedForward
from regard.layers.residual import RESIDUALS, PostNorm, PreNorm, ResidualPostNorm
from regard.layers.stochastic_depth import depth_rates, drop_branch


@pytest.mark.parametrize(("name", "function"), [("relu", F.relu), ("gelu", F.gelu), ("silu", F.silu)])
def test_feed_forward_by_hand(name: str, function) -> None:
    layer = FeedForward(5, 13, name, 0.0)
    inputs = torch.randn(2, 3, 5)
    hidden = function(inputs @ layer.expand.weight.T + layer.expand.bias)
    torch.testing.assert_close(layer(inputs), hidden @ layer.contract.weight.T + layer.contract.bias)


def test_feed_forward_treats_every_position_alike() -> None:
    layer = FeedForward(5, 13, "relu", 0.0)
    inputs = torch.randn(2, 7, 5)
    order = torch.randperm(7)
    torch.testing.assert_close(layer(inputs)[:, order], layer(inputs[:, order]))


def test_dropout_is_for_training_only() -> None:
    layer = FeedForward(5, 13, "relu", 0.5)
    inputs = torch.randn(2, 3, 5)
    assert not torch.equal(layer(inputs), layer(inputs))
    layer.eval()
    assert torch.equal(layer(inputs), layer(inputs))


def test_post_norm_normalises_the_sum() -> None:
    layer, inputs = PostNorm(5, 0.0), torch.randn(2, 3, 5)
    torch.testing.assert_close(layer(inputs, torch.tanh), F.layer_norm(inputs + inputs.tanh(), (5,)))


def test_pre_norm_leaves_the_sum_as_it_is() -> None:
    layer, inputs = PreNorm(5, 0.0), torch.randn(2, 3, 5)
    torch.testing.assert_close(layer(inputs, torch.tanh), inputs + F.layer_norm(inputs, (5,)).tanh())


def test_residual_post_norm_normalises_the_branch() -> None:
    layer, inputs = ResidualPostNorm(5, 0.0), torch.randn(2, 3, 5)
    torch.testing.assert_close(layer(inputs, torch.tanh), inputs + F.layer_norm(inputs.tanh(), (5,)))


@pytest.mark.parametrize("layer", [PreNorm(5, 0.0, depth_rate=0.5), ResidualPostNorm(5, 0.0, depth_rate=0.5)])
def test_a_branch_is_left_out_for_whole_examples(layer: nn.Module) -> None:
    inputs = torch.randn(997, 3, 5)
    left = layer(inputs, torch.tanh) - inputs
    layer.eval()
    branch = layer(inputs, torch.tanh) - inputs
    dropped = (left == 0).flatten(1).all(dim=1)
    assert 0.4 < dropped.float().mean() < 0.6
    torch.testing.assert_close(left[~dropped], 2 * branch[~dropped])


def test_stochastic_depth_in_its_limits() -> None:
    branch = torch.randn(7, 3)
    assert drop_branch(branch, 0.0, True) is branch
    assert drop_branch(branch, 0.9, False) is branch
    assert not drop_branch(branch, 1.0, True).any()
    assert depth_rates(0.3, 4) == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert depth_rates(0.3, 1) == [0.0]


@pytest.mark.parametrize("order", list(RESIDUALS))
def test_dropout_falls_on_the_sublayer_only(order: str) -> None:
    layer, inputs = RESIDUALS[order](5, 1.0), torch.randn(2, 3, 5)
    wanted = F.layer_norm(inputs, (5,)) if order == "post" else inputs
    torch.testing.assert_close(layer(inputs, torch.tanh), wanted)
    layer.eval()
    assert not torch.allclose(layer(inputs, torch.tanh), wanted)


def test_a_stack_of_pre_norms_ends_with_a_norm() -> None:
    assert PreNorm.final_norm
    assert not PostNorm.final_norm


def test_embeddings_start_small() -> None:
    wide, narrow = nn.Embedding(1009, 64), nn.Embedding(1009, 16)
    initialise_embeddings(wide, narrow)
    assert wide.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    assert narrow.weight.std().item() == pytest.approx(1 / 4, rel=0.02)
