"""Models by name. A model is made from its config and the sizes its data ask for; what is listed is tested.

| family | made with | offers |
| --- | --- | --- |
| `translator` | config, source vocabulary, target vocabulary | `core.seq2seq.Seq2Seq` |
| `classifier` | config, number of classes, channels of a picture | `core.classifier.Classifier` |
| `glimpser` | the same | the same, with `choices` in training, by which it learns where to look |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import model_validator
from torch import nn

from regard.core.config import Config
from regard.core.registry import Registry

Family = Literal["translator", "classifier", "glimpser"]


class ModelConfig(Config):
    """Base of the models' configs; `kind` is the name in the registry, so that a saved config finds its model.

    Whole numbers in it are sizes and counts, at least 1; what is called `_rate` is a probability below 1.
    """

    kind: str

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        for name, value in self:
            if isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise ValueError(f"{name} is {value}, but it has to be at least 1")
            if name.endswith("_rate") and not 0 <= value < 1:
                raise ValueError(f"{name} is {value}, but it is a probability: at least 0 and below 1")
        return self


@dataclass(frozen=True)
class ModelEntry:
    """How a model is read from a config and built, and what a list says of it."""

    config: type[ModelConfig]
    build: Callable[..., nn.Module]
    paper: str
    family: Family = "translator"


models: Registry[ModelEntry] = Registry("model")

sizes: Registry[Callable[[], ModelConfig]] = Registry("model size")
"""Published sizes by name: `sizes["vit_base_patch16_224"]()` is a config, whose `kind` finds the model."""


def read_model_config(value: Any) -> ModelConfig:
    """A config from its JSON form, through the registry."""
    if isinstance(value, ModelConfig):
        return value
    return models[str(value.get("kind"))].config.model_validate(value)
