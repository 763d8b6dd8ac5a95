"""The attention decoder as deck E numbers its steps (Luong, Pham and Manning 2015, without input feeding).

    1  start from the embedding of the start token and the encoder's last state
    2  h_t = RNN(y_{t-1}, h_{t-1})
    3  c_t = sum_s align(h_t, h_s) h_s
    4  concatenate [h_t; c_t]
    5  a feed-forward layer: h~_t = tanh(W_c [h_t; c_t])
    6  p(y_t) = softmax(W_s h~_t)
    7  again from 2 for the next word

Scores of the paper: dot, general (`bilinear` here) and concat (`additive_concatenated`); any other mechanism fits.
Attention comes after the recurrence, so under teacher forcing all queries attend at once.

Departure: none of the paper's input feeding, because the deck's decoder has none; our start token is `<s>` where
the deck writes <END>.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.blocks.recurrent import AttentionReader, RecurrentMemory, RecurrentStack, RecurrentState
from regard.core.dropout import dropout
from regard.core.linear import Linear
from regard.core.models import ModelConfig, ModelEntry, models
from regard.core.seq2seq import Seq2SeqOutput
from regard.core.special import PAD
from regard.core.steps import Step
from regard.layers.embedding import initialise_embeddings


class LuongConfig(ModelConfig):
    """Sizes of the attention decoder of deck E."""

    kind: Literal["luong"] = "luong"
    width: int = 256
    """Size of a layer's hidden vector."""
    embedding_width: int = 256
    """Size of a token's vector."""
    num_layers: int = 2
    """Layers of encoder and decoder each."""
    cell: str = "lstm"
    """lstm, gru or rnn."""
    attention: str = "bilinear"
    """The score: dot, bilinear, additive_concatenated, or any other name of `regard list mechanisms`."""
    dropout_rate: float = 0.2
    """Dropout on embeddings, between layers and on the features before the output."""
    attention_dropout_rate: float = 0.0
    """Dropout on attention weights."""


class Luong(nn.Module):
    """Recurrence first, attention second, then both together predict the word."""

    def __init__(self, config: LuongConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.dropout_rate = config.dropout_rate
        sizes = (config.cell, config.embedding_width, config.width, config.num_layers, config.dropout_rate)
        self.source_embedding = nn.Embedding(source_vocabulary, config.embedding_width)
        self.target_embedding = nn.Embedding(target_vocabulary, config.embedding_width)
        self.encoder = RecurrentStack(*sizes)
        self.decoder = RecurrentStack(*sizes)
        self.reader = AttentionReader(
            config.attention, config.width, config.width, config.width, config.attention_dropout_rate
        )
        self.combine = Linear(2 * config.width, config.width, bias=False)
        self.readout: nn.Linear = Linear(config.width, target_vocabulary)
        initialise_embeddings(self.source_embedding, self.target_embedding)

    def forward(self, source: Int[Tensor, "batch sources"], target: Int[Tensor, "batch targets"]) -> Seq2SeqOutput:
        memory = self.encode(source)
        hidden, _ = self.decoder(self._dropped(self.target_embedding(target)), memory.state)
        return Seq2SeqOutput(self._attended(hidden, memory), self.readout)

    def encode(self, source: Int[Tensor, "batch sources"]) -> RecurrentMemory:
        present = source != PAD
        inputs = self._dropped(self.source_embedding(source))
        annotations, state = self.encoder(inputs, self.encoder.initial(inputs), present)
        return self.reader.remember(annotations, annotations[:, -1], present, state)

    def start(self, memory: RecurrentMemory, max_length: int) -> RecurrentState:
        return RecurrentState.first(memory)

    def step(
        self, tokens: Int[Tensor, "batch width"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch width features"], RecurrentState]:
        outputs, hidden = self.decoder.step(self._dropped(self.target_embedding(tokens)), state.hidden)
        return self._attended(outputs, state.memory, state.place), state.following(hidden)

    def _attended(
        self, hidden: Float[Tensor, "batch targets width"], memory: RecurrentMemory, step: Step | None = None
    ) -> Float[Tensor, "batch targets width"]:
        context = self.reader.read(hidden, memory, step)
        combined = torch.tanh(self.combine(torch.cat([hidden, context.to(hidden.dtype)], dim=-1)))
        return self._dropped(combined)

    def _dropped(self, inputs: Tensor) -> Tensor:
        return dropout(inputs, self.dropout_rate, self.training)


models.register("luong")(ModelEntry(LuongConfig, Luong, "Luong, Pham and Manning 2015"))
