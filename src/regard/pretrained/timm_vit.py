"""Weights of timm's `VisionTransformer` and `VisionTransformerDistilled` as weights of our ViT and DeiT.

| timm | ours |
| --- | --- |
| cls_token, dist_token | extras |
| pos_embed | positions.table |
| blocks.I.attn.qkv / proj | encoder.I.attention.projection / output |
| blocks.I.norm1 / norm2 | encoder.I.attention_residual.norm / feed_forward_residual.norm |
| blocks.I.mlp.fc1 / fc2 | encoder.I.feed_forward.expand / contract |
| head, head_dist | head, distillation_head |

Depth, widths, patch and picture size are read off the tensors. Heads cannot be: 64 numbers each, unless `num_heads` is
given. Without `cls_token` the classes are read off the mean. A model with registers, layer scale, norms of queries and
keys, or a norm behind its pooling (`fc_norm`) is refused. What leaves no trace in the tensors (another activation, a
mean in spite of a class token) cannot be noticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regard.models.deit import DeiTConfig
from regard.models.vit import ViTConfig
from regard.pretrained.reading import Reader
from regard.pretrained.sizes import heads_of, side_of

BLOCK = {
    "norm1": "attention_residual.norm",
    "attn.qkv": "attention.projection",
    "attn.proj": "attention.output",
    "norm2": "feed_forward_residual.norm",
    "mlp.fc1": "feed_forward.expand",
    "mlp.fc2": "feed_forward.contract",
}


def timm_to_vit(state: Mapping[str, Tensor], num_heads: int | None = None) -> tuple[ViTConfig, dict[str, Tensor]]:
    """Config and state of a `ViT` that computes what this timm model computes."""
    reader = Reader("timm's ViT", state)
    extras = ["cls_token"] if "cls_token" in reader else []
    config = ViTConfig(pooling="token" if extras else "mean", **_trunk(reader, extras, num_heads))
    return reader.finish(config)


def timm_to_deit(state: Mapping[str, Tensor], num_heads: int | None = None) -> tuple[DeiTConfig, dict[str, Tensor]]:
    """Config and state of a `DeiT` that computes what this distilled timm model computes."""
    reader = Reader("timm's distilled DeiT", state)
    config = DeiTConfig(**_trunk(reader, ["cls_token", "dist_token"], num_heads))
    reader.move("head_dist", "distillation_head")
    return reader.finish(config)


def _trunk(reader: Reader, extras: list[str], num_heads: int | None) -> dict[str, Any]:
    """Moves all but further heads; the fields of the config."""
    patches, num_blocks = reader.look("patch_embed.proj.weight"), reader.count("blocks.")
    width, patch_size = patches.shape[0], patches.shape[-1]
    positions = reader.take("pos_embed", "positions.table")[0]
    if extras:
        reader.tensors["extras"] = torch.cat([reader.take(name, "extras")[0] for name in extras])
    reader.tensors["positions.table"] = positions
    reader.move("patch_embed.proj", "patches.projection")
    for index in range(num_blocks):
        for theirs, ours in BLOCK.items():
            reader.move(f"blocks.{index}.{theirs}", f"encoder.{index}.{ours}")
    reader.move("norm", "norm")
    reader.move("head", "head")
    return {
        "image_size": side_of(len(positions) - len(extras), "table of positions") * patch_size,
        "patch_size": patch_size,
        "width": width,
        "num_heads": heads_of(width, num_heads),
        "num_blocks": num_blocks,
        "feed_forward_width": reader.look("blocks.0.mlp.fc1.weight").shape[0],
    }
