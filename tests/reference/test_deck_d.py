"""Deck D by hand: its worked example, its two softmaxes, its blocks written out, and what it says of positions."""

import math

import pytest
import torch
from torch import Tensor

from regard.attention import attend, mechanisms
from regard.attention.multihead import MultiHeadSelfAttention, SplitHeadSelfAttention
from regard.blocks.transformer import BlockParts, DecoderBlock, EncoderBlock
from regard.core.masks import Allow, allow_causal
from regard.core.relations import masked_softmax
from regard.layers.positions import sinusoidal_positions

VALUES = torch.tensor([[2.0, 3, 1], [2, -1, 0], [0, 5, 1]])
KEYS = torch.tensor([[2.0, 1, -1], [0, 3, -1], [1, 1, 3]])
QUERIES = torch.tensor([[2.0, -1, 0], [-2, 1, 4]])
CONTEXT = torch.tensor([[1.762, 3.23, 0.998], [0.0, 5.0, 1.0]])
ROUNDED = 1e-3  # the deck multiplies weights that it has rounded to three digits: its 3.23 is 3.2292


def test_worked_example_scores() -> None:
    torch.testing.assert_close(QUERIES @ KEYS.T, torch.tensor([[3.0, -3, 1], [-7, -1, 11]]), rtol=0, atol=0)


@pytest.mark.parametrize("path", ["plain", "fused", "blocked"])
def test_worked_example_to_three_digits(path: str) -> None:
    four = [part[None, None] for part in (QUERIES, KEYS, VALUES)]
    context = attend(*four, scale=1.0, path=path)[0, 0]
    torch.testing.assert_close(context, CONTEXT, rtol=0, atol=ROUNDED)


def test_worked_example_through_the_registered_mechanism() -> None:
    dot = mechanisms["dot"](3, 3, 3)
    context = dot(QUERIES[None], KEYS[None], VALUES[None])[0]
    torch.testing.assert_close(context, CONTEXT, rtol=0, atol=ROUNDED)
    weights = (QUERIES @ KEYS.T).softmax(dim=1)
    torch.testing.assert_close(weights, torch.tensor([[0.879, 0.002, 0.119], [0, 0, 1]]), rtol=0, atol=5e-4)


def test_softmax_ignores_what_is_masked() -> None:
    two = masked_softmax(torch.tensor([2.0, 2, 9]), torch.tensor([True, True, False]))
    three = masked_softmax(torch.tensor([1.0, 1, 1, 9]), torch.tensor([True, True, True, False]))
    assert two.tolist() == [0.5, 0.5, 0.0]
    torch.testing.assert_close(three, torch.tensor([1 / 3, 1 / 3, 1 / 3, 0]))
    assert three[3] == 0


def parts(width: int, hidden: int) -> BlockParts:
    return BlockParts(
        width=width,
        num_heads=1,
        feed_forward_width=hidden,
        activation="relu",
        norm="post",
        heads="full",
        attention="scaled_dot",
        dropout_rate=0.0,
        attention_dropout_rate=0.0,
    )


def without_biases(block: torch.nn.Module) -> None:
    """The deck's maps have no biases but those of LayerNorm."""
    for name, parameter in block.named_parameters():
        if name.endswith("bias") and "norm" not in name:
            torch.nn.init.zeros_(parameter)
        elif "norm" in name:
            torch.nn.init.normal_(parameter)


def layer_norm(inputs: Tensor, norm: torch.nn.LayerNorm) -> Tensor:
    """gamma (x - mu) / sigma + b, with the sample's own sigma (and the epsilon that keeps it from zero)."""
    mean = inputs.mean(dim=-1, keepdim=True)
    deviation = ((inputs - mean) ** 2).mean(dim=-1, keepdim=True).add(norm.eps).sqrt()
    return norm.weight * (inputs - mean) / deviation + norm.bias


def deck_attention(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = queries @ keys.T
    scores = scores if mask is None else scores + mask
    return (scores / math.sqrt(keys.shape[1])).softmax(dim=-1) @ values


def test_single_head_encoder_block_written_out() -> None:
    torch.manual_seed(0)
    width, hidden, length = 7, 13, 5
    block = EncoderBlock(parts(width, hidden), axis="tokens").double()
    without_biases(block)
    inputs = torch.randn(length, width, dtype=torch.float64)
    query, key, value = block.attention.projection.weight.T.chunk(3, dim=1)
    attended = deck_attention(inputs @ query, inputs @ key, inputs @ value)
    middle = layer_norm(attended @ block.attention.output.weight.T + inputs, block.attention_residual.norm)
    hidden_values = (middle @ block.feed_forward.expand.weight.T).relu() @ block.feed_forward.contract.weight.T
    deck = layer_norm(hidden_values + middle, block.feed_forward_residual.norm)
    torch.testing.assert_close(block(inputs[None], Allow(), None)[0], deck)


def test_single_head_decoder_block_written_out() -> None:
    torch.manual_seed(1)
    width, hidden, targets, sources = 7, 13, 5, 3
    block = DecoderBlock(parts(width, hidden), axis="target", memory_axis="source").double()
    without_biases(block)
    inputs = torch.randn(targets, width, dtype=torch.float64)
    memory = torch.randn(sources, width, dtype=torch.float64)
    mask = torch.full((targets, targets), -math.inf, dtype=torch.float64).triu(1)
    query, key, value = block.attention.projection.weight.T.chunk(3, dim=1)
    first = deck_attention(inputs @ query, inputs @ key, inputs @ value, mask)
    first = layer_norm(first @ block.attention.output.weight.T + inputs, block.attention_residual.norm)
    key, value = block.cross.memory_projection.weight.T.chunk(2, dim=1)
    second = deck_attention(first @ block.cross.query_projection.weight.T, memory @ key, memory @ value)
    second = layer_norm(second @ block.cross.output.weight.T + first, block.cross_residual.norm)
    hidden_values = (second @ block.feed_forward.expand.weight.T).relu() @ block.feed_forward.contract.weight.T
    deck = layer_norm(hidden_values + second, block.feed_forward_residual.norm)
    ours = block(inputs[None], block.remember(memory[None], Allow()), None)[0]
    torch.testing.assert_close(ours, deck)


def test_split_heads_are_full_heads_with_block_diagonal_projections() -> None:
    torch.manual_seed(2)
    width, heads = 15, 3
    split = SplitHeadSelfAttention(width, heads, axis="tokens").double()
    full = MultiHeadSelfAttention(width, heads, axis="tokens").double()
    piece = width // heads
    with torch.no_grad():
        torch.nn.init.normal_(split.projection.bias)
        weight, bias = torch.zeros(3 * width, width, dtype=torch.float64), torch.zeros(3 * width, dtype=torch.float64)
        for head in range(heads):
            inside = slice(head * piece, (head + 1) * piece)
            for part in range(3):
                rows = slice(part * width + head * piece, part * width + (head + 1) * piece)
                columns = slice(part * piece, (part + 1) * piece)
                weight[rows, inside] = split.projection.weight[head, :, columns].T
                bias[rows] = split.projection.bias[head, columns]
        full.projection.weight.copy_(weight)
        full.projection.bias.copy_(bias)
        full.output.load_state_dict(split.output.state_dict())
    inputs = torch.randn(2, 7, width, dtype=torch.float64)
    torch.testing.assert_close(split(inputs, allow=allow_causal()), full(inputs, allow=allow_causal()))
    assert split.projection.weight.numel() * heads == full.projection.weight.numel()


def test_positions_are_the_decks_formula() -> None:
    width, table = 8, sinusoidal_positions(11, 8)
    for position in range(11):
        for pair in range(width // 2):
            period = 2 * math.pi * 10000 ** (2 * pair / width)
            assert table[position, 2 * pair] == pytest.approx(math.sin(2 * math.pi * position / period), abs=1e-6)
            assert table[position, 2 * pair + 1] == pytest.approx(math.cos(2 * math.pi * position / period), abs=1e-6)


def test_dot_products_of_positions_depend_on_distance_only() -> None:
    width, count = 128, 50
    table = sinusoidal_positions(count, width).double()
    products = table @ table.T
    periods = 2 * math.pi * 10000 ** (2 * torch.arange(width // 2, dtype=torch.float64) / width)
    for distance in range(count):
        expected = torch.cos(2 * math.pi * distance / periods).sum()
        for sign in (1, -1):
            diagonal = products.diagonal(sign * distance)
            torch.testing.assert_close(diagonal, expected.expand_as(diagonal), atol=1e-4, rtol=0)


def test_a_shift_of_positions_is_a_rotation_that_depends_on_the_shift_only() -> None:
    width, shift = 16, 5
    table = sinusoidal_positions(40, width).double()
    for pair in range(width // 2):
        angle = shift * 10000 ** (-2 * pair / width)
        # (sin, cos) of t + k from (sin, cos) of t: one matrix, whatever t
        turn = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]], dtype=torch.float64
        )
        plane = table[:, 2 * pair : 2 * pair + 2]
        torch.testing.assert_close(plane[:-shift] @ turn.T, plane[shift:], atol=1e-5, rtol=0)
        torch.testing.assert_close(turn @ turn.T, torch.eye(2, dtype=torch.float64))


def test_positions_vary_in_their_first_elements_only() -> None:
    """Variance over |t - t'| ~ U(50) of the dot product of the first k elements, d = 128: flat after about 50."""
    table = sinusoidal_positions(50, 128).double()
    partial = (table[:1] * table).reshape(50, 64, 2).sum(dim=2).cumsum(dim=1)
    variance = partial.var(dim=0)
    share = variance / variance[-1]
    assert share[12] < 0.4  # the first quarter of the elements is not enough,
    assert share[28] > 0.9  # a little over 50 elements nearly are,
    assert 1 - share[32] < 0.05  # and the second half adds next to nothing


def test_scaling_keeps_the_variance_of_scores() -> None:
    torch.manual_seed(3)
    for width in (16, 1024):
        queries, keys = torch.randn(2, 4096, width, dtype=torch.float64)
        scores = (queries * keys).sum(dim=1)
        assert scores.var().item() == pytest.approx(width, rel=0.1)
        assert (scores / math.sqrt(width)).var().item() == pytest.approx(1.0, rel=0.1)
