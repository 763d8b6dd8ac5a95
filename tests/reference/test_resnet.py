"""ResNets of torchvision, timm and `transformers` with random weights, copied into ours: equal logits, equal sizes."""

from __future__ import annotations

import pytest
import timm
import torch
import torchvision
from torchvision.models.resnet import BasicBlock, Bottleneck
from transformers import ResNetConfig, ResNetForImageClassification

from regard.core.errors import CheckpointError
from regard.pretrained.resnet import torchvision_to_resnet, transformers_to_resnet

from .convnet_peers import CLASSES, assert_same_logits, count_parameters, filled, parameters_of, randomised

IMAGENET = {"resnet18": 11_689_512, "resnet34": 21_797_672, "resnet50": 25_557_032, "resnet101": 44_549_160}


@pytest.mark.parametrize("block", [BasicBlock, Bottleneck])
def test_logits_of_torchvision(block: type) -> None:
    peer = randomised(torchvision.models.ResNet(block, [2, 1, 2, 1], num_classes=CLASSES))
    assert_same_logits(filled(*torchvision_to_resnet(peer.state_dict())), peer)


@pytest.mark.parametrize("block", ["BasicBlock", "Bottleneck"])
def test_logits_of_timm(block: str) -> None:
    layers = getattr(timm.models.resnet, block)
    peer = randomised(timm.models.resnet.ResNet(layers, (1, 2, 1, 1), num_classes=CLASSES))
    assert_same_logits(filled(*torchvision_to_resnet(peer.state_dict())), peer)


@pytest.mark.parametrize(("block", "expansion"), [("basic", 1), ("bottleneck", 4)])
def test_logits_of_transformers(block: str, expansion: int) -> None:
    config = ResNetConfig(
        embedding_size=12,
        hidden_sizes=[12 * expansion * 2**stage for stage in range(3)],
        depths=[2, 1, 2],
        layer_type=block,
        num_labels=CLASSES,
    )
    peer = randomised(ResNetForImageClassification(config))
    assert_same_logits(filled(*transformers_to_resnet(peer.state_dict(), config.to_dict())), peer)


@pytest.mark.parametrize("size", [*IMAGENET, "resnet152"])
def test_parameters(size: str) -> None:
    with torch.device("meta"):
        peer = getattr(torchvision.models, size)()
    assert parameters_of(size) == count_parameters(peer) == IMAGENET.get(size, 60_192_808)


@pytest.mark.parametrize(
    ("size", "millions"),
    [
        ("resnet20_cifar", 0.27),
        ("resnet32_cifar", 0.46),
        ("resnet44_cifar", 0.66),
        ("resnet56_cifar", 0.85),
        ("resnet110_cifar", 1.7),
        ("wide_resnet_16_4", 2.7),
        ("wide_resnet_28_10", 36.5),
    ],
)
def test_parameters_as_the_papers_print_them(size: str, millions: float) -> None:
    digits = 1 if millions > 1 else 2
    assert parameters_of(size, num_classes=10) / 1e6 == pytest.approx(millions, abs=0.51 * 10**-digits)


def test_what_does_not_fit_is_named() -> None:
    state = torchvision.models.ResNet(BasicBlock, [1, 1, 1, 1], num_classes=CLASSES).state_dict()
    more = state | {"layer1.0.se.fc1.weight": torch.zeros(5, 64)}
    with pytest.raises(CheckpointError, match=r"'layer1\.0\.se\.fc1\.weight' of shape \(5, 64\)"):
        torchvision_to_resnet(more)
    less = {name: tensor for name, tensor in state.items() if name != "layer2.0.conv2.weight"}
    with pytest.raises(CheckpointError, match=r"'stages\.1\.0\.second\.convolution\.weight' of shape \(128, 128, 3, 3"):
        torchvision_to_resnet(less)
    misnamed = less | {"layer2.0.conv5.weight": state["layer2.0.conv2.weight"]}
    with pytest.raises(CheckpointError, match=r"'layer2\.0\.conv5.*missing: 'stages\.1\.0\.second\.convolution\.weigh"):
        torchvision_to_resnet(misnamed)
    wrong = state | {"layer2.0.conv2.weight": torch.zeros(128, 128, 5, 5)}
    with pytest.raises(CheckpointError, match=r"'layer2\.0\.conv2\.weight' has the shape \(128, 128, 5, 5\), but our"):
        torchvision_to_resnet(wrong)
    with pytest.raises(CheckpointError, match=r"no 'conv1\.weight'"):
        torchvision_to_resnet({})


def test_old_files_do_not_count_batches() -> None:
    peer = torchvision.models.ResNet(BasicBlock, [1, 1, 1, 1], num_classes=CLASSES)
    state = {name: tensor for name, tensor in peer.state_dict().items() if "num_batches" not in name}
    filled(*torchvision_to_resnet(state))


def test_another_transformers_resnet_is_refused() -> None:
    config = ResNetConfig(downsample_in_bottleneck=True).to_dict()
    with pytest.raises(CheckpointError, match="downsample_in_bottleneck = True"):
        transformers_to_resnet({}, config)
