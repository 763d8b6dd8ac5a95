"""A run, completely described: what `config.json` of a run folder holds.

What a run reads and does depends on its task, so each task has a `RunConfig` of its own, which says what `data` and
`task` are. The kind of the task, saved with it, finds the right one again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, Field, SerializeAsAny

from regard.core.config import Config
from regard.core.models import Family, ModelConfig, read_model_config
from regard.core.registry import Registry
from regard.core.task import TaskConfig
from regard.training.config import TrainingConfig

if TYPE_CHECKING:
    from regard.recipes.run import Prepared, Run


class RunConfig(Config):
    """Model, data, task and budget of one training."""

    recipe: str
    """The recipe this started from."""
    model: SerializeAsAny[Annotated[ModelConfig, BeforeValidator(read_model_config)]]
    """Which model, and its sizes."""
    data: SerializeAsAny[Config]
    """Which data, and how they become batches."""
    task: SerializeAsAny[TaskConfig]
    """What is learned, and how it is measured."""
    training: TrainingConfig = TrainingConfig()
    """Optimizer, schedule, budget, checkpoints."""
    expected: dict[str, float] = Field(default_factory=dict)
    """What this recipe is meant to reach on its test part; `regard eval` compares."""

    def with_source(self) -> Self:
        """With the source of data, and the model, that the files which were named can only mean."""
        return self

    def absolute(self) -> Self:
        """With absolute paths, so that a run can be resumed from another folder."""
        return self


@dataclass(frozen=True)
class RunKind:
    """How a run of one task is described, prepared and opened again."""

    config: type[RunConfig]
    family: Family
    """The models that can do this task."""
    headline: str
    """The measure by which results are chosen and compared; more is better."""
    prepare: Callable[..., Prepared]
    open: Callable[..., Run]
    also: tuple[Family, ...] = ()
    """Further families that can do it."""


recipes: Registry[Any] = Registry("recipe")
"""Functions without arguments that return a `RunConfig`."""

run_kinds: Registry[RunKind] = Registry("kind of run")
"""By the kind of the task."""


def read_run_config(value: dict[str, Any]) -> RunConfig:
    """A config from its JSON form; one that does not say which task it has is a translator's."""
    return run_kinds[kind_of(value)].config.model_validate(value)


def kind_of(value: dict[str, Any]) -> str:
    task = value.get("task")
    return str(task.get("kind", "translation")) if isinstance(task, dict) else "translation"
