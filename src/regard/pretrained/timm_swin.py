"""Weights of timm's `SwinTransformer` and `SwinTransformerV2` as weights of our Swin and Swin V2.

| timm | ours |
| --- | --- |
| patch_embed.proj / norm | patches.projection / patch_norm |
| layers.S.blocks.I.attn.qkv / proj | stages.S.I.attention.projection / output |
| layers.S.blocks.I.attn.relative_position_bias_table | stages.S.I.attention.by_offset, heads first |
| layers.S.blocks.I.attn.{q_bias,v_bias,logit_scale,cpb_mlp} | ....{query_bias,value_bias,log_scale,offset_network} |
| layers.S.blocks.I.norm1 / norm2 | stages.S.I.attention_residual.norm / feed_forward_residual.norm |
| layers.S.blocks.I.mlp.fc1 / fc2 | stages.S.I.feed_forward.expand / contract |
| layers.S.downsample | mergings.(S - 1) |
| head.fc | head |

Everything is read off the tensors but the windows of V2, which leave no trace there. On pictures that fill no whole
windows timm computes something else than we (`blocks.windows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from regard.models.swin import SwinConfig
from regard.models.swinv2 import SwinV2Config
from regard.pretrained.reading import Reader
from regard.pretrained.windows import heads_of_stages, move_cosine, move_table, swin_config

BLOCK = {
    "norm1": "attention_residual.norm",
    "attn.proj": "attention.output",
    "norm2": "feed_forward_residual.norm",
    "mlp.fc1": "feed_forward.expand",
    "mlp.fc2": "feed_forward.contract",
}


def timm_to_swin(state: Mapping[str, Tensor]) -> tuple[SwinConfig, dict[str, Tensor]]:
    """Config and state of a `Swin` that computes what this timm model computes."""
    reader = Reader("timm's Swin", state)
    fields, blocks = _trunk(reader)
    for theirs, ours in blocks:
        reader.move(f"{theirs}.attn.qkv", f"{ours}.attention.projection")
        move_table(reader, f"{theirs}.attn.relative_position_bias_table", f"{ours}.attention.by_offset")
    return reader.finish(swin_config(reader, fields))


def timm_to_swinv2(
    state: Mapping[str, Tensor], image_size: int, window_size: int, pretrained_window_size: tuple[int, ...] = ()
) -> tuple[SwinV2Config, dict[str, Tensor]]:
    """Config and state of a `SwinV2` that computes what this timm model computes."""
    reader = Reader("timm's Swin V2", state)
    fields, blocks = _trunk(reader)
    for theirs, ours in blocks:
        reader.move(f"{theirs}.attn.qkv", f"{ours}.attention.projection", ["weight"])
        move_cosine(reader, f"{theirs}.attn", f"{ours}.attention", network="cpb_mlp")
        for kind in ("query", "value"):
            place = f"{ours}.attention.{kind}_bias"
            reader.tensors[place] = reader.take(f"{theirs}.attn.{kind[0]}_bias", place)
    sizes = {"image_size": image_size, "window_size": window_size, "pretrained_window_size": pretrained_window_size}
    return reader.finish(SwinV2Config(num_heads=heads_of_stages(reader, fields, "log_scale"), **sizes, **fields))


def _trunk(reader: Reader) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Moves what both versions have in common; fields of the config, and the blocks by their name and ours."""
    reader.ignore(r"\.(relative_position_index|relative_coords_table|k_bias|attn_mask)$")
    num_blocks = tuple(reader.count(f"layers.{stage}.blocks.") for stage in range(reader.count("layers.")))
    reader.move("patch_embed.proj", "patches.projection")
    reader.move("patch_embed.norm", "patch_norm")
    blocks = []
    for stage, count in enumerate(num_blocks):
        if stage:
            reader.move(f"layers.{stage}.downsample.norm", f"mergings.{stage - 1}.norm")
            reader.move(f"layers.{stage}.downsample.reduction", f"mergings.{stage - 1}.reduction", ["weight"])
        for index in range(count):
            theirs, ours = f"layers.{stage}.blocks.{index}", f"stages.{stage}.{index}"
            blocks.append((theirs, ours))
            for name, place in BLOCK.items():
                reader.move(f"{theirs}.{name}", f"{ours}.{place}")
    reader.move("norm", "norm")
    reader.move("head.fc", "head")
    patches = reader.tensors["patches.projection.weight"]
    hidden = reader.tensors["stages.0.0.feed_forward.expand.weight"]
    return {
        "patch_size": patches.shape[-1],
        "width": patches.shape[0],
        "num_blocks": num_blocks,
        "feed_forward_ratio": hidden.shape[0] / hidden.shape[1],
    }, blocks
