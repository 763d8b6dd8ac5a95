"""RNNsearch (Bahdanau, Cho and Bengio 2015; decks A, C and D): the decoder searches the source at every step.

    h_j = [forward GRU; backward GRU],  s_0 = tanh(W_s h_1 backward)
    e_ij = w . tanh(W_a s_{i-1} + U_a h_j),  alpha_i = softmax(e_i),  c_i = sum_j alpha_ij h_j
    s_i = GRU([y_{i-1}; c_i], s_{i-1}),  p(y_i) = softmax(W_o maxout([s_i; y_{i-1}; c_i]))

| ours | paper |
| --- | --- |
| width | n, and 2n for an annotation there |
| embedding_width, alignment_width | m, n' |

Departures: the two directions share `width`, so that annotations and states are equally wide and parameter-free
scores fit as well; the maxout sees s_i where the paper's appendix has s_{i-1}; any registered mechanism may
take the place of the additive one; dropout.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.blocks.recurrent import (
    AttentionReader,
    BidirectionalEncoder,
    ContextDecoder,
    RecurrentMemory,
    RecurrentState,
)
from regard.core.dropout import dropout
from regard.core.errors import ConfigError
from regard.core.linear import Linear
from regard.core.models import ModelConfig, ModelEntry, models
from regard.core.seq2seq import Seq2SeqOutput
from regard.core.special import PAD
from regard.layers.embedding import initialise_embeddings


class RNNSearchConfig(ModelConfig):
    """Sizes of RNNsearch."""

    kind: Literal["rnnsearch"] = "rnnsearch"
    width: int = 256
    """Size of the decoder's state and of an annotation."""
    embedding_width: int = 256
    """Size of a token's vector."""
    alignment_width: int = 256
    """Hidden size of the additive score."""
    cell: str = "gru"
    """gru, lstm or rnn."""
    attention: str = "additive"
    """How the source is searched: any name of `regard list mechanisms`."""
    dropout_rate: float = 0.2
    """Dropout on embeddings, annotations and the features before the output."""
    initial_dropout_rate: float = 0.0
    """Dropout on the vector that starts the decoder: it knows the first words, and a decoder that cannot rely on it
    looks them up like all others."""
    attention_dropout_rate: float = 0.0
    """Dropout on attention weights."""
    tied: bool = True
    """One matrix for target embedding and output."""


class RNNSearch(nn.Module):
    """A bidirectional encoder, and a decoder that attends to it."""

    def __init__(self, config: RNNSearchConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        if config.width % 2:
            raise ConfigError(f"`--model.width` is shared by two directions and must be even, not {config.width}.")
        self.dropout_rate = config.dropout_rate
        self.initial_dropout_rate = config.initial_dropout_rate
        self.source_embedding = nn.Embedding(source_vocabulary, config.embedding_width)
        self.target_embedding = nn.Embedding(target_vocabulary, config.embedding_width)
        self.encoder = BidirectionalEncoder(config.cell, config.embedding_width, config.width)
        reader = AttentionReader(
            config.attention, config.width, config.width, config.alignment_width, config.attention_dropout_rate
        )
        self.decoder = ContextDecoder(
            reader, config.cell, config.embedding_width, config.width, config.width, config.embedding_width
        )
        self.initial_state = Linear(config.width // 2, config.width)
        self.readout: nn.Linear = Linear(config.embedding_width, target_vocabulary)
        initialise_embeddings(self.source_embedding, self.target_embedding)
        if config.tied:
            self.readout.weight = self.target_embedding.weight

    def forward(self, source: Int[Tensor, "batch sources"], target: Int[Tensor, "batch targets"]) -> Seq2SeqOutput:
        features = self.decoder(self._dropped(self.target_embedding(target)), self.encode(source))
        return Seq2SeqOutput(self._dropped(features), self.readout)

    def encode(self, source: Int[Tensor, "batch sources"]) -> RecurrentMemory:
        present = source != PAD
        annotations, summary = self.encoder(self._dropped(self.source_embedding(source)), present)
        backward = dropout(summary.chunk(2, dim=-1)[1], self.initial_dropout_rate, self.training)
        state = self.decoder.cell.initial(torch.tanh(self.initial_state(backward)))
        return self.decoder.reader.remember(self._dropped(annotations), summary, present, state)

    def start(self, memory: RecurrentMemory, max_length: int) -> RecurrentState:
        return RecurrentState.first(memory)

    def step(
        self, tokens: Int[Tensor, "batch width"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch width features"], RecurrentState]:
        features, state = self.decoder.step(self._dropped(self.target_embedding(tokens)), state)
        return self._dropped(features), state

    def _dropped(self, inputs: Tensor) -> Tensor:
        return dropout(inputs, self.dropout_rate, self.training)


def rnnsearch_50() -> RNNSearchConfig:
    """The paper's sizes."""
    return RNNSearchConfig(width=2000, embedding_width=620, alignment_width=1000, dropout_rate=0.0, tied=False)


models.register("rnnsearch")(ModelEntry(RNNSearchConfig, RNNSearch, "Bahdanau, Cho and Bengio 2015"))
