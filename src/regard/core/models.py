"""Models by name. A model is made from its config and the sizes its data ask for; what is listed is tested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from regard.core.config import Config
from regard.core.registry import Registry


class ModelConfig(Config):
    """Base of the models' configs; `kind` is the name in the registry, so that a saved config finds its model."""

    kind: str


@dataclass(frozen=True)
class ModelEntry:
    """How a model is read from a config and built, and what a list says of it."""

    config: type[ModelConfig]
    build: Callable[..., nn.Module]
    paper: str


models: Registry[ModelEntry] = Registry("model")


def read_model_config(value: Any) -> ModelConfig:
    """A config from its JSON form, through the registry."""
    if isinstance(value, ModelConfig):
        return value
    return models[str(value.get("kind"))].config.model_validate(value)
