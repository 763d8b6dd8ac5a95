"""Networks of local attention: sizes as their papers print them, and the layer against its formula."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import regard.models  # noqa: F401  (fills the registry)
from regard.attention.local_relation import LocalRelation
from regard.core.models import models, sizes
from regard.recording import record


def meta(size: str) -> nn.Module:
    with torch.device("meta"):
        return models[sizes[size]().kind].build(sizes[size](), 1000, 3).eval()


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def products(model: nn.Module, side: int = 224) -> int:
    """Multiplications with an addition for one picture, counted by formula from the shapes that layers see."""
    counted: list[int] = []

    def convolution(layer: nn.Module, _: object, output: Tensor) -> None:
        counted.append(layer.weight.numel() * output.shape[-2] * output.shape[-1])

    def linear(layer: nn.Module, inputs: tuple[Tensor], _: Tensor) -> None:
        counted.append(layer.weight.numel() * inputs[0].shape[:-1].numel())

    def relation(layer: nn.Module, _: object, output: Tensor) -> None:
        scores, context = 2 * layer.num_groups, output.shape[1]
        counted.append((scores + context) * layer.window**2 * output.shape[-2] * output.shape[-1])

    kinds = {nn.Conv2d: convolution, nn.Linear: linear, LocalRelation: relation}
    for layer in model.modules():
        if type(layer) in kinds:
            layer.register_forward_hook(kinds[type(layer)])
    with torch.device("meta"):
        model(torch.empty(1, 3, side, side))
    return sum(counted)


def test_lrnet50_has_the_size_of_deck_c() -> None:
    """23.3 M and 25.5 M parameters, cut off; as many operations as ResNet-50, about 4.3 G."""
    assert count(meta("lrnet50")) // 10**5 == 233
    assert count(meta("resnet50")) // 10**5 == 255
    local, convolutional = products(meta("lrnet50")), products(meta("resnet50"))
    assert convolutional == 4_089_184_256
    assert local == pytest.approx(convolutional, rel=0.03)
    assert local == pytest.approx(4.3e9, rel=0.08)


@pytest.mark.parametrize(
    ("size", "millions"), [("sasa_resnet26", 10.3), ("sasa_resnet38", 14.1), ("sasa_resnet50", 18.0)]
)
def test_sasa_has_the_size_of_its_paper(size: str, millions: float) -> None:
    assert count(meta(size)) / 1e6 == pytest.approx(millions, abs=0.1)


@pytest.mark.parametrize(("height", "width", "window", "stride"), [(5, 7, 3, 1), (7, 5, 5, 2)])
def test_local_relation_by_its_formula(height: int, width: int, window: int, stride: int) -> None:
    """Squared differences of one number a group, and a prior on the offset; 8 channels in groups of 3, 3 and 2."""
    layer = LocalRelation(8, 3, window, stride=stride, queries="few", keys="many")
    features = torch.randn(2, 8, height, width)
    with record(layer) as recording, torch.no_grad():
        context = layer(features)
    q, k = layer.query_projection(features), layer.key_projection(features)
    expected = torch.zeros_like(context)
    radius = window // 2
    for i, row in enumerate(range(0, height, stride)):
        for j, column in enumerate(range(0, width, stride)):
            around = [
                (y, x)
                for y in range(max(0, row - radius), min(height, row + radius + 1))
                for x in range(max(0, column - radius), min(width, column + radius + 1))
            ]
            for channel in range(8):
                group = channel // 3
                offsets = torch.tensor([[y - row, x - column] for y, x in around]) / radius
                prior = layer.prior.contract(torch.relu(layer.prior.expand(offsets)))[:, group]
                keys = torch.stack([k[:, group, y, x] for y, x in around], dim=1)
                weights = (-(q[:, group, row, column, None] - keys).square() + prior).softmax(dim=-1)
                values = torch.stack([features[:, channel, y, x] for y, x in around], dim=1)
                expected[:, channel, i, j] = (weights * values).sum(-1).detach()
            seen = recording["attention"].weights(head=2, rows=i * -(-width // stride) + j)
            torch.testing.assert_close(
                seen[:, [y * width + x for y, x in around]], weights.detach(), rtol=1e-4, atol=1e-5
            )
    torch.testing.assert_close(context, layer.output(expected).detach(), rtol=1e-4, atol=1e-5)
