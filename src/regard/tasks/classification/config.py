"""How a picture classifier is trained and measured."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from regard.core.task import TaskConfig


class ClassificationConfig(TaskConfig):
    """The loss, and what is read off its scores."""

    kind: Literal["classification"] = "classification"
    label_smoothing: float = Field(0.0, ge=0.0, lt=1.0)
    """Share of the target distribution that is spread evenly over the classes."""
    auxiliary_weight: float = Field(0.5, ge=0.0, le=1.0)
    """For a model with further heads (DeiT): the share of their losses in the sum; the main head has the rest."""
    evaluation_batch: int = Field(256, ge=1)
    """So many pictures are looked at together where nothing is learned."""
