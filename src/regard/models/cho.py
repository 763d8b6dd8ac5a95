"""RNN encoder-decoder with a fixed vector (Cho et al. 2014; RNNencdec in deck C's table): RNNsearch without search.

    c = tanh(V [last hidden vectors of the encoder]),  s_0 = tanh(V' c)
    s_i = GRU([y_{i-1}; c], s_{i-1}),  p(y_i) = softmax(W_o maxout([s_i; y_{i-1}; c]))

The whole source has to fit into c: deck E's "the fixed size of context limits the length of sentences". Everything
but the context is RNNsearch's, so that a comparison of the two is a comparison of attention with none.

Departure: the encoder may read in both directions (`bidirectional`), as RNNsearch does, to make that comparison
exact; the paper's reads forwards only.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.blocks.recurrent import (
    BidirectionalEncoder,
    ContextDecoder,
    ForwardEncoder,
    RecurrentMemory,
    RecurrentState,
    SummaryReader,
)
from regard.core.dropout import dropout
from regard.core.errors import ConfigError
from regard.core.linear import Linear
from regard.core.models import ModelConfig, ModelEntry, models
from regard.core.seq2seq import Seq2SeqOutput
from regard.core.special import PAD
from regard.layers.embedding import initialise_embeddings


class ChoConfig(ModelConfig):
    """Sizes of the encoder-decoder with a fixed vector."""

    kind: Literal["cho"] = "cho"
    width: int = 256
    """Size of the fixed vector and of the decoder's state."""
    embedding_width: int = 256
    """Size of a token's vector."""
    cell: str = "gru"
    """gru, lstm or rnn."""
    bidirectional: bool = False
    """Whether the encoder reads in both directions."""
    dropout_rate: float = 0.2
    """Dropout on embeddings and the features before the output."""
    tied: bool = True
    """One matrix for target embedding and output."""


class ChoEncoderDecoder(nn.Module):
    """Squeezes the source into one vector, then writes the target from it."""

    def __init__(self, config: ChoConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        if config.bidirectional and config.width % 2:
            raise ConfigError(f"`--model.width` is shared by two directions and must be even, not {config.width}.")
        self.dropout_rate = config.dropout_rate
        self.source_embedding = nn.Embedding(source_vocabulary, config.embedding_width)
        self.target_embedding = nn.Embedding(target_vocabulary, config.embedding_width)
        encoder = BidirectionalEncoder if config.bidirectional else ForwardEncoder
        self.encoder = encoder(config.cell, config.embedding_width, config.width)
        self.summary = Linear(config.width, config.width)
        self.initial_state = Linear(config.width, config.width)
        self.decoder = ContextDecoder(
            SummaryReader(), config.cell, config.embedding_width, config.width, config.width, config.embedding_width
        )
        self.readout: nn.Linear = Linear(config.embedding_width, target_vocabulary)
        initialise_embeddings(self.source_embedding, self.target_embedding)
        if config.tied:
            self.readout.weight = self.target_embedding.weight

    def forward(self, source: Int[Tensor, "batch sources"], target: Int[Tensor, "batch targets"]) -> Seq2SeqOutput:
        features = self.decoder(self._dropped(self.target_embedding(target)), self.encode(source))
        return Seq2SeqOutput(self._dropped(features), self.readout)

    def encode(self, source: Int[Tensor, "batch sources"]) -> RecurrentMemory:
        present = source != PAD
        annotations, last = self.encoder(self._dropped(self.source_embedding(source)), present)
        summary = torch.tanh(self.summary(last))
        state = self.decoder.cell.initial(torch.tanh(self.initial_state(summary)))
        return self.decoder.reader.remember(annotations, summary, present, state)

    def start(self, memory: RecurrentMemory, max_length: int) -> RecurrentState:
        return RecurrentState.first(memory)

    def step(
        self, tokens: Int[Tensor, "batch width"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch width features"], RecurrentState]:
        features, state = self.decoder.step(self._dropped(self.target_embedding(tokens)), state)
        return self._dropped(features), state

    def _dropped(self, inputs: Tensor) -> Tensor:
        return dropout(inputs, self.dropout_rate, self.training)


models.register("cho")(ModelEntry(ChoConfig, ChoEncoderDecoder, "Cho et al. 2014"))
