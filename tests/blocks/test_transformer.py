"""Transformer blocks: the two orders of norm, both kinds of heads, one position at a time."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.blocks.transformer import BlockParts, BlockState, DecoderBlock, EncoderBlock
from regard.core.bias import OffsetBias
from regard.core.errors import ConfigError, UnknownNameError
from regard.core.masks import Allow, allow_padding
from regard.core.tap import taps

BATCH, SOURCES, TARGETS, WIDTH, HEADS = 2, 7, 5, 22, 2


def parts(**changes: object) -> BlockParts:
    usual: dict = {
        "width": WIDTH,
        "num_heads": HEADS,
        "feed_forward_width": 13,
        "activation": "relu",
        "norm": "post",
        "heads": "full",
        "attention": "scaled_dot",
        "dropout_rate": 0.0,
        "attention_dropout_rate": 0.0,
    }
    return BlockParts(**{**usual, **changes})


def norm(inputs: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(inputs, (WIDTH,))


def test_the_encoder_block_as_its_formula() -> None:
    block, inputs = EncoderBlock(parts(), axis="source"), torch.randn(BATCH, SOURCES, WIDTH)
    attended = norm(block.attention(inputs) + inputs)
    torch.testing.assert_close(block(inputs, Allow(), None), norm(block.feed_forward(attended) + attended))


def test_the_encoder_block_with_the_norm_first() -> None:
    block, inputs = EncoderBlock(parts(norm="pre"), axis="source"), torch.randn(BATCH, SOURCES, WIDTH)
    attended = block.attention(norm(inputs)) + inputs
    torch.testing.assert_close(block(inputs, Allow(), None), block.feed_forward(norm(attended)) + attended)


def test_the_decoder_block_as_its_formula() -> None:
    block = DecoderBlock(parts(), axis="target", memory_axis="source")
    inputs, memory = torch.randn(BATCH, TARGETS, WIDTH), torch.randn(BATCH, SOURCES, WIDTH)
    causal = torch.ones(TARGETS, TARGETS, dtype=torch.bool).tril()
    first = norm(block.attention(inputs, allow=causal) + inputs)
    second = norm(block.cross(first, *block.cross.project_memory(memory)) + first)
    wanted = norm(block.feed_forward(second) + second)
    torch.testing.assert_close(block(inputs, block.remember(memory, Allow()), None), wanted)


@pytest.mark.parametrize("heads", ["full", "split"])
@pytest.mark.parametrize("attention", ["scaled_dot", "additive"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_a_step_is_a_position(heads: str, attention: str, with_bias: bool) -> None:
    """For two hypotheses a sentence that share one memory."""
    block = DecoderBlock(parts(heads=heads, attention=attention), axis="target", memory_axis="source")
    inputs, memory = torch.randn(BATCH, 2, TARGETS, WIDTH), torch.randn(BATCH, SOURCES, WIDTH)
    present = torch.arange(SOURCES) < torch.tensor([SOURCES, 3])[:, None]
    by_distance = torch.randn(HEADS, 2 * TARGETS - 1)

    def bias(queries: int, keys: int) -> OffsetBias | None:
        first = TARGETS - keys
        return OffsetBias(by_distance[:, first : first + queries + keys - 1]) if with_bias else None

    remembered = block.remember(memory, allow_padding(present))
    whole = torch.stack([block(inputs[:, i], remembered, bias(TARGETS, TARGETS)) for i in range(2)], dim=1)
    state = BlockState(remembered, None, TARGETS)
    for place in range(TARGETS):
        features, state = block.step(inputs[:, :, place], state, bias(1, place + 1))
        torch.testing.assert_close(features, whole[:, :, place], rtol=1e-4, atol=1e-5)


def test_states_follow_their_sentences_and_hypotheses() -> None:
    block = DecoderBlock(parts(), axis="target", memory_axis="source")
    memory = block.remember(torch.randn(3, SOURCES, WIDTH), Allow())
    empty = BlockState(memory, None, TARGETS)
    assert empty.keep(torch.tensor([2])).cache is None
    assert empty.reorder(torch.zeros(3, 2, dtype=torch.long)).cache is None
    _, state = block.step(torch.randn(3, 1, WIDTH), empty, None)
    kept = state.keep(torch.tensor([2, 0]))
    assert torch.equal(kept.memory.keys, memory.keys[[2, 0]])
    assert torch.equal(kept.memory.values, memory.values[[2, 0]])
    wider = kept.reorder(torch.zeros(2, 4, dtype=torch.long))
    assert wider.memory is kept.memory, "hypotheses share their source"
    features, _ = block.step(torch.randn(2, 1, WIDTH).expand(2, 4, WIDTH), wider, None)
    torch.testing.assert_close(features, features[:, :1].expand_as(features))


def test_split_heads_have_fewer_weights() -> None:
    full, split = (EncoderBlock(parts(heads=kind), axis="source") for kind in ("full", "split"))
    weights = [block.attention.projection.weight.numel() for block in (full, split)]
    assert weights == [3 * WIDTH * WIDTH, 3 * WIDTH * WIDTH // HEADS]


def test_taps_say_what_they_relate() -> None:
    block = DecoderBlock(parts(), axis="words", memory_axis="patches")
    found = {address: (tap.queries, tap.keys) for address, tap in taps(block).items()}
    assert found == {"attention": ("words", "words"), "cross": ("words", "patches")}


def test_the_end_of_a_stack() -> None:
    assert isinstance(parts(norm="pre").final_norm(), nn.LayerNorm)
    assert isinstance(parts(norm="post").final_norm(), nn.Identity)


@pytest.mark.parametrize("num_heads", [0, 3])
def test_heads_share_the_width_evenly(num_heads: int) -> None:
    with pytest.raises(ConfigError, match=f"22 cannot be shared evenly by {num_heads} heads"):
        EncoderBlock(parts(num_heads=num_heads), axis="source")


def test_an_unknown_mechanism_is_answered() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'scaled_dot'"):
        EncoderBlock(parts(attention="scaled-dot"), axis="source")
