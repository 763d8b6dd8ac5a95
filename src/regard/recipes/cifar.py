"""CIFAR-10 at an equal budget: attention against convolution, and how each takes to little data.

Every recipe of the table has 40 minutes on two processor cores, those of the data curve 10; the schedule ends with the
budget. The curve is of a ViT and a ResNet on 2, 10 and 100 % of the training pictures, the smaller part of the larger.
"""

from __future__ import annotations

from typing import Any

from regard.core.models import ModelConfig, sizes
from regard.data.pictures.config import PictureConfig
from regard.models.convmixer import ConvMixerConfig
from regard.models.stand_alone import StandAloneConfig
from regard.models.swin import SwinConfig
from regard.models.vit import ViTConfig
from regard.recipes.classifying import ClassificationRunConfig
from regard.recipes.config import recipes
from regard.tasks.classification import ClassificationConfig
from regard.training.config import TrainingConfig

TABLE_MINUTES, CURVE_MINUTES = 40, 10


def _run(
    recipe: str, model: ModelConfig, max_epochs: float, max_minutes: float, data: dict[str, Any], **options: Any
) -> ClassificationRunConfig:
    usual = {"schedule": "cosine", "warmup_steps": 500, "weight_decay": 0.05, "betas": (0.9, 0.99), "eps": 1e-8}
    chosen = {"max_epochs": max_epochs, "max_minutes": max_minutes, "metric": "accuracy", "lower_is_better": False}
    return ClassificationRunConfig(
        recipe=recipe,
        model=model,
        data=PictureConfig(source="cifar10", batch_size=128, **data),
        task=ClassificationConfig(label_smoothing=0.1),
        training=TrainingConfig(**{**usual, **chosen, **options}),
    )


@recipes.register("swin-cifar10")
def swin_cifar10() -> ClassificationRunConfig:
    """A compact Swin Transformer on CIFAR-10, 40 minutes"""
    model = SwinConfig(
        image_size=32,
        patch_size=2,
        window_size=4,
        width=64,
        num_blocks=(2, 4, 2),
        num_heads=(2, 4, 8),
        feed_forward_ratio=2.0,
        stochastic_depth_rate=0.1,
    )
    return _run("swin-cifar10", model, 24, TABLE_MINUTES, {}, learning_rate=1.5e-3)


@recipes.register("convmixer-cifar10")
def convmixer_cifar10() -> ClassificationRunConfig:
    """ConvMixer on CIFAR-10, 40 minutes"""
    model = ConvMixerConfig(width=128, num_blocks=8, kernel_size=5, patch_size=2)
    return _run("convmixer-cifar10", model, 10, TABLE_MINUTES, {}, learning_rate=5e-3)


@recipes.register("sasa-cifar10")
def sasa_cifar10() -> ClassificationRunConfig:
    """A ResNet with stand-alone self-attention in place of its 3 x 3 convolutions on CIFAR-10, 40 minutes"""
    model = StandAloneConfig(width=24, num_blocks=(2, 2, 2), window_size=5, stem="attention", block_size=2)
    return _run("sasa-cifar10", model, 8, TABLE_MINUTES, {}, learning_rate=3e-3)


@recipes.register("hybrid-cifar10")
def hybrid_cifar10() -> ClassificationRunConfig:
    """A wider course CNN with attention over its last feature map on CIFAR-10, 40 minutes"""
    model = sizes["course_cnn_multihead"]().model_copy(update={"width": 64})
    return _run("hybrid-cifar10", model, 30, TABLE_MINUTES, {}, learning_rate=3e-3)


def _curve(kind: str, per_cent: int) -> ClassificationRunConfig:
    """As many steps at any share of the data, as far as 200 epochs make them: what fits into the minutes."""
    share = per_cent / 100
    if kind == "vit":
        model: ModelConfig = ViTConfig(
            image_size=32, patch_size=4, width=192, num_heads=4, num_blocks=6, feed_forward_width=384
        )
        epochs, rate = 9.0, 1e-3
    else:
        model, epochs, rate = sizes["resnet20_cifar"](), 10.0, 3e-3
    most = min(epochs / share, 200.0)
    every = max(1.0, most / 20)
    data = {"fraction": share}
    options = {"learning_rate": rate, "warmup_steps": 200, "validate_every": every}
    return _run(f"{kind}-cifar10-{per_cent}-percent", model, most, CURVE_MINUTES, data, **options)


@recipes.register("vit-cifar10-2-percent")
def vit_cifar10_2_percent() -> ClassificationRunConfig:
    """The data curve: a ViT on a fiftieth of CIFAR-10"""
    return _curve("vit", 2)


@recipes.register("vit-cifar10-10-percent")
def vit_cifar10_10_percent() -> ClassificationRunConfig:
    """The data curve: a ViT on a tenth of CIFAR-10"""
    return _curve("vit", 10)


@recipes.register("vit-cifar10-100-percent")
def vit_cifar10_100_percent() -> ClassificationRunConfig:
    """The data curve: a ViT on all of CIFAR-10, 10 minutes"""
    return _curve("vit", 100)


@recipes.register("resnet20-cifar10-2-percent")
def resnet20_cifar10_2_percent() -> ClassificationRunConfig:
    """The data curve: a ResNet on a fiftieth of CIFAR-10"""
    return _curve("resnet20", 2)


@recipes.register("resnet20-cifar10-10-percent")
def resnet20_cifar10_10_percent() -> ClassificationRunConfig:
    """The data curve: a ResNet on a tenth of CIFAR-10"""
    return _curve("resnet20", 10)


@recipes.register("resnet20-cifar10-100-percent")
def resnet20_cifar10_100_percent() -> ClassificationRunConfig:
    """The data curve: a ResNet on all of CIFAR-10, 10 minutes"""
    return _curve("resnet20", 100)
