"""Small models of everything that is registered: each as it is by default, and with each choice changed, one at a time.

The choices are read off the config: a `Literal`, a yes or no, or the name of a mechanism, of positions or of a cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

import torch
from torch import Tensor, nn

import regard.models  # noqa: F401  (fills the registry)
from regard.attention import mechanisms
from regard.core.errors import ConfigError
from regard.core.models import ModelConfig, models
from regard.core.seq2seq import Seq2Seq
from regard.core.special import BOS, NUM_SPECIAL, PAD
from regard.layers.positions import positions
from regard.layers.recurrent import cells

SMALL = {
    "width": 22,
    "embedding_width": 22,
    "alignment_width": 17,
    "feed_forward_width": 19,
    "num_heads": 2,
    "num_encoder_blocks": 2,
    "num_decoder_blocks": 3,
    "num_layers": 2,
    "max_length": 41,
}
CHOICES = {"attention": mechanisms, "positions": positions, "cell": cells}
SOURCE_VOCABULARY, TARGET_VOCABULARY = 29, 31
SOURCE_LENGTHS, TARGET_LENGTHS = (7, 5, 2), (3, 5, 4)


@dataclass(frozen=True)
class Subject:
    """A registered model with some options changed."""

    kind: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        changed = ",".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.kind}[{changed}]" if changed else self.kind

    def config(self, rate: float = 0.0) -> ModelConfig:
        known = models[self.kind].config.model_fields
        sizes = {name: size for name, size in SMALL.items() if name in known}
        rates = {name: rate for name in known if name.endswith("_rate")}
        return models[self.kind].config(**{**sizes, **rates, **self.options})

    def build(self, rate: float = 0.0, seed: int = 0) -> nn.Module:
        """With dropout at `rate`, in training; vocabularies of different sizes where the model can have that."""
        torch.manual_seed(seed)
        try:
            return models[self.kind].build(self.config(rate), SOURCE_VOCABULARY, TARGET_VOCABULARY)
        except ConfigError:
            torch.manual_seed(seed)
            return models[self.kind].build(self.config(rate), TARGET_VOCABULARY, TARGET_VOCABULARY)


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


TRANSLATORS = [kind for kind, entry in models.items() if entry.family == "translator"]
SUBJECTS = {subject.name: subject for kind in TRANSLATORS for subject in variants(kind)}


def batch(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Sources and targets of different lengths, padded; targets start with BOS."""
    generator = torch.Generator().manual_seed(seed)
    sizes = (len(SOURCE_LENGTHS), max(SOURCE_LENGTHS)), (len(TARGET_LENGTHS), max(TARGET_LENGTHS))
    source, target = (torch.randint(NUM_SPECIAL, SOURCE_VOCABULARY - 1, size, generator=generator) for size in sizes)
    target[:, 0] = BOS
    for tokens, lengths in ((source, SOURCE_LENGTHS), (target, TARGET_LENGTHS)):
        for row, length in enumerate(lengths):
            tokens[row, length:] = PAD
    return source, target


def features(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    assert isinstance(model, Seq2Seq), f"no contract knows what {type(model).__name__} is"
    return model(source, target).features


def loss(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """Predicting each next token of the target."""
    logits = model(source, target[:, :-1]).logits
    return nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
