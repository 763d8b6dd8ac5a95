"""A run, completely described: what `config.json` of a run folder holds."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny

from regard.core.config import Config
from regard.core.models import ModelConfig, read_model_config
from regard.core.registry import Registry
from regard.data.config import DataConfig
from regard.tasks.translation import TranslationConfig
from regard.training.config import TrainingConfig


class RunConfig(Config):
    """Model, data, task and budget of one training."""

    recipe: str
    """The recipe this started from."""
    model: SerializeAsAny[Annotated[ModelConfig, BeforeValidator(read_model_config)]]
    """Which model, and its sizes."""
    data: DataConfig = DataConfig()
    """Which corpus, and how it is cut into tokens and batches."""
    task: TranslationConfig = TranslationConfig()
    """Loss, search and alignment."""
    training: TrainingConfig = TrainingConfig()
    """Optimizer, schedule, budget, checkpoints."""
    expected: dict[str, float] = Field(default_factory=dict)
    """What this recipe is meant to reach on its test part; `regard eval` compares."""


recipes: Registry[Any] = Registry("recipe")
"""Functions without arguments that return a `RunConfig`."""
