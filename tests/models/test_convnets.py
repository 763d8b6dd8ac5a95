"""Convolutional networks and the rivals of the vision Transformer, small: at an even and an odd size of picture."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import regard.models  # noqa: F401  (fills the registry)
from regard.core.errors import ConfigError
from regard.core.models import ModelConfig, models, read_model_config, sizes
from regard.core.tap import taps
from regard.models.bit import BiTConfig
from regard.models.cnn import CNNConfig
from regard.models.convmixer import ConvMixerConfig
from regard.models.convnext import ConvNeXtConfig
from regard.models.lrnet import LRNetConfig
from regard.models.mixer import MixerConfig
from regard.models.resnet import ResNetConfig
from regard.models.stand_alone import StandAloneConfig
from regard.models.wide_resnet import WideResNetConfig

from .convnets import CHECKS, build, pictures

CONFIGS: dict[str, ModelConfig] = {
    "cnn": CNNConfig(width=6, num_convolutions=(1, 2, 1), num_heads=3),
    "cnn_mean": CNNConfig(width=6, num_convolutions=(1, 1), readout="mean"),
    "cnn_dense": CNNConfig(width=6, num_convolutions=(1, 1), readout="dense", hidden_width=13),
    "resnet": ResNetConfig(width=6, num_blocks=(2, 1)),
    "resnet_padded": ResNetConfig(width=6, num_blocks=(1, 2), padded_shortcut=True),
    "resnet_bottleneck": ResNetConfig(width=6, num_blocks=(1, 2), block="bottleneck", stem="imagenet"),
    "resnet_non_local": ResNetConfig(width=6, num_blocks=(1, 1, 1), non_local_after=(1, 3), num_heads=3),
    "mixer": MixerConfig(image_size=12, patch_size=3, width=10, num_blocks=2, token_width=7, feed_forward_width=13),
    "convmixer": ConvMixerConfig(width=10, num_blocks=2, kernel_size=3),
    "convnext": ConvNeXtConfig(width=6, num_blocks=(1, 2), kernel_size=3),
    "bit": BiTConfig(width=6, num_blocks=(1, 2), num_groups=3),
    "stand_alone": StandAloneConfig(width=8, num_blocks=(1, 2), num_heads=2, window_size=3),
    "stand_alone_stem": StandAloneConfig(width=9, num_blocks=(1, 1), num_heads=3, window_size=4, stem="attention"),
    "lrnet": LRNetConfig(width=5, inner_width=7, num_blocks=(1, 2), channels_per_group=3, window_size=3),
    "lrnet_stem": LRNetConfig(
        width=5, inner_width=6, num_blocks=(1, 1), channels_per_group=4, window_size=5, stem_stride=2
    ),
    "wide_resnet": WideResNetConfig(width=5, widening=2, num_blocks=(1, 2)),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("name", CONFIGS)
def test_contract(name: str, check: Callable[[ModelConfig, int, int], None]) -> None:
    for height, width in ((32, 32), (17, 29)):
        if "recording" in check.__name__ and not taps(build(CONFIGS[name])):
            continue
        if "taps" in check.__name__ and not taps(build(CONFIGS[name])):
            assert build(CONFIGS[name]).axes(height, width) == {}
            continue
        check(CONFIGS[name], height, width)


@pytest.mark.parametrize("name", [name for name in sizes if models[sizes[name]().kind].family == "classifier"])
def test_published_sizes_can_be_built(name: str) -> None:
    config = sizes[name]()
    assert read_model_config(config.model_dump(mode="json")) == config
    with torch.device("meta"):
        models[config.kind].build(config, 5, 3)


def test_a_closed_gate_changes_nothing() -> None:
    """A non-local block that has learned nothing yet leaves the network as it was without it."""
    config = ResNetConfig(width=6, num_blocks=(1, 1))
    with_attention = models["resnet"].build(config.model_copy(update={"non_local_after": (1, 2)}), 7, 3).eval()
    without = models["resnet"].build(config, 7, 3).eval()
    without.load_state_dict(with_attention.state_dict(), strict=False)
    images = pictures(13, 11)
    assert torch.equal(with_attention(images).logits, without(images).logits)


def test_attention_behind_a_stage_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="names the stage 3"):
        build(ResNetConfig(num_blocks=(1, 1), non_local_after=(1, 3)))


@pytest.mark.parametrize(
    ("size", "parameters"),
    [
        ("course_cnn", 2_543_594),
        ("course_cnn_small", 473_450),
        ("course_cnn_attention", 502_762),
        ("course_cnn_multihead", 502_762),
    ],
)
def test_parameters_of_the_course(size: str, parameters: int) -> None:
    with torch.device("meta"):
        model = models["cnn"].build(sizes[size](), 10, 3)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (MixerConfig(image_size=10, patch_size=3), "multiple"),
        (ConvMixerConfig(kernel_size=4), "odd"),
        (BiTConfig(width=6, num_groups=4), "4 groups"),
    ],
)
def test_sizes_that_do_not_fit(config: ModelConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(config)
