from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.training.layers import layer_heights
from regard.training.optimizers import parameter_groups


class Stages(nn.Module):
    """Blocks of stages, and what stands between stages, defined after all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Linear(2, 3)
        self.stages = nn.ModuleList([nn.ModuleList([nn.Linear(3, 3) for _ in range(2)]) for _ in range(2)])
        self.mergings = nn.ModuleList([nn.Linear(3, 3)])
        self.norm = nn.LayerNorm(3)
        self.head = nn.Linear(3, 2)


HEIGHTS = {"patches": 6, "stages.0.0": 5, "stages.0.1": 4, "mergings.0": 3, "stages.1.0": 2, "stages.1.1": 1}
HEIGHTS |= {"norm": 0, "head": 0}


def test_layers_by_the_numbers_in_their_names() -> None:
    found = layer_heights(Stages())
    assert found == {f"{layer}.{kind}": height for layer, height in HEIGHTS.items() for kind in ("weight", "bias")}


def test_lower_layers_learn_slower() -> None:
    model = Stages()
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    shares = {
        names[id(parameter)]: group["share"]
        for group in parameter_groups(model, 0.1, layer_decay=0.5)
        for parameter in group["params"]
    }
    assert shares == {name: pytest.approx(0.5**height) for name, height in layer_heights(model).items()}
    assert {group["share"] for group in parameter_groups(model, 0.1)} == {1.0}


def test_a_share_reaches_the_step() -> None:
    """One step of SGD with gradients of one moves each weight by its own rate."""
    model = Stages()
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    optimizer = torch.optim.SGD(parameter_groups(model, 0.0, layer_decay=0.5), lr=1.0)
    for group in optimizer.param_groups:
        group["lr"] = group["share"]
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        moved = (before[name] - parameter).flatten()[0].item()
        assert moved == pytest.approx(0.5 ** layer_heights(model)[name], rel=1e-5)
