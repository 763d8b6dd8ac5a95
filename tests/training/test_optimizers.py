import pytest
import torch
from torch import nn

from regard.core.errors import ConfigError, UnknownNameError
from regard.training.optimizers import build_optimizer, parameter_groups

from .toy import ToyModel, toy_config


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 5)
        self.norm = nn.LayerNorm((2, 5))
        self.relative_bias = nn.Parameter(torch.zeros(7, 2))
        self.table = nn.Embedding(11, 3)
        self.scale = nn.Parameter(torch.ones(5))
        self.tied = nn.Linear(3, 11, bias=False)
        self.tied.weight = self.table.weight


def test_only_matrices_decay():
    model = Mixed()
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    decayed, kept = parameter_groups(model, 0.1)
    assert [names[id(parameter)] for parameter in decayed["params"]] == ["linear.weight", "table.weight"]
    assert {names[id(parameter)] for parameter in kept["params"]} == {
        "linear.bias",
        "norm.weight",
        "norm.bias",
        "relative_bias",
        "scale",
    }
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.1, 0.0)


def test_frozen_parameters_are_left_out():
    model = ToyModel()
    model.block.requires_grad_(False)
    optimizer = build_optimizer(model, toy_config(), "cpu")
    trained = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    assert trained == {id(parameter) for parameter in model.heads.parameters()}


def test_a_wholly_frozen_model_is_refused():
    with pytest.raises(ConfigError, match="frozen"):
        build_optimizer(ToyModel().requires_grad_(False), toy_config(), "cpu")


@pytest.mark.parametrize("name", ["adamw", "sgd"])
@pytest.mark.parametrize("device_type", ["cpu", "somewhere"])
def test_every_optimizer_steps(name, device_type):
    model = ToyModel()
    optimizer = build_optimizer(model, toy_config(optimizer=name, weight_decay=0.1), device_type)
    assert optimizer.param_groups[0]["fused"] is (device_type == "cpu")
    before = model.block.linear.weight.clone()
    model(torch.ones(2, 5)).square().sum().backward()
    optimizer.step()
    assert not torch.equal(before, model.block.linear.weight)


def test_an_unknown_optimizer_names_the_nearest():
    with pytest.raises(UnknownNameError, match="adamw"):
        build_optimizer(ToyModel(), toy_config(optimizer="adam"), "cpu")
