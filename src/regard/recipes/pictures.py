"""Picture classifiers: on generated shapes, which need no download and whose places are known, and on CIFAR-10.

The budgets are for two processor cores. The course's four networks (deck A) differ in the model only, so that what is
compared is what the deck compares.
"""

from __future__ import annotations

from typing import Any

from regard.core.models import ModelConfig, sizes
from regard.data.pictures.config import PictureConfig
from regard.models.swin import SwinConfig
from regard.models.vit import ViTConfig
from regard.recipes.classifying import ClassificationRunConfig
from regard.recipes.config import recipes
from regard.tasks.classification import ClassificationConfig
from regard.training.config import TrainingConfig


def _training(max_epochs: float, learning_rate: float, **options: Any) -> TrainingConfig:
    """The best weights are those that are most often right."""
    usual = {"schedule": "cosine", "warmup_steps": 200, "weight_decay": 0.05, "betas": (0.9, 0.99), "eps": 1e-8}
    chosen = {"max_epochs": max_epochs, "learning_rate": learning_rate, "metric": "accuracy", "lower_is_better": False}
    return TrainingConfig(**{**usual, **chosen, **options})


def _shapes(recipe: str, model: ModelConfig, training: TrainingConfig, **expected: float) -> ClassificationRunConfig:
    return ClassificationRunConfig(
        recipe=recipe,
        model=model,
        data=PictureConfig(source="shapes", num_pictures=10_000, batch_size=64),
        training=training,
        expected=expected,
    )


@recipes.register("cnn-shapes")
def cnn_shapes() -> ClassificationRunConfig:
    """The course's CNN with eight heads of attention, on generated shapes"""
    return _shapes("cnn-shapes", sizes["course_cnn_multihead"](), _training(5, 2e-3))


@recipes.register("vit-shapes")
def vit_shapes() -> ClassificationRunConfig:
    """A small Vision Transformer on generated shapes"""
    model = ViTConfig(image_size=64, patch_size=8, width=128, num_heads=4, num_blocks=4, feed_forward_width=256)
    return _shapes("vit-shapes", model, _training(12, 1e-3))


@recipes.register("swin-shapes")
def swin_shapes() -> ClassificationRunConfig:
    """A small Swin Transformer on generated shapes"""
    model = SwinConfig(image_size=64, patch_size=4, window_size=4, width=48, num_blocks=(2, 2, 2), num_heads=(2, 4, 8))
    return _shapes("swin-shapes", model, _training(8, 1e-3))


def _cifar(
    recipe: str, model: ModelConfig, training: TrainingConfig, *, label_smoothing: float = 0.0, **expected: float
) -> ClassificationRunConfig:
    return ClassificationRunConfig(
        recipe=recipe,
        model=model,
        data=PictureConfig(source="cifar10", batch_size=128),
        task=ClassificationConfig(label_smoothing=label_smoothing),
        training=training,
        expected=expected,
    )


def _course(recipe: str, size: str, accuracy: float) -> ClassificationRunConfig:
    return _cifar(recipe, sizes[size](), _training(15, 3e-3), accuracy=accuracy)


@recipes.register("course-cnn-cifar10")
def course_cnn_cifar10() -> ClassificationRunConfig:
    """Deck A's plain CNN of 2.5 M parameters on CIFAR-10"""
    return _course("course-cnn-cifar10", "course_cnn", 83.0)


@recipes.register("course-cnn-small-cifar10")
def course_cnn_small_cifar10() -> ClassificationRunConfig:
    """Deck A's small CNN of 0.5 M parameters, without attention, on CIFAR-10"""
    return _course("course-cnn-small-cifar10", "course_cnn_small", 80.0)


@recipes.register("course-cnn-attention-cifar10")
def course_cnn_attention_cifar10() -> ClassificationRunConfig:
    """Deck A's small CNN with one head of attention, on CIFAR-10"""
    return _course("course-cnn-attention-cifar10", "course_cnn_attention", 83.0)


@recipes.register("course-cnn-multihead-cifar10")
def course_cnn_multihead_cifar10() -> ClassificationRunConfig:
    """Deck A's small CNN with several heads of attention, on CIFAR-10"""
    return _course("course-cnn-multihead-cifar10", "course_cnn_multihead", 83.5)


@recipes.register("resnet-cifar10")
def resnet_cifar10() -> ClassificationRunConfig:
    """A short, wide ResNet on CIFAR-10"""
    training = _training(
        20, 0.2, optimizer="sgd", weight_decay=5e-4, clip_norm=None, schedule="linear", warmup_steps=1500
    )
    return _cifar("resnet-cifar10", sizes["wide_resnet_10_4"](), training, label_smoothing=0.1, accuracy=93.0)


@recipes.register("vit-cifar10")
def vit_cifar10() -> ClassificationRunConfig:
    """A compact Vision Transformer on CIFAR-10"""
    model = ViTConfig(image_size=32, patch_size=4, width=192, num_heads=4, num_blocks=6, feed_forward_width=384)
    return _cifar("vit-cifar10", model, _training(60, 1e-3, warmup_steps=1500), label_smoothing=0.1)


@recipes.register("finetune")
def finetune() -> ClassificationRunConfig:
    """A checkpoint of yours (--start.checkpoint) on pictures of yours (--data.root); else a small ViT on shapes"""
    model = ViTConfig(image_size=64, patch_size=8, width=128, num_heads=4, num_blocks=4, feed_forward_width=256)
    return _shapes("finetune", model, _training(10, 5e-4, warmup_steps=100, layer_decay=0.75))
