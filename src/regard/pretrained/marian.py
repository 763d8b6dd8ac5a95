"""Weights of `transformers`' Marian as weights of our Transformer.

Marian is the Transformer as printed (post-norm), with silu, gelu or relu, one embedding for both languages or two, and
sinusoids in halves (`positions="sinusoidal_halves"`). Names that change:

| Marian | ours |
| --- | --- |
| encoder.layers.I.self_attn.{q,k,v}_proj | encoder.I.attention.projection, the three above each other |
| decoder.layers.I.encoder_attn.q_proj / {k,v}_proj | decoder.I.cross.query_projection / memory_projection |
| ..._attn.out_proj | ....output |
| ..._attn_layer_norm, final_layer_norm | ..._residual.norm |
| fc1, fc2 | feed_forward.expand, feed_forward.contract |

What our Transformer has no place for is refused: embeddings that are not scaled, encoders and decoders of different
widths. The bias on the logits becomes that of `readout` where it is not zero. The ids of our special tokens are 0 to 3;
a checkpoint with other ids needs its vocabulary reordered first, which is left to whoever has the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import CheckpointError
from regard.models.transformer import TransformerConfig

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}


def marian_to_transformer(
    state: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[TransformerConfig, dict[str, Tensor]]:
    """Config and state of a `Transformer` that computes what this Marian computes.

    `state` is `MarianMTModel.state_dict()` or what `model.safetensors` holds; `config` is `MarianConfig.to_dict()` or
    what `config.json` holds. The vocabulary sizes are the lengths of the two embeddings.
    """
    _require_same(config, "encoder_attention_heads", "decoder_attention_heads")
    _require_same(config, "encoder_ffn_dim", "decoder_ffn_dim")
    if not config["scale_embedding"]:
        raise CheckpointError("This Marian does not scale its embeddings by sqrt(d_model), but our Transformer does.")
    if config["activation_function"] not in _ACTIVATIONS:
        raise CheckpointError(
            f"This Marian's activation is {config['activation_function']!r}; known are {', '.join(_ACTIVATIONS)}."
        )
    embeddings, tied = _embeddings(state, config)
    bias = state.get("final_logits_bias")
    if bias is not None and bias.count_nonzero():
        embeddings["readout.bias"] = bias[0]
    ours = TransformerConfig(
        width=config["d_model"],
        num_heads=config["encoder_attention_heads"],
        num_encoder_blocks=config["encoder_layers"],
        num_decoder_blocks=config["decoder_layers"],
        feed_forward_width=config["encoder_ffn_dim"],
        activation=_ACTIVATIONS[config["activation_function"]],
        norm="post",
        positions="sinusoidal_halves",
        max_length=config["max_position_embeddings"],
        dropout_rate=config["dropout"],
        attention_dropout_rate=config["attention_dropout"],
        readout_bias="readout.bias" in embeddings,
        tied=tied,
    )
    tensors = dict(embeddings)
    for index in range(ours.num_encoder_blocks):
        tensors |= _block(state, f"model.encoder.layers.{index}", f"encoder.{index}", cross=False)
    for index in range(ours.num_decoder_blocks):
        tensors |= _block(state, f"model.decoder.layers.{index}", f"decoder.{index}", cross=True)
    return ours, tensors


def _embeddings(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> tuple[dict[str, Tensor], str]:
    """Both embeddings and the output, and which of them are one; a file holds what is shared once only."""
    shared, output_tied = config["share_encoder_decoder_embeddings"], config["tie_word_embeddings"]
    if shared and not output_tied:
        raise CheckpointError("This Marian shares its embeddings but not with its output: our Transformer cannot.")
    names = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    if shared:
        one = next((state[name] for name in ("model.shared.weight", *names) if name in state), None)
        if one is None:
            raise CheckpointError("The checkpoint holds no 'model.shared.weight': it is not a Marian's.")
        found = [one, one, one]
    else:
        target = _take(state, names[1])
        found = [_take(state, names[0]), target, target if output_tied else _take(state, names[2])]
    ours = ("source_embedding.weight", "target_embedding.weight", "readout.weight")
    return dict(zip(ours, found, strict=True)), "all" if shared else "target" if output_tied else "none"


def _block(state: Mapping[str, Tensor], theirs: str, ours: str, *, cross: bool) -> dict[str, Tensor]:
    """One encoder or decoder block."""
    tensors: dict[str, Tensor] = {}
    for kind in ("weight", "bias"):

        def take(name: str, kind: str = kind) -> Tensor:
            return _take(state, f"{theirs}.{name}.{kind}")

        own = {
            "attention.projection": torch.cat([take(f"self_attn.{part}_proj") for part in "qkv"]),
            "attention.output": take("self_attn.out_proj"),
            "attention_residual.norm": take("self_attn_layer_norm"),
            "feed_forward.expand": take("fc1"),
            "feed_forward.contract": take("fc2"),
            "feed_forward_residual.norm": take("final_layer_norm"),
        }
        if cross:
            own |= {
                "cross.query_projection": take("encoder_attn.q_proj"),
                "cross.memory_projection": torch.cat([take(f"encoder_attn.{part}_proj") for part in "kv"]),
                "cross.output": take("encoder_attn.out_proj"),
                "cross_residual.norm": take("encoder_attn_layer_norm"),
            }
        tensors |= {f"{ours}.{name}.{kind}": tensor for name, tensor in own.items()}
    return tensors


def _take(state: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in state:
        raise CheckpointError(f"The checkpoint holds no {name!r}: it is not a Marian's, or not a whole one.")
    return state[name]


def _require_same(config: Mapping[str, Any], one: str, other: str) -> None:
    if config[one] != config[other]:
        raise CheckpointError(
            f"This Marian has {one} = {config[one]} and {other} = {config[other]}; "
            "our Transformer has one number for both."
        )
