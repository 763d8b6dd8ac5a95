"""Small models of every registered classifier: as it is by default, and with each choice changed, one at a time.

Sizes and choices are read off the config: a name that says what it counts, a `Literal`, a yes or no, or the name of a
mechanism or of positions. Pictures are of another size than models are built for, and not square.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

import torch
from torch import Tensor, nn

import regard.models  # noqa: F401  (fills the registry)
from regard.attention import mechanisms
from regard.core.models import ModelConfig, models
from regard.layers.grid_positions import grid_positions

BATCH, CHANNELS, HEIGHT, WIDTH, CLASSES = 3, 2, 32, 40, 5

SMALL = {"image_size": 32, "patch_size": 8, "window_size": 3, "feed_forward_width": 19}
SMALL_STAGES = {"num_heads": (2, 3), "num_blocks": (2, 2)}
SMALL_WIDTH, SMALL_NUMBER = 24, 2
CHOICES = {"attention": mechanisms, "positions": grid_positions}


@dataclass(frozen=True)
class Subject:
    """A registered classifier with some options changed."""

    kind: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        changed = ",".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.kind}[{changed}]" if changed else self.kind

    def config(self, rate: float = 0.0) -> ModelConfig:
        fields = models[self.kind].config.model_fields
        sizes = {name: _small(name, information.default) for name, information in fields.items()}
        rates = {name: rate for name in fields if name.endswith("_rate")}
        return models[self.kind].config(**{**sizes, **rates, **self.options})

    def build(self, rate: float = 0.0, seed: int = 0) -> nn.Module:
        """With dropout at `rate`, in training."""
        torch.manual_seed(seed)
        return models[self.kind].build(self.config(rate), CLASSES, CHANNELS)


def _small(name: str, default: Any) -> Any:
    """The value of a size that makes a model quick; what is no size stays as it is."""
    if isinstance(default, tuple) and all(type(entry) is int for entry in default):
        return SMALL_STAGES.get(name, tuple(_small(name, entry) for entry in default[:2]))
    if type(default) is not int:
        return default
    if name in SMALL:
        return SMALL[name]
    if name.endswith(("width", "widths")):
        return min(default, SMALL_WIDTH)
    return min(default, SMALL_NUMBER) if name.startswith("num_") else default


def variants(kind: str) -> Iterator[Subject]:
    """The default, then every other value of every choice."""
    yield Subject(kind)
    for name, information in models[kind].config.model_fields.items():
        for value in _values(name, information.annotation):
            if value != information.default:
                yield Subject(kind, {name: value})


def _values(name: str, annotation: Any) -> list[Any]:
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if annotation is bool:
        return [False, True]
    return list(CHOICES.get(name, ()))


CLASSIFIERS = [kind for kind, entry in models.items() if entry.family == "classifier"]
SUBJECTS = {subject.name: subject for kind in CLASSIFIERS for subject in variants(kind)}


def pictures(seed: int = 0) -> Tensor:
    return torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(seed))


def loss(model: nn.Module, images: Tensor) -> Tensor:
    """Each picture is of a class of its own, for every head that the model has."""
    output = model(images)
    wanted = torch.arange(len(images))
    scores = [output.logits, *output.auxiliary.values()]
    return sum((nn.functional.cross_entropy(each.float(), wanted) for each in scores), torch.zeros(()))
