"""What a picture classifier offers, so that losses, recordings and plots need not know which model it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from regard.core.axes import Axis


@dataclass(frozen=True)
class Choices:
    """What was drawn by chance on the way to an answer, for a loss that rewards good choices (REINFORCE)."""

    log_probabilities: Float[Tensor, "batch choices"]
    """Of each choice; their gradient is that of what chose."""
    baselines: Float[Tensor, "batch choices"]
    """The reward that was expected before each choice."""


@dataclass(frozen=True)
class ClassifierOutput:
    """Scores of the classes, and the vector that they were read off."""

    logits: Float[Tensor, "batch classes"]
    features: Float[Tensor, "batch width"]
    auxiliary: Mapping[str, Float[Tensor, "batch classes"]] = field(default_factory=dict)
    """Scores of further heads by name, such as the `distillation` head of DeiT."""
    choices: Choices | None = None
    """In training, of a model that chooses where to look."""
    drawn: Mapping[str, Float[Tensor, "batch *places xy"]] = field(default_factory=dict)
    """What can be drawn on the pictures, as x and y in pixels: the `scan_path` of glimpses, corners of `windows`."""


@runtime_checkable
class Classifier(Protocol):
    """Says what is in a picture. Pictures are normalised floats, channels first."""

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        """Scores for a batch of equally large pictures."""

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """For each role that a tap names, its axis on a picture of this size: `{"patches": Grid(...)}`."""
