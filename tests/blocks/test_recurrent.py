"""Recurrent encoders and the decoder that reads a context, against their parts run one after another."""

from __future__ import annotations

import pytest
import torch

from regard.blocks.recurrent import (
    AttentionReader,
    BidirectionalEncoder,
    ContextDecoder,
    ForwardEncoder,
    Reader,
    RecurrentStack,
    RecurrentState,
    SummaryReader,
)
from regard.core.tap import taps
from regard.layers.recurrent import run

BATCH, SOURCES, TARGETS, INPUTS, WIDTH = 3, 7, 5, 11, 6
CELLS = ["rnn", "lstm", "gru"]


def padded() -> tuple[torch.Tensor, torch.Tensor]:
    present = torch.arange(SOURCES) < torch.tensor([SOURCES, 4, 1])[:, None]
    return torch.randn(BATCH, SOURCES, INPUTS), present


@pytest.mark.parametrize("cell", CELLS)
def test_both_directions_side_by_side(cell: str) -> None:
    encoder = BidirectionalEncoder(cell, INPUTS, WIDTH)
    inputs, present = padded()
    annotations, summary = encoder(inputs, present)
    assert annotations.shape == (BATCH, SOURCES, WIDTH)
    for example, length in enumerate((SOURCES, 4, 1)):
        alone = inputs[example : example + 1, :length]
        start = torch.zeros(1, encoder.forwards.state_width)
        ahead, _ = run(encoder.forwards, alone, start)
        behind, _ = run(encoder.backwards, alone.flip(1), start)
        together = torch.cat([ahead, behind.flip(1)], dim=-1)
        torch.testing.assert_close(annotations[example : example + 1, :length], together)
        last = torch.cat([ahead[:, -1], behind[:, -1]], dim=-1)
        torch.testing.assert_close(summary[example : example + 1], last)


def test_directions_share_an_even_width() -> None:
    with pytest.raises(AssertionError, match="7 is odd"):
        BidirectionalEncoder("gru", INPUTS, 7)


@pytest.mark.parametrize("cell", CELLS)
def test_one_direction(cell: str) -> None:
    encoder = ForwardEncoder(cell, INPUTS, WIDTH)
    inputs, present = padded()
    annotations, summary = encoder(inputs, present)
    for example, length in enumerate((SOURCES, 4, 1)):
        torch.testing.assert_close(summary[example], annotations[example, length - 1])


@pytest.mark.parametrize("cell", CELLS)
def test_a_stack_is_its_layers(cell: str) -> None:
    stack = RecurrentStack(cell, INPUTS, WIDTH, 3, 0.0)
    inputs, present = padded()
    state = torch.randn(BATCH, stack.state_width)
    outputs, last = stack(inputs, state, present)
    layer_outputs, states = inputs, []
    for layer, part in zip(stack.cells, state.chunk(3, dim=-1), strict=True):
        layer_outputs, following = run(layer, layer_outputs, part, present)
        states.append(following)
    torch.testing.assert_close(outputs, layer_outputs)
    torch.testing.assert_close(last, torch.cat(states, dim=-1))
    assert not stack.initial(inputs).any()


@pytest.mark.parametrize("cell", CELLS)
def test_a_stack_goes_step_by_step(cell: str) -> None:
    """For several hypotheses a sentence."""
    stack = RecurrentStack(cell, INPUTS, WIDTH, 2, 0.0)
    inputs, state = torch.randn(BATCH, 2, TARGETS, INPUTS), torch.randn(BATCH, 2, stack.state_width)
    whole, last = stack(inputs.flatten(0, 1), state.flatten(0, 1))
    for place in range(TARGETS):
        outputs, state = stack.step(inputs[:, :, place], state)
        torch.testing.assert_close(outputs.flatten(0, 1), whole[:, place])
    torch.testing.assert_close(state.flatten(0, 1), last)


def test_dropout_falls_between_layers_only() -> None:
    inputs = torch.randn(BATCH, SOURCES, INPUTS)
    single = RecurrentStack("gru", INPUTS, WIDTH, 1, 0.9)
    assert torch.equal(*(single(inputs, single.initial(inputs))[0] for _ in range(2)))
    double = RecurrentStack("gru", INPUTS, WIDTH, 2, 0.9)
    assert not torch.equal(*(double(inputs, double.initial(inputs))[0] for _ in range(2)))
    double.eval()
    assert torch.equal(*(double(inputs, double.initial(inputs))[0] for _ in range(2)))


def readers() -> dict[str, Reader]:
    return {
        "attention": AttentionReader("additive", WIDTH, WIDTH, 13, 0.0),
        "dot": AttentionReader("dot", WIDTH, WIDTH, WIDTH, 0.0),
        "summary": SummaryReader(),
    }


@pytest.mark.parametrize("reader", list(readers()))
@pytest.mark.parametrize("cell", CELLS)
def test_the_decoder_as_its_formula_and_step_by_step(reader: str, cell: str) -> None:
    decoder = ContextDecoder(readers()[reader], cell, INPUTS, WIDTH, WIDTH, 2)
    annotations, (_, present) = torch.randn(BATCH, SOURCES, WIDTH), padded()
    state = decoder.cell.initial(torch.randn(BATCH, WIDTH))
    memory = decoder.reader.remember(annotations, annotations[:, 0], present, state)
    inputs = torch.randn(BATCH, TARGETS, INPUTS)
    whole = decoder(inputs, memory)
    assert whole.shape == (BATCH, TARGETS, 2)
    step_state = RecurrentState.first(memory)
    for place in range(TARGETS):
        context = decoder.reader.read(decoder.cell.output(state)[:, None], memory)[:, 0]
        gates = decoder.cell.input_gates(inputs[:, place]) + context @ decoder.context_gates.weight.T
        state = decoder.cell.step(gates, state)
        mixed = decoder.combine(torch.cat([decoder.cell.output(state), inputs[:, place], context], dim=-1))
        maxout = torch.maximum(mixed[:, 0::2], mixed[:, 1::2])
        torch.testing.assert_close(whole[:, place], maxout)
        features, step_state = decoder.step(inputs[:, place : place + 1], step_state)
        torch.testing.assert_close(features[:, 0], maxout)


def test_a_summary_is_the_same_for_every_query() -> None:
    reader, (_, present) = SummaryReader(), padded()
    summary = torch.randn(BATCH, WIDTH)
    memory = reader.remember(torch.randn(BATCH, SOURCES, WIDTH), summary, present, torch.zeros(BATCH, WIDTH))
    context = reader.read(torch.randn(BATCH, TARGETS, WIDTH), memory)
    assert torch.equal(context, summary[:, None].expand(BATCH, TARGETS, WIDTH))
    assert taps(reader) == {}


def test_an_attention_reader_says_what_it_relates() -> None:
    (tap,) = taps(readers()["attention"]).values()
    assert (tap.queries, tap.keys) == ("target", "source")


def test_states_follow_their_sentences_and_hypotheses() -> None:
    reader, (_, present) = readers()["attention"], padded()
    annotations, hidden = torch.randn(BATCH, SOURCES, WIDTH), torch.randn(BATCH, 2, WIDTH)
    memory = reader.remember(annotations, annotations[:, 0], present, hidden[:, 0])
    kept = RecurrentState(memory, hidden).keep(torch.tensor([2, 0]))
    assert torch.equal(kept.hidden, hidden[[2, 0]])
    assert torch.equal(kept.memory.values, annotations[[2, 0]])
    assert torch.equal(kept.memory.allow.keys, present[[2, 0]])
    moved = kept.reorder(torch.tensor([[1, 1, 0], [0, 0, 0]]))
    assert torch.equal(moved.hidden[0], hidden[2][[1, 1, 0]])
    assert torch.equal(moved.hidden[1], hidden[0][[0, 0, 0]])
    assert moved.memory is kept.memory
