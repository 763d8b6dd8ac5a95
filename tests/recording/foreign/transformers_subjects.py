"""Small models of `transformers` with random weights, each with inputs and where its own maps are in its output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers as T
from torch import Tensor, nn


@dataclass(frozen=True)
class Subject:
    """A model, what it is called with, and where its own maps (`output_attentions`) are in its output."""

    build: Callable[[], nn.Module]
    inputs: Callable[[], dict[str, Any]]
    maps: tuple[tuple[str, str], ...] = (("attentions", ""),)
    """Fields of the output, each with what the addresses of its maps contain."""


def text(
    vocabulary: int = 101, batch: int = 2, length: int = 13, padded: int = 4, left: bool = False
) -> dict[str, Any]:
    present = torch.ones(batch, length, dtype=torch.int64)
    if padded:
        present[-1, slice(0, padded) if left else slice(-padded, None)] = 0
    return {"input_ids": torch.randint(5, vocabulary, (batch, length)), "attention_mask": present}


def pair(vocabulary: int = 101, length: int = 7) -> dict[str, Any]:
    return {**text(vocabulary), "decoder_input_ids": torch.randint(5, vocabulary, (2, length))}


def picture(height: int, width: int) -> dict[str, Any]:
    return {"pixel_values": torch.randn(2, 3, height, width)}


def awake(model: nn.Module) -> nn.Module:
    """Weights so large that maps differ from uniform ones."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)
    return model.eval()


_SMALL = {"hidden_size": 44, "num_hidden_layers": 2, "num_attention_heads": 11, "intermediate_size": 37}
_GROUPED = {
    **_SMALL,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "hidden_size": 48,
    "head_dim": 8,
    "vocab_size": 101,
    "intermediate_size": 36,
}
_BOTH = (
    ("encoder_attentions", "encoder."),
    ("decoder_attentions", "decoder.self"),
    ("cross_attentions", "decoder.cross"),
)
_BART = {
    "vocab_size": 101,
    "d_model": 44,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 11,
    "decoder_attention_heads": 11,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 41,
    "pad_token_id": 0,
    "eos_token_id": 0,
    "forced_eos_token_id": None,
    "decoder_start_token_id": 1,
}
_T5 = {
    "vocab_size": 101,
    "d_model": 44,
    "d_kv": 7,
    "d_ff": 37,
    "num_layers": 2,
    "num_heads": 3,
    "decoder_start_token_id": 0,
}


def _detr() -> nn.Module:
    backbone = T.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 12, 16], depths=[1, 1, 1, 1], out_features=["stage4"], layer_type="basic"
    )
    sizes = {name: value for name, value in _BART.items() if name.startswith(("d_", "encoder_", "decoder_"))}
    sizes |= {"d_model": 44, "encoder_attention_heads": 11, "decoder_attention_heads": 11}
    sizes.pop("decoder_start_token_id")
    return T.DetrForObjectDetection(
        T.DetrConfig(
            use_timm_backbone=False,
            use_pretrained_backbone=False,
            backbone=None,
            backbone_config=backbone,
            num_queries=5,
            **sizes,
        )
    )


def _swin(kind: str) -> nn.Module:
    sizes = {
        "image_size": 28,
        "patch_size": 2,
        "embed_dim": 12,
        "depths": [2, 2],
        "num_heads": [2, 3],
        "window_size": 5,
    }
    return getattr(T, f"{kind}Model")(getattr(T, f"{kind}Config")(**sizes))


SUBJECTS = {
    "bert": Subject(lambda: T.BertModel(T.BertConfig(vocab_size=101, **_SMALL)), text),
    "roberta": Subject(lambda: T.RobertaModel(T.RobertaConfig(vocab_size=101, pad_token_id=0, **_SMALL)), text),
    "distilbert": Subject(
        lambda: T.DistilBertModel(T.DistilBertConfig(vocab_size=101, dim=44, n_layers=2, n_heads=11, hidden_dim=37)),
        text,
    ),
    "albert": Subject(
        lambda: T.AlbertModel(T.AlbertConfig(vocab_size=101, embedding_size=13, **(_SMALL | {"num_hidden_layers": 5}))),
        text,
    ),
    "gpt2": Subject(lambda: T.GPT2Model(T.GPT2Config(vocab_size=101, n_embd=44, n_layer=2, n_head=11)), text),
    "gpt2-scaled-by-layer": Subject(
        lambda: T.GPT2Model(
            T.GPT2Config(vocab_size=101, n_embd=44, n_layer=3, n_head=11, scale_attn_by_inverse_layer_idx=True)
        ),
        text,
    ),
    "gptj": Subject(
        lambda: T.GPTJModel(T.GPTJConfig(vocab_size=101, n_embd=48, n_layer=2, n_head=3, rotary_dim=8)), text
    ),
    "bloom": Subject(lambda: T.BloomModel(T.BloomConfig(vocab_size=101, hidden_size=44, n_layer=2, n_head=11)), text),
    "llama": Subject(lambda: T.LlamaModel(T.LlamaConfig(**_GROUPED)), text),
    "llama-left": Subject(lambda: T.LlamaModel(T.LlamaConfig(**_GROUPED)), lambda: text(left=True)),
    "mistral": Subject(lambda: T.MistralModel(T.MistralConfig(sliding_window=5, **_GROUPED)), text),
    "gemma2": Subject(
        lambda: T.Gemma2Model(
            T.Gemma2Config(attn_logit_softcapping=3.0, sliding_window=5, query_pre_attn_scalar=8, **_GROUPED)
        ),
        text,
    ),
    "gpt-oss": Subject(
        lambda: T.GptOssModel(
            T.GptOssConfig(
                num_local_experts=2, pad_token_id=0, eos_token_id=1, num_experts_per_tok=1, sliding_window=5, **_GROUPED
            )
        ),
        text,
    ),
    "t5": Subject(
        lambda: T.T5Model(T.T5Config(**_T5)),
        pair,
        (("encoder_attentions", "encoder."), ("decoder_attentions", "layer.0"), ("cross_attentions", "layer.1")),
    ),
    "bart": Subject(lambda: T.BartModel(T.BartConfig(**_BART)), pair, _BOTH),
    "marian": Subject(lambda: T.MarianModel(T.MarianConfig(**_BART)), pair, _BOTH),
    "vit": Subject(lambda: T.ViTModel(T.ViTConfig(image_size=21, patch_size=7, **_SMALL)), lambda: picture(21, 21)),
    "deit": Subject(lambda: T.DeiTModel(T.DeiTConfig(image_size=21, patch_size=7, **_SMALL)), lambda: picture(21, 21)),
    "swin": Subject(lambda: _swin("Swin"), lambda: picture(28, 28)),
    "swinv2": Subject(lambda: _swin("Swinv2"), lambda: picture(28, 28)),
    "detr": Subject(_detr, lambda: picture(96, 64), _BOTH),
}
"""Without their heads, because a head adds nothing to look at; DETR with, because it needs its object queries."""


def own_maps(subject: Subject, output: Any) -> dict[str, list[Tensor]]:
    """The model's own maps by the part of the addresses that they belong to."""
    return {part: list(getattr(output, field)) for field, part in subject.maps}
