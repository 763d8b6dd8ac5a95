"""Sequence to sequence with stacked LSTMs (Sutskever, Vinyals and Le 2014; decks A, C and E).

The encoder's last state, of all layers, is the decoder's first one: that vector is all the decoder knows of the
source. The source is read backwards, so that its beginning is near the target's. `cell` may be a GRU or a
plain RNN; the paper has four layers of 1,000 LSTM cells. Departure: dropout.
"""

from __future__ import annotations

from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.blocks.recurrent import RecurrentMemory, RecurrentStack, RecurrentState
from regard.core.dropout import dropout
from regard.core.linear import Linear
from regard.core.masks import Allow
from regard.core.models import ModelConfig, ModelEntry, models
from regard.core.seq2seq import Seq2SeqOutput
from regard.core.special import PAD
from regard.layers.embedding import initialise_embeddings


class SutskeverConfig(ModelConfig):
    """Sizes of the stacked encoder-decoder."""

    kind: Literal["sutskever"] = "sutskever"
    width: int = 256
    """Size of a layer's hidden vector."""
    embedding_width: int = 256
    """Size of a token's vector."""
    num_layers: int = 2
    """Layers of encoder and decoder each."""
    cell: str = "lstm"
    """lstm, gru or rnn."""
    reversed_source: bool = True
    """Whether the source is read from its end."""
    dropout_rate: float = 0.2
    """Dropout on embeddings, between layers and on the features before the output."""


class Sutskever(nn.Module):
    """Two stacks joined by one state."""

    def __init__(self, config: SutskeverConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.dropout_rate = config.dropout_rate
        self.reversed_source = config.reversed_source
        sizes = (config.cell, config.embedding_width, config.width, config.num_layers, config.dropout_rate)
        self.source_embedding = nn.Embedding(source_vocabulary, config.embedding_width)
        self.target_embedding = nn.Embedding(target_vocabulary, config.embedding_width)
        self.encoder = RecurrentStack(*sizes)
        self.decoder = RecurrentStack(*sizes)
        self.readout: nn.Linear = Linear(config.width, target_vocabulary)
        initialise_embeddings(self.source_embedding, self.target_embedding)

    def forward(self, source: Int[Tensor, "batch sources"], target: Int[Tensor, "batch targets"]) -> Seq2SeqOutput:
        memory = self.encode(source)
        features, _ = self.decoder(self._dropped(self.target_embedding(target)), memory.state)
        return Seq2SeqOutput(self._dropped(features), self.readout)

    def encode(self, source: Int[Tensor, "batch sources"]) -> RecurrentMemory:
        if self.reversed_source:  # padding comes first then, and the state waits for what is present
            source = source.flip(1)
        inputs = self._dropped(self.source_embedding(source))
        _, state = self.encoder(inputs, self.encoder.initial(inputs), source != PAD)
        nothing = state[:, None, :0]
        return RecurrentMemory(nothing, nothing, Allow(), state)

    def start(self, memory: RecurrentMemory, max_length: int) -> RecurrentState:
        return RecurrentState.first(memory)

    def step(
        self, tokens: Int[Tensor, "batch width"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch width features"], RecurrentState]:
        inputs = self._dropped(self.target_embedding(tokens))
        features, hidden = self.decoder.step(inputs, state.hidden)
        return self._dropped(features), state.following(hidden)

    def _dropped(self, inputs: Tensor) -> Tensor:
        return dropout(inputs, self.dropout_rate, self.training)


models.register("sutskever")(ModelEntry(SutskeverConfig, Sutskever, "Sutskever, Vinyals and Le 2014"))
