"""The Transformer encoder-decoder (Vaswani et al. 2017; decks A to E).

    encoder  X = positions(sqrt(d) E[x]),  N blocks of self-attention and feed-forward
    decoder  Y = positions(sqrt(d) E[y]),  N blocks of masked self-attention, attention to X, feed-forward
    logits   Y W,  with W = E where embeddings are tied

| ours | paper |
| --- | --- |
| width, num_heads, feed_forward_width | d_model, h, d_ff |
| num_encoder_blocks, num_decoder_blocks | N |
| norm = "post" / "pre" | as printed / norm first with a last norm behind the stack |

Departures: positions may be learned, relative or absent; self-attention may be deck D's split variant; any
registered mechanism may stand in for the scaled dot product; ReLU may be GELU or SiLU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.blocks.transformer import BlockParts, BlockState, CrossMemory, DecoderBlock, EncoderBlock
from regard.core.dropout import dropout
from regard.core.errors import ConfigError
from regard.core.linear import Linear
from regard.core.masks import allow_present
from regard.core.models import ModelConfig, ModelEntry, models
from regard.core.seq2seq import Seq2SeqOutput
from regard.core.special import PAD
from regard.layers.feed_forward import Activation
from regard.layers.positions import Positions, positions


class TransformerConfig(ModelConfig):
    """Sizes and variants of the Transformer."""

    kind: Literal["transformer"] = "transformer"
    width: int = 256
    """Size of a token's vector (d_model)."""
    num_heads: int = 4
    """Attention heads; they share the width evenly."""
    num_encoder_blocks: int = 3
    """Blocks of the encoder."""
    num_decoder_blocks: int = 3
    """Blocks of the decoder."""
    feed_forward_width: int = 1024
    """Hidden size of the position-wise networks (d_ff)."""
    activation: Activation = "relu"
    """Nonlinearity of the position-wise networks."""
    norm: Literal["post", "pre"] = "post"
    """Norm after each residual sum (the paper) or before each sublayer."""
    positions: str = "sinusoidal"
    """sinusoidal, sinusoidal_halves, learned, relative or none."""
    max_length: int = 512
    """Number of learned positions; sinusoids go on beyond it."""
    heads: Literal["full", "split"] = "full"
    """Every head sees the whole input (the paper), or only its piece of it (deck D)."""
    attention: str = "scaled_dot"
    """The mechanism inside each head: any name of `regard list mechanisms`."""
    dropout_rate: float = 0.1
    """Dropout on embeddings, sublayer outputs and hidden feed-forward values."""
    attention_dropout_rate: float = 0.0
    """Dropout on attention weights."""
    readout_bias: bool = False
    """Whether the output has a bias."""
    tied: Literal["all", "target", "none"] = "all"
    """One matrix for both embeddings and the output, for target embedding and output only, or three."""


@dataclass(frozen=True)
class TransformerState:
    """Between two decoding steps."""

    blocks: tuple[BlockState, ...]
    position: int

    def keep(self, sentences: Int[Tensor, "kept"]) -> TransformerState:
        return replace(self, blocks=tuple(block.keep(sentences) for block in self.blocks))

    def reorder(self, beams: Int[Tensor, "batch width"]) -> TransformerState:
        return replace(self, blocks=tuple(block.reorder(beams) for block in self.blocks))


class Transformer(nn.Module):
    """Translates by attention only."""

    def __init__(self, config: TransformerConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        if config.tied == "all" and source_vocabulary != target_vocabulary:
            raise ConfigError(
                f"`tied=all` shares one embedding between two vocabularies of {source_vocabulary} and "
                f"{target_vocabulary} entries. Use a joint tokenizer (`--data.joint`) or `--model.tied target`."
            )
        parts = BlockParts(**{name: getattr(config, name) for name in BlockParts.__dataclass_fields__})
        width = config.width
        self.width = width
        self.dropout_rate = config.dropout_rate
        self.source_embedding = nn.Embedding(source_vocabulary, width)
        self.target_embedding = nn.Embedding(target_vocabulary, width)
        position_kind = positions[config.positions]
        self.source_positions: Positions = position_kind(width, config.num_heads, config.max_length)
        self.target_positions: Positions = position_kind(width, config.num_heads, config.max_length)
        self.encoder = nn.ModuleList(EncoderBlock(parts, axis="source") for _ in range(config.num_encoder_blocks))
        self.encoder_norm = parts.final_norm()
        self.decoder = nn.ModuleList(
            DecoderBlock(parts, axis="target", memory_axis="source") for _ in range(config.num_decoder_blocks)
        )
        self.decoder_norm = parts.final_norm()
        self.readout: nn.Linear = Linear(width, target_vocabulary, bias=config.readout_bias)
        self._initialise()
        if config.tied == "all":
            self.source_embedding.weight = self.target_embedding.weight
        if config.tied != "none":
            self.readout.weight = self.target_embedding.weight

    def forward(self, source: Int[Tensor, "batch sources"], target: Int[Tensor, "batch targets"]) -> Seq2SeqOutput:
        memories = self.encode(source)
        features = self._embed(self.target_embedding, self.target_positions, target, 0)
        bias = self.target_positions.bias(target.shape[1], target.shape[1])
        for block, memory in zip(self.decoder, memories, strict=True):
            features = block(features, memory, bias)
        return Seq2SeqOutput(self.decoder_norm(features), self.readout)

    def encode(self, source: Int[Tensor, "batch sources"]) -> tuple[CrossMemory, ...]:
        """What each decoder block reads of the source, projected once."""
        allow = allow_present(source != PAD)
        features = self._embed(self.source_embedding, self.source_positions, source, 0)
        bias = self.source_positions.bias(source.shape[1], source.shape[1])
        for block in self.encoder:
            features = block(features, allow, bias)
        features = self.encoder_norm(features)
        return tuple(block.remember(features, allow) for block in self.decoder)  # type: ignore[operator]

    def start(self, memory: tuple[CrossMemory, ...], max_length: int) -> TransformerState:
        return TransformerState(tuple(BlockState(part.contiguous(), None, max_length) for part in memory), 0)

    def step(
        self, tokens: Int[Tensor, "batch width"], state: TransformerState
    ) -> tuple[Float[Tensor, "batch width features"], TransformerState]:
        embedded = self._embed(self.target_embedding, self.target_positions, tokens.reshape(-1, 1), state.position)
        features = embedded.view(*tokens.shape, -1)
        bias = self.target_positions.bias(1, state.position + 1)
        blocks = []
        for block, block_state in zip(self.decoder, state.blocks, strict=True):
            features, block_state = block.step(features, block_state, bias)  # type: ignore[operator]
            blocks.append(block_state)
        return self.decoder_norm(features), TransformerState(tuple(blocks), state.position + 1)

    def _embed(self, embedding: nn.Embedding, where: nn.Module, tokens: Tensor, start: int) -> Tensor:
        embedded = where(embedding(tokens) * self.width**0.5, start)
        return dropout(embedded, self.dropout_rate, self.training)

    def _initialise(self) -> None:
        """Glorot for every matrix; embeddings such that sqrt(d) E has unit variance."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.width**-0.5)


def transformer_tiny() -> TransformerConfig:
    """For small corpora such as Multi30k."""
    return TransformerConfig(num_encoder_blocks=4, num_decoder_blocks=2, feed_forward_width=512, dropout_rate=0.3)


def transformer_base() -> TransformerConfig:
    """The paper's base model: width 512, 8 heads, 6 + 6 blocks."""
    return TransformerConfig(
        width=512, num_heads=8, num_encoder_blocks=6, num_decoder_blocks=6, feed_forward_width=2048
    )


models.register("transformer")(ModelEntry(TransformerConfig, Transformer, "Vaswani et al. 2017"))
