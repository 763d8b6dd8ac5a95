"""The two blocks of a Transformer (Vaswani et al. 2017; deck D gives both as maps from X to X').

    encoder   U = Norm(SelfAttention(X) + X),  X' = Norm(FFN(U) + U)
    decoder   U_1 = Norm(MaskedSelfAttention(Y) + Y),  U_2 = Norm(Attention(U_1, X') + U_1),
              Y' = Norm(FFN(U_2) + U_2)

The place of the norm is a part that is handed in (`layers.residual`), and so is the kind of self-attention.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.kernels import Bias
from regard.attention.multihead import (
    MultiHeadCrossAttention,
    MultiHeadSelfAttention,
    SplitHeadSelfAttention,
)
from regard.blocks.cache import KeyValueCache
from regard.core.masks import Allow, allow_causal
from regard.core.steps import Step, at_step
from regard.layers.feed_forward import Activation, FeedForward
from regard.layers.residual import RESIDUALS

SELF_ATTENTION: dict[str, type[MultiHeadSelfAttention]] = {
    "full": MultiHeadSelfAttention,
    "split": SplitHeadSelfAttention,
}


@dataclass(frozen=True, kw_only=True)
class BlockParts:
    """What every block of a stack is made from."""

    width: int
    num_heads: int
    feed_forward_width: int
    activation: Activation
    norm: str
    heads: str
    attention: str
    dropout_rate: float
    attention_dropout_rate: float

    def self_attention(self, axis: str) -> MultiHeadSelfAttention:
        return SELF_ATTENTION[self.heads](
            self.width,
            self.num_heads,
            axis=axis,
            mechanism=self.attention,
            dropout_rate=self.attention_dropout_rate,
        )

    def cross_attention(self, queries: str, keys: str) -> MultiHeadCrossAttention:
        return MultiHeadCrossAttention(
            self.width,
            self.num_heads,
            queries=queries,
            keys=keys,
            mechanism=self.attention,
            dropout_rate=self.attention_dropout_rate,
        )

    def feed_forward(self) -> FeedForward:
        return FeedForward(self.width, self.feed_forward_width, self.activation, self.dropout_rate)

    def residual(self) -> nn.Module:
        return RESIDUALS[self.norm](self.width, self.dropout_rate)

    def final_norm(self) -> nn.Module:
        """What comes after the last block."""
        return nn.LayerNorm(self.width) if RESIDUALS[self.norm].final_norm else nn.Identity()


class EncoderBlock(nn.Module):
    """Self-attention, then a position-wise network."""

    def __init__(self, parts: BlockParts, *, axis: str) -> None:
        super().__init__()
        self.attention = parts.self_attention(axis)
        self.feed_forward = parts.feed_forward()
        self.attention_residual = parts.residual()
        self.feed_forward_residual = parts.residual()

    def forward(
        self, inputs: Float[Tensor, "batch positions width"], allow: Allow, bias: Bias | None
    ) -> Float[Tensor, "batch positions width"]:
        attended = self.attention_residual(inputs, lambda x: self.attention(x, allow=allow, bias=bias))
        return self.feed_forward_residual(attended, self.feed_forward)


@dataclass(frozen=True)
class CrossMemory:
    """Keys and values that one decoder block reads from the encoder: one row a sentence, whatever the beam."""

    keys: Tensor
    values: Float[Tensor, "batch heads sources head_width"]
    allow: Allow

    def contiguous(self) -> CrossMemory:
        """Laid out once for the products of many steps."""
        return CrossMemory(self.keys.contiguous(), self.values.contiguous(), self.allow)

    def keep(self, sentences: Int[Tensor, "kept"]) -> CrossMemory:
        return CrossMemory(self.keys[sentences], self.values[sentences], self.allow.select(sentences))


@dataclass(frozen=True)
class BlockState:
    """What one decoder block remembers between two steps."""

    memory: CrossMemory
    cache: KeyValueCache | None
    max_length: int
    place: Step = field(default_factory=Step)

    def keep(self, sentences: Int[Tensor, "kept"]) -> BlockState:
        cache = None if self.cache is None else self.cache.keep(sentences)
        return replace(self, memory=self.memory.keep(sentences), cache=cache, place=self.place.keep(sentences))

    def reorder(self, beams: Int[Tensor, "batch width"]) -> BlockState:
        return replace(self, cache=None if self.cache is None else self.cache.reorder(beams))


class DecoderBlock(nn.Module):
    """Masked self-attention, attention to the encoder, then a position-wise network."""

    def __init__(self, parts: BlockParts, *, axis: str, memory_axis: str) -> None:
        super().__init__()
        self.attention = parts.self_attention(axis)
        self.cross = parts.cross_attention(axis, memory_axis)
        self.feed_forward = parts.feed_forward()
        self.attention_residual = parts.residual()
        self.cross_residual = parts.residual()
        self.feed_forward_residual = parts.residual()

    def remember(self, memory: Float[Tensor, "batch sources width"], allow: Allow) -> CrossMemory:
        return CrossMemory(*self.cross.project_memory(memory), allow)

    def forward(
        self, inputs: Float[Tensor, "batch targets width"], memory: CrossMemory, bias: Bias | None
    ) -> Float[Tensor, "batch targets width"]:
        """All positions at once."""
        attended = self.attention_residual(inputs, lambda x: self.attention(x, allow=allow_causal(), bias=bias))
        return self._after_self_attention(attended, memory)

    def step(
        self, inputs: Float[Tensor, "batch width features"], state: BlockState, bias: Bias | None
    ) -> tuple[Float[Tensor, "batch width features"], BlockState]:
        """One more position for each hypothesis; hypotheses are independent rows for self-attention."""
        cache = state.cache
        batch, width = inputs.shape[:2]

        def attend(x: Tensor) -> Tensor:
            nonlocal cache
            queries, keys, values = self.attention.project(x.flatten(0, 1)[:, None])
            if cache is None:
                cache = KeyValueCache.empty(keys, values, batch, state.max_length)
            cache = cache.append(keys, values)
            context = self.attention.attend(queries, *cache.filled(), allow=allow_causal(), bias=bias)
            return context.view(batch, width, -1)

        with at_step(state.place, self.attention.mechanism.tap):
            attended = self.attention_residual(inputs, attend)
        with at_step(state.place, self.cross.mechanism.tap):
            features = self._after_self_attention(attended, state.memory)
        return features, replace(state, cache=cache, place=state.place.following())

    def _after_self_attention(self, inputs: Tensor, memory: CrossMemory) -> Tensor:
        informed = self.cross_residual(inputs, lambda x: self.cross(x, memory.keys, memory.values, allow=memory.allow))
        return self.feed_forward_residual(informed, self.feed_forward)
