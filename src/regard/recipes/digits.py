"""Digits that have to be found first: the spatial transformer and the recurrent attention model on MNIST.

Digits are distorted anew in every epoch; those to validate and to test on are distorted once.
"""

from __future__ import annotations

from typing import Any

from regard.core.models import ModelConfig, sizes
from regard.data.pictures.config import PictureConfig
from regard.data.pictures.distort import Distortion
from regard.recipes.classifying import ClassificationRunConfig
from regard.recipes.config import recipes
from regard.training.config import TrainingConfig


def _digits(
    recipe: str, model: ModelConfig, distortion: Distortion, training: TrainingConfig, **data: Any
) -> ClassificationRunConfig:
    return ClassificationRunConfig(
        recipe=recipe,
        model=model,
        data=PictureConfig(source="mnist", distortion=distortion, batch_size=128, **data),
        training=training,
    )


def _training(max_epochs: float, learning_rate: float, **options: Any) -> TrainingConfig:
    usual = {"schedule": "cosine", "warmup_steps": 200, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.01}
    chosen = {"max_epochs": max_epochs, "learning_rate": learning_rate, "metric": "accuracy", "lower_is_better": False}
    return TrainingConfig(**{**usual, **chosen, **options})


def _expecting(config: ClassificationRunConfig, accuracy: float) -> ClassificationRunConfig:
    return config.model_copy(update={"expected": {"accuracy": accuracy}})


@recipes.register("stn-mnist")
def stn_mnist() -> ClassificationRunConfig:
    """A spatial transformer on digits that are turned, scaled and moved"""
    training = _training(12, 2e-3)
    return _expecting(_digits("stn-mnist", sizes["stn_mnist"](), "rotated_scaled", training), 99.0)


@recipes.register("stn-mnist-multihead")
def stn_mnist_multihead() -> ClassificationRunConfig:
    """The same with two windows"""
    training = _training(12, 2e-3)
    return _expecting(_digits("stn-mnist-multihead", sizes["stn_mnist_multihead"](), "rotated_scaled", training), 99.0)


def _glimpses(
    recipe: str, size: str, distortion: Distortion, max_epochs: float, **data: Any
) -> ClassificationRunConfig:
    """Gradients are not clipped together: those of the locations are of another kind than the classes'."""
    training = _training(max_epochs, 1e-3, clip_norm=None, precision="float32")
    return _digits(recipe, sizes[size](), distortion, training, **data)


@recipes.register("ram-mnist")
def ram_mnist() -> ClassificationRunConfig:
    """The recurrent attention model with six glimpses on digits in their middle"""
    return _expecting(_glimpses("ram-mnist", "ram_mnist", "none", 60), 98.0)


@recipes.register("ram-mnist-translated")
def ram_mnist_translated() -> ClassificationRunConfig:
    """The recurrent attention model with eight glimpses at three scales on digits anywhere on 60 x 60"""
    return _glimpses("ram-mnist-translated", "ram_mnist_cluttered", "translated", 60)


@recipes.register("ram-mnist-cluttered")
def ram_mnist_cluttered() -> ClassificationRunConfig:
    """The same among scraps of other digits"""
    return _glimpses("ram-mnist-cluttered", "ram_mnist_cluttered", "translated_cluttered", 60)
