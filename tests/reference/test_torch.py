"""Torch's own modules with our weights, in float64."""

import pytest
import torch
from torch import Tensor, nn

from regard.attention.multihead import MultiHeadCrossAttention, MultiHeadSelfAttention
from regard.blocks.recurrent import BidirectionalEncoder, RecurrentStack
from regard.blocks.transformer import BlockParts, DecoderBlock, EncoderBlock
from regard.core.masks import allow_causal, allow_padding
from regard.models.transformer import Transformer, TransformerConfig
from regard.recording import record

WIDTH, HEADS, HIDDEN = 22, 2, 13
BATCH, TARGETS, SOURCES = 3, 5, 7


@pytest.fixture(autouse=True)
def double():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def present() -> Tensor:
    lengths = torch.tensor([7, 4, 1])
    return torch.arange(SOURCES) < lengths[:, None]


def copy_linear(ours: nn.Linear, weight: Tensor, bias: Tensor) -> None:
    with torch.no_grad():
        ours.weight.copy_(weight)
        ours.bias.copy_(bias)


def copy_self(ours: MultiHeadSelfAttention, theirs: nn.MultiheadAttention) -> None:
    copy_linear(ours.projection, theirs.in_proj_weight, theirs.in_proj_bias)
    copy_linear(ours.output, theirs.out_proj.weight, theirs.out_proj.bias)


def copy_cross(ours: MultiHeadCrossAttention, theirs: nn.MultiheadAttention) -> None:
    copy_linear(ours.query_projection, theirs.in_proj_weight[:WIDTH], theirs.in_proj_bias[:WIDTH])
    copy_linear(ours.memory_projection, theirs.in_proj_weight[WIDTH:], theirs.in_proj_bias[WIDTH:])
    copy_linear(ours.output, theirs.out_proj.weight, theirs.out_proj.bias)


def shake(module: nn.Module) -> None:
    """Torch starts biases at zero and norms at one, which would hide a swapped one."""
    for parameter in module.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter)


def test_multi_head_self_attention() -> None:
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    shake(theirs)
    ours = MultiHeadSelfAttention(WIDTH, HEADS, axis="tokens")
    copy_self(ours, theirs)
    inputs = torch.randn(BATCH, SOURCES, WIDTH)
    hidden = torch.ones(SOURCES, SOURCES, dtype=torch.bool).triu(1)
    expected, _ = theirs(inputs, inputs, inputs, key_padding_mask=~present(), attn_mask=hidden)
    torch.testing.assert_close(ours(inputs, allow=allow_causal() & allow_padding(present())), expected)


def test_multi_head_cross_attention_and_its_weights() -> None:
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    shake(theirs)
    ours = MultiHeadCrossAttention(WIDTH, HEADS, queries="target", keys="source")
    copy_cross(ours, theirs)
    queries, memory = torch.randn(BATCH, TARGETS, WIDTH), torch.randn(BATCH, SOURCES, WIDTH)
    expected, weights = theirs(queries, memory, memory, key_padding_mask=~present(), average_attn_weights=False)
    with record(ours) as recording:
        context = ours(queries, *ours.project_memory(memory), allow=allow_padding(present()))
    torch.testing.assert_close(context, expected)
    (address,) = recording.addresses
    torch.testing.assert_close(recording[address].weights(), weights.float(), atol=1e-6, rtol=1e-5)


def parts(norm: str, activation: str) -> BlockParts:
    return BlockParts(
        width=WIDTH,
        num_heads=HEADS,
        feed_forward_width=HIDDEN,
        activation=activation,
        norm=norm,
        heads="full",
        attention="scaled_dot",
        dropout_rate=0.0,
        attention_dropout_rate=0.0,
    )


def copy_block(ours: EncoderBlock | DecoderBlock, theirs: nn.Module) -> None:
    copy_self(ours.attention, theirs.self_attn)
    copy_linear(ours.feed_forward.expand, theirs.linear1.weight, theirs.linear1.bias)
    copy_linear(ours.feed_forward.contract, theirs.linear2.weight, theirs.linear2.bias)
    norms = [ours.attention_residual.norm, ours.feed_forward_residual.norm]
    if isinstance(ours, DecoderBlock):
        copy_cross(ours.cross, theirs.multihead_attn)
        norms.insert(1, ours.cross_residual.norm)
    for number, norm in enumerate(norms, start=1):
        norm.load_state_dict(getattr(theirs, f"norm{number}").state_dict())


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_block(norm: str, activation: str) -> None:
    theirs = nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, 0.0, activation, batch_first=True, norm_first=norm == "pre"
    )
    shake(theirs)
    ours = EncoderBlock(parts(norm, activation), axis="tokens")
    copy_block(ours, theirs)
    inputs = torch.randn(BATCH, SOURCES, WIDTH)
    expected = theirs(inputs, src_key_padding_mask=~present())
    torch.testing.assert_close(ours(inputs, allow_padding(present()), None), expected)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_decoder_block(norm: str, activation: str) -> None:
    theirs = nn.TransformerDecoderLayer(
        WIDTH, HEADS, HIDDEN, 0.0, activation, batch_first=True, norm_first=norm == "pre"
    )
    shake(theirs)
    ours = DecoderBlock(parts(norm, activation), axis="target", memory_axis="source")
    copy_block(ours, theirs)
    inputs, memory = torch.randn(BATCH, TARGETS, WIDTH), torch.randn(BATCH, SOURCES, WIDTH)
    hidden = torch.ones(TARGETS, TARGETS, dtype=torch.bool).triu(1)
    expected = theirs(inputs, memory, tgt_mask=hidden, memory_key_padding_mask=~present())
    torch.testing.assert_close(ours(inputs, ours.remember(memory, allow_padding(present())), None), expected)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_whole_transformer(norm: str) -> None:
    """nn.Transformer has neither embeddings nor readout, and a last norm in either case: ours is taken apart for it."""
    sizes = {"d_model": WIDTH, "nhead": HEADS, "dim_feedforward": HIDDEN, "dropout": 0.0, "batch_first": True}
    layer = nn.TransformerEncoderLayer(**sizes, norm_first=norm == "pre")
    # Its own encoder would warn that it cannot take a short cut.
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
    theirs = nn.Transformer(**sizes, num_decoder_layers=3, norm_first=norm == "pre", custom_encoder=encoder)
    shake(theirs)
    config = TransformerConfig(
        width=WIDTH,
        num_heads=HEADS,
        num_encoder_blocks=2,
        num_decoder_blocks=3,
        feed_forward_width=HIDDEN,
        norm=norm,
        dropout_rate=0.0,
        positions="none",
        tied="none",
    )
    ours = Transformer(config, 29, 31)
    for block, layer in zip(
        [*ours.encoder, *ours.decoder], [*theirs.encoder.layers, *theirs.decoder.layers], strict=True
    ):
        copy_block(block, layer)
    if norm == "pre":
        ours.encoder_norm.load_state_dict(theirs.encoder.norm.state_dict())
        ours.decoder_norm.load_state_dict(theirs.decoder.norm.state_dict())
    else:
        theirs.encoder.norm = theirs.decoder.norm = None  # the paper's post-norm stack has no norm behind it
    source, target = torch.randint(4, 29, (BATCH, SOURCES)), torch.randint(4, 31, (BATCH, TARGETS))
    source = source.masked_fill(~present(), 0)
    embedded = [
        table(tokens) * WIDTH**0.5
        for table, tokens in ((ours.source_embedding, source), (ours.target_embedding, target))
    ]
    hidden = torch.ones(TARGETS, TARGETS, dtype=torch.bool).triu(1)
    expected = theirs(*embedded, tgt_mask=hidden, src_key_padding_mask=~present(), memory_key_padding_mask=~present())
    torch.testing.assert_close(ours(source, target).features, expected)


RECURRENT = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}


def copy_cell(ours: nn.Module, theirs: nn.Module, suffix: str) -> None:
    copy_linear(ours.input_gates, getattr(theirs, f"weight_ih_{suffix}"), getattr(theirs, f"bias_ih_{suffix}"))
    copy_linear(ours.hidden_gates, getattr(theirs, f"weight_hh_{suffix}"), getattr(theirs, f"bias_hh_{suffix}"))


def packed(theirs: nn.Module, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Torch's outputs over sequences of their own length, and the last hidden vectors."""
    sequence = nn.utils.rnn.pack_padded_sequence(inputs, present().sum(dim=1), batch_first=True)
    outputs, last = theirs(sequence)
    padded, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True, total_length=SOURCES)
    return padded, last[0] if isinstance(last, tuple) else last


@pytest.mark.parametrize("cell", RECURRENT)
def test_stacked_recurrence(cell: str) -> None:
    theirs = RECURRENT[cell](11, 17, num_layers=2, batch_first=True)
    ours = RecurrentStack(cell, 11, 17, 2, 0.0)
    for layer in range(2):
        copy_cell(ours.cells[layer], theirs, f"l{layer}")
    inputs = torch.randn(BATCH, SOURCES, 11)
    expected, last = packed(theirs, inputs)
    outputs, state = ours(inputs, ours.initial(inputs), present())
    torch.testing.assert_close(outputs * present()[:, :, None], expected)
    hidden = [part[:, :17] for part in state.split([each.state_width for each in ours.cells], dim=1)]
    torch.testing.assert_close(torch.stack(hidden), last)


@pytest.mark.parametrize("cell", RECURRENT)
def test_bidirectional_recurrence(cell: str) -> None:
    theirs = RECURRENT[cell](11, 17, batch_first=True, bidirectional=True)
    ours = BidirectionalEncoder(cell, 11, 34)
    copy_cell(ours.forwards, theirs, "l0")
    copy_cell(ours.backwards, theirs, "l0_reverse")
    inputs = torch.randn(BATCH, SOURCES, 11)
    expected, last = packed(theirs, inputs)
    annotations, summary = ours(inputs, present())
    torch.testing.assert_close(annotations * present()[:, :, None], expected)
    torch.testing.assert_close(summary, torch.cat([last[0], last[1]], dim=1))
