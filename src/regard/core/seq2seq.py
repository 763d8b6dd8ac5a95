"""What a sequence-to-sequence model offers, so that losses and decoders need not know which model it is.

Training sees `forward`, decoding sees `encode`, `start`, `step`. A state is a value: it is passed in and
handed back, never kept on the module. Hypotheses of one sentence share its encoded source: beams are a
second axis (`width`) beside `batch`, so that keys and values of the source are never repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn


@dataclass(frozen=True)
class Seq2SeqOutput:
    """The decoder's last features; logits are made only when somebody needs all of them."""

    features: Float[Tensor, "batch targets width"]
    readout: nn.Linear

    @property
    def logits(self) -> Float[Tensor, "batch targets vocabulary"]:
        return self.readout(self.features)


class DecoderState(Protocol):
    """What a decoder remembers between two steps, for `batch` sentences with `width` hypotheses each."""

    def keep(self, sentences: Int[Tensor, "kept"]) -> Self:
        """Only these sentences, in this order: finished ones leave the batch."""

    def reorder(self, beams: Int[Tensor, "batch width"]) -> Self:
        """Hypothesis `w` of sentence `b` continues from hypothesis `beams[b, w]`; widths may differ."""


@runtime_checkable
class Seq2Seq(Protocol):
    """A translator, captioner or recogniser that writes one token after another."""

    readout: nn.Linear

    def forward(self, source: Int[Tensor, "batch sources"], target: Int[Tensor, "batch targets"]) -> Seq2SeqOutput:
        """All positions at once under teacher forcing; `target` starts with BOS."""

    def encode(self, source: Int[Tensor, "batch sources"]) -> Any:
        """The encoded source, with whatever is computed once for all steps."""

    def start(self, memory: Any, max_length: int) -> DecoderState:
        """The state before the first token, with width 1 and room for `max_length` steps."""

    def step(self, tokens: Int[Tensor, "batch width"], state: Any) -> tuple[Float[Tensor, "batch width features"], Any]:
        """Reads one token for each hypothesis and returns features (for `readout`) and the next state."""
