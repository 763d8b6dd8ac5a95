"""Weights of `transformers`' ViT and DeiT classifiers as weights of our ViT and DeiT.

| transformers (PREFIX is vit or deit) | ours |
| --- | --- |
| PREFIX.embeddings.cls_token, distillation_token | extras |
| PREFIX.embeddings.position_embeddings | positions.table |
| PREFIX.layers.I.attention.{q,k,v}_proj / o_proj | encoder.I.attention.projection, stacked / output |
| PREFIX.layers.I.layernorm_before / layernorm_after | encoder.I.attention_residual.norm / feed_forward_residual.norm |
| PREFIX.layers.I.mlp.fc1 / fc2 | encoder.I.feed_forward.expand / contract |
| classifier; cls_classifier, distillation_classifier | head; head, distillation_head |

The spelling of files on the hub (PREFIX.encoder.layer.I.attention.attention.query ...) is read as well. DeiT is
`DeiTForImageClassificationWithTeacher`. Pictures of another size are what `interpolate_pos_encoding=True` makes of
them: the table is resized without antialiasing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regard.models.deit import DeiTConfig
from regard.models.vit import ViTConfig
from regard.pretrained.reading import LINEAR, Reader
from regard.pretrained.sizes import require

RENAMES = (
    (r"\.encoder\.layer\.", ".layers."),
    (r"\.attention\.attention\.query\.", ".attention.q_proj."),
    (r"\.attention\.attention\.key\.", ".attention.k_proj."),
    (r"\.attention\.attention\.value\.", ".attention.v_proj."),
    (r"\.attention\.output\.dense\.", ".attention.o_proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"(layers\.\d+)\.output\.dense\.", r"\1.mlp.fc2."),
)
BLOCK = {
    "attention.o_proj": "attention.output",
    "layernorm_before": "attention_residual.norm",
    "layernorm_after": "feed_forward_residual.norm",
    "mlp.fc1": "feed_forward.expand",
    "mlp.fc2": "feed_forward.contract",
}


def transformers_to_vit(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> tuple[ViTConfig, dict[str, Tensor]]:
    """Config and state of a `ViT` that computes what this `ViTForImageClassification` computes.

    `config` is `ViTConfig.to_dict()` or what `config.json` holds.
    """
    reader = Reader("transformers' ViT", state, RENAMES)
    fields = _trunk(reader, config, "vit", ["cls_token"])
    reader.move("classifier", "head")
    return reader.finish(ViTConfig(**fields))


def transformers_to_deit(
    state: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[DeiTConfig, dict[str, Tensor]]:
    """Config and state of a `DeiT` that computes what this `DeiTForImageClassificationWithTeacher` computes."""
    reader = Reader("transformers' DeiT with teacher", state, RENAMES)
    fields = _trunk(reader, config, "deit", ["cls_token", "distillation_token"])
    reader.move("cls_classifier", "head")
    reader.move("distillation_classifier", "distillation_head")
    return reader.finish(DeiTConfig(**fields))


def transformers_to_deit_student(
    state: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[ViTConfig, dict[str, Tensor]]:
    """Config and state of a `ViT` that computes what this `DeiTForImageClassification` computes.

    It has the distillation token, but reads the classes off the class token alone: the other is a register.
    """
    reader = Reader("transformers' DeiT", state, RENAMES)
    fields = _trunk(reader, config, "deit", ["cls_token", "distillation_token"])
    reader.move("classifier", "head")
    return reader.finish(ViTConfig(registers=("distillation",), **fields))


def _trunk(reader: Reader, config: Mapping[str, Any], prefix: str, extras: list[str]) -> dict[str, Any]:
    """Moves all but the heads; the fields of our config."""
    require(config, "hidden_act", "gelu", "relu", "silu")
    embeddings = f"{prefix}.embeddings"
    reader.tensors["extras"] = torch.cat([reader.take(f"{embeddings}.{name}", "extras")[0] for name in extras])
    table = reader.take(f"{embeddings}.position_embeddings", "positions.table")[0]
    reader.tensors["positions.table"] = table
    reader.move(f"{embeddings}.patch_embeddings.projection", "patches.projection")
    num_blocks = reader.count(f"{prefix}.layers.")
    for index in range(num_blocks):
        block, ours = f"{prefix}.layers.{index}", f"encoder.{index}"
        parts = [f"{block}.attention.{part}_proj" for part in "qkv"]
        if config.get("qkv_bias", True):
            reader.stack(parts, f"{ours}.attention.projection")
        else:
            reader.stack(parts, f"{ours}.attention.projection", ["weight"])
            weight = reader.tensors[f"{ours}.attention.projection.weight"]
            reader.tensors[f"{ours}.attention.projection.bias"] = weight.new_zeros(len(weight))
        for theirs, place in BLOCK.items():
            reader.move(f"{block}.{theirs}", f"{ours}.{place}", LINEAR)
    reader.move(f"{prefix}.layernorm", "norm")
    return {
        "image_size": config["image_size"],
        "patch_size": config["patch_size"],
        "width": table.shape[1],
        "num_heads": config["num_attention_heads"],
        "num_blocks": num_blocks,
        "feed_forward_width": config["intermediate_size"],
        "activation": config["hidden_act"],
        "positions": "learned_unfiltered",
        "norm_epsilon": config["layer_norm_eps"],
        "dropout_rate": config["hidden_dropout_prob"],
        "attention_dropout_rate": config["attention_probs_dropout_prob"],
    }
