"""ConvNeXt, MLP-Mixer, ConvMixer and BiT of other libraries with random weights, copied into ours; their sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import timm
import torch
import torchvision
from timm.layers import StdConv2d
from timm.models.convmixer import ConvMixer
from timm.models.convnext import ConvNeXt
from timm.models.mlp_mixer import MlpMixer
from timm.models.resnetv2 import ResNetV2
from torch import nn
from torchvision.models.convnext import CNBlockConfig
from transformers import ConvNextConfig, ConvNextForImageClassification

from regard.core.errors import CheckpointError
from regard.core.models import sizes
from regard.pretrained.bit import timm_to_bit
from regard.pretrained.convnext import timm_to_convnext, torchvision_to_convnext, transformers_to_convnext
from regard.pretrained.mixers import timm_to_convmixer, timm_to_mixer

from .convnet_peers import CLASSES, assert_same_logits, count_parameters, filled, parameters_of, randomised

PUBLISHED = {
    "convnext_tiny": 28_589_128,
    "convnext_small": 50_223_688,
    "convnext_base": 88_591_464,
    "convnext_large": 197_767_336,
    "mixer_s32_224": 19_104_624,
    "mixer_s16_224": 18_528_264,
    "mixer_b32_224": 60_293_428,
    "mixer_b16_224": 59_880_472,
    "mixer_l32_224": 206_939_264,
    "mixer_l16_224": 208_196_168,
    "convmixer_768_32": 21_110_248,
    "convmixer_1024_20": 24_383_464,
    "convmixer_1536_20": 51_625_960,
    "bit_50x1": 25_549_352,
    "bit_50x3": 217_319_080,
    "bit_101x1": 44_541_480,
    "bit_101x3": 387_934_888,
    "bit_152x2": 236_335_208,
    "bit_152x4": 936_533_224,
}


def name_in_timm(size: str) -> str:
    if size.startswith("bit_"):
        return f"resnetv2_{size.removeprefix('bit_')}_bit"
    return "convmixer_1024_20_ks9_p14" if size == "convmixer_1024_20" else size


@pytest.mark.parametrize("size", PUBLISHED)
def test_parameters(size: str) -> None:
    with torch.device("meta"):
        peer = timm.create_model(name_in_timm(size), num_classes=1000)
    assert parameters_of(size) == count_parameters(peer) == PUBLISHED[size]


def test_every_size_of_these_models_is_compared() -> None:
    kinds = {"convnext", "mixer", "convmixer", "bit"}
    assert {name for name in sizes if sizes[name]().kind in kinds} == {*PUBLISHED, "convnext_cifar", "convmixer_256_8"}


def convnext_of_timm() -> nn.Module:
    return ConvNeXt(num_classes=CLASSES, depths=(1, 2, 1, 1), dims=(8, 16, 32, 64), kernel_sizes=5, patch_size=3)


def convnext_of_torchvision() -> nn.Module:
    settings = [CNBlockConfig(8, 16, 2), CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 2)]
    return torchvision.models.ConvNeXt(settings, num_classes=CLASSES)


def convnext_of_transformers() -> nn.Module:
    sizes_ = {"hidden_sizes": [8, 16, 32], "depths": [2, 1, 2], "num_stages": 3, "patch_size": 2}
    return ConvNextForImageClassification(ConvNextConfig(num_labels=CLASSES, **sizes_))


def bit() -> nn.Module:
    return ResNetV2(
        [2, 1, 2],
        channels=(128, 256, 512),
        num_classes=CLASSES,
        stem_chs=32,
        stem_type="fixed",
        conv_layer=partial(StdConv2d, eps=1e-8),
    )


@pytest.mark.parametrize(
    ("make", "convert"),
    [
        (convnext_of_timm, timm_to_convnext),
        (convnext_of_torchvision, torchvision_to_convnext),
        (convnext_of_transformers, transformers_to_convnext),
        (lambda: ConvMixer(24, 3, kernel_size=5, patch_size=3, num_classes=CLASSES), timm_to_convmixer),
        (
            lambda: ConvMixer(24, 2, kernel_size=3, patch_size=4, num_classes=CLASSES, act_layer=nn.ReLU),
            partial(timm_to_convmixer, activation="relu"),
        ),
        (bit, timm_to_bit),
    ],
    ids=["convnext-timm", "convnext-torchvision", "convnext-transformers", "convmixer-gelu", "convmixer-relu", "bit"],
)
def test_logits(make: Callable[[], nn.Module], convert: Callable) -> None:
    peer = randomised(make())
    assert_same_logits(filled(*convert(peer.state_dict())), peer)


def test_logits_of_mixer() -> None:
    peer = randomised(MlpMixer(CLASSES, img_size=30, patch_size=5, num_blocks=3, embed_dim=26))
    assert_same_logits(filled(*timm_to_mixer(peer.state_dict())), peer, [(30, 30)])


def test_what_does_not_fit_is_named() -> None:
    state = convnext_of_timm().state_dict()
    second = state | {"stages.0.blocks.0.mlp.grn.weight": torch.zeros(32)}
    with pytest.raises(CheckpointError, match=r"'stages\.0\.blocks\.0\.mlp\.grn\.weight' of shape \(32,\)"):
        timm_to_convnext(second)
    del state["stages.1.blocks.1.gamma"]
    with pytest.raises(CheckpointError, match=r"nothing for our 'stages\.1\.1\.scale' of shape \(16,\)"):
        timm_to_convnext(state)
    with pytest.raises(CheckpointError, match=r"no 'stem\.proj\.weight'"):
        timm_to_mixer(state)
    with pytest.raises(CheckpointError, match="has 6 patches"):
        timm_to_mixer(MlpMixer(CLASSES, img_size=(4, 6), patch_size=2, num_blocks=1, embed_dim=8).state_dict())
