"""`nn.MultiheadAttention` and `nn.Transformer*` beside the weights that torch itself gives, on both of its paths."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.core.errors import RecordingError

WIDTH, HEADS, BATCH, QUERIES, KEYS = 22, 2, 3, 5, 7


def attention(**options: Any) -> nn.MultiheadAttention:
    module = nn.MultiheadAttention(WIDTH, HEADS, **options).eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def compare(module: nn.MultiheadAttention, *given: Tensor, **options: Any) -> None:
    """Torch's own weights of each head; the output with and without recording, and without any weights."""
    own = module(*given, **options, average_attn_weights=False)
    with regard.record(module) as recording:
        recorded = module(*given, **options, average_attn_weights=False)
    assert torch.equal(own[0], recorded[0])
    plain = module(*given, **options, need_weights=False)[0]
    with regard.record(module) as fast:
        assert torch.equal(module(*given, **options, need_weights=False)[0], plain)
    for one in (recording, fast):
        weights = one["attention"].weights()
        torch.testing.assert_close(weights if own[1].dim() == 4 else weights[0], own[1].detach(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_self_attention_on_both_paths(grad: bool, batch_first: bool) -> None:
    inputs = torch.randn(BATCH, QUERIES, WIDTH)
    inputs = inputs if batch_first else inputs.transpose(0, 1).contiguous()
    hidden = torch.zeros(BATCH, QUERIES, dtype=torch.bool)
    hidden[1, 3:] = True
    later = torch.ones(QUERIES, QUERIES, dtype=torch.bool).triu(1)
    module = attention(batch_first=batch_first)
    with torch.set_grad_enabled(grad):
        compare(module, inputs, inputs, inputs)
        compare(module, inputs, inputs, inputs, key_padding_mask=hidden)
        compare(module, inputs, inputs, inputs, attn_mask=later)
        compare(module, inputs, inputs, inputs, attn_mask=later, key_padding_mask=hidden)
        compare(module, inputs, inputs, inputs, attn_mask=later, is_causal=True)
        compare(module, inputs, inputs, inputs, attn_mask=torch.randn(BATCH * HEADS, QUERIES, QUERIES))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False},
        {"kdim": 11, "vdim": 13},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True},
    ],
)
def test_cross_attention(options: dict[str, Any]) -> None:
    queries = torch.randn(QUERIES, BATCH, WIDTH)
    keys, values = (
        torch.randn(KEYS, BATCH, options.get("kdim", WIDTH)),
        torch.randn(KEYS, BATCH, options.get("vdim", WIDTH)),
    )
    if options.get("batch_first"):
        queries, keys, values = (tensor.transpose(0, 1) for tensor in (queries, keys, values))
    hidden = torch.zeros(BATCH, KEYS)
    hidden[1, 4:] = float("-inf")
    pairs = torch.randn(QUERIES, KEYS)
    compare(attention(**options), queries, keys, values)
    compare(attention(**options), queries, keys, values, key_padding_mask=hidden, attn_mask=pairs)


def test_without_a_batch() -> None:
    queries, keys = torch.randn(QUERIES, WIDTH), torch.randn(KEYS, WIDTH)
    compare(attention(), queries, keys, keys)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("grad", [True, False])
def test_encoder_layers_run_as_one_operation(norm_first: bool, grad: bool) -> None:
    """Without gradients torch runs a whole layer at once, and cuts padding away before; neither may change."""
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 37, batch_first=True, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).eval()
    inputs = torch.randn(BATCH, KEYS, WIDTH)
    hidden = torch.zeros(BATCH, KEYS, dtype=torch.bool)
    hidden[1, 4:] = True
    with torch.set_grad_enabled(grad):
        plain = model(inputs, src_key_padding_mask=hidden)
        with regard.record(model) as recording:
            recorded = model(inputs, src_key_padding_mask=hidden)
        assert torch.equal(plain, recorded)
    assert recording.addresses == ["layers.0.self_attn", "layers.1.self_attn"]
    features = inputs
    for number, one in enumerate(model.layers):
        given = one.norm1(features) if norm_first else features
        own = one.self_attn(given, given, given, key_padding_mask=hidden, average_attn_weights=False)[1]
        found = recording[f"layers.{number}.self_attn"].weights()
        rows = ~hidden[:, None, :, None]
        torch.testing.assert_close(found * rows, own.detach() * rows, atol=1e-5, rtol=0)
        features = one(features, src_key_padding_mask=hidden)


def test_a_whole_transformer_with_its_roles() -> None:
    model = nn.Transformer(WIDTH, HEADS, 1, 2, 37, batch_first=True).eval()
    source, target = torch.randn(BATCH, KEYS, WIDTH), torch.randn(BATCH, QUERIES, WIDTH)
    later = model.generate_square_subsequent_mask(QUERIES)
    with torch.no_grad():
        plain = model(source, target, tgt_mask=later)
        with regard.record(model) as recording:
            assert torch.equal(plain, model(source, target, tgt_mask=later))
    assert recording.roles == {
        "encoder.layers.0.self_attn": ("source", "source"),
        "decoder.layers.0.self_attn": ("target", "target"),
        "decoder.layers.0.multihead_attn": ("target", "source"),
        "decoder.layers.1.self_attn": ("target", "target"),
        "decoder.layers.1.multihead_attn": ("target", "source"),
    }
    assert recording.relations["decoder.layers.0.self_attn"].allow.only_causal


def test_in_training_the_weights_are_those_before_dropout() -> None:
    module = attention(dropout=0.9).train()
    inputs = torch.randn(QUERIES, BATCH, WIDTH)
    torch.manual_seed(5)
    plain = module(inputs, inputs, inputs)[0]
    torch.manual_seed(5)
    with regard.record(module) as recording:
        recorded = module(inputs, inputs, inputs)[0]
    assert torch.equal(plain, recorded)
    torch.testing.assert_close(recording["attention"].weights().sum(-1), torch.ones(BATCH, HEADS, QUERIES))


def test_under_autocast() -> None:
    module = attention(batch_first=True)
    inputs = torch.randn(BATCH, QUERIES, WIDTH)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        plain = module(inputs, inputs, inputs)[0]
        with regard.record(module) as recording:
            assert torch.equal(plain, module(inputs, inputs, inputs)[0])
    assert recording.relations["attention"].keys.dtype == torch.bfloat16


def test_compiled_models_are_refused_with_a_sentence() -> None:
    module = attention()
    with pytest.raises(RecordingError, match=r"is compiled, .* `model\._orig_mod`"):
        regard.record(torch.compile(module, backend="eager")).__enter__()
    module.compile(backend="eager")
    with pytest.raises(RecordingError, match=r"MultiheadAttention of MultiheadAttention is compiled"):
        regard.record(module).__enter__()
