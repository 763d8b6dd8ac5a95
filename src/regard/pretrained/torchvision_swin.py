"""Weights of torchvision's `SwinTransformer`, of both versions, as weights of our Swin and Swin V2.

| torchvision | ours |
| --- | --- |
| features.0.0 / features.0.2 | patches.projection / patch_norm |
| features.(2 S + 1).I.attn.qkv / proj | stages.S.I.attention.projection / output |
| features.(2 S + 1).I.attn.relative_position_bias_table | stages.S.I.attention.by_offset, heads first |
| ....attn.{logit_scale, cpb_mlp}, qkv.bias | ....{log_scale, offset_network}, query_bias and value_bias |
| features.(2 S + 1).I.norm1 / norm2 | stages.S.I.attention_residual.norm / feed_forward_residual.norm |
| features.(2 S + 1).I.mlp.0 / mlp.3 | stages.S.I.feed_forward.expand / contract |
| features.(2 S + 2) | mergings.S |

Everything is read off the tensors and index tables. The third of V2's qkv.bias that belongs to the keys is never used
there (it is set to zero in each call), and left out here. Pictures that fill no whole patches lose pixels there and are
filled up here; that they fill no whole windows makes no difference.
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
    "mlp.0": "feed_forward.expand",
    "mlp.3": "feed_forward.contract",
}


def torchvision_to_swin(state: Mapping[str, Tensor]) -> tuple[SwinConfig, dict[str, Tensor]]:
    """Config and state of a `Swin` that computes what this torchvision model computes."""
    reader = Reader("torchvision's Swin", state)
    fields, blocks = _trunk(reader)
    for theirs, ours in blocks:
        reader.move(f"{theirs}.attn.qkv", f"{ours}.attention.projection")
        move_table(reader, f"{theirs}.attn.relative_position_bias_table", f"{ours}.attention.by_offset")
    return reader.finish(swin_config(reader, fields))


def torchvision_to_swinv2(state: Mapping[str, Tensor]) -> tuple[SwinV2Config, dict[str, Tensor]]:
    """Config and state of a `SwinV2` that computes what this torchvision model computes."""
    reader = Reader("torchvision's Swin V2", state)
    side = (reader.look("features.1.0.attn.relative_coords_table").shape[1] + 1) // 2
    fields, blocks = _trunk(reader)
    for theirs, ours in blocks:
        reader.move(f"{theirs}.attn.qkv", f"{ours}.attention.projection", ["weight"])
        bias = reader.take(f"{theirs}.attn.qkv.bias", f"{ours}.attention.query_bias").chunk(3)
        reader.tensors[f"{ours}.attention.query_bias"], reader.tensors[f"{ours}.attention.value_bias"] = (
            bias[0],
            bias[2],
        )
        move_cosine(reader, f"{theirs}.attn", f"{ours}.attention", network="cpb_mlp")
    image_size = fields["patch_size"] * side * 2 ** (len(fields["num_blocks"]) - 1)
    heads = heads_of_stages(reader, fields, "log_scale")
    return reader.finish(SwinV2Config(image_size=image_size, window_size=side, num_heads=heads, **fields))


def _trunk(reader: Reader) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Moves what both versions have in common; fields of the config, and the blocks by their name and ours."""
    reader.ignore(r"\.(relative_position_index|relative_coords_table)$")
    num_stages = reader.count("features.") // 2
    num_blocks = tuple(reader.count(f"features.{2 * stage + 1}.") for stage in range(num_stages))
    reader.move("features.0.0", "patches.projection")
    reader.move("features.0.2", "patch_norm")
    blocks = []
    for stage, count in enumerate(num_blocks):
        if stage:
            reader.move(f"features.{2 * stage}.norm", f"mergings.{stage - 1}.norm")
            reader.move(f"features.{2 * stage}.reduction", f"mergings.{stage - 1}.reduction", ["weight"])
        for index in range(count):
            theirs, ours = f"features.{2 * stage + 1}.{index}", f"stages.{stage}.{index}"
            blocks.append((theirs, ours))
            for name, place in BLOCK.items():
                reader.move(f"{theirs}.{name}", f"{ours}.{place}")
    reader.move("norm", "norm")
    reader.move("head", "head")
    patches = reader.tensors["patches.projection.weight"]
    hidden = reader.tensors["stages.0.0.feed_forward.expand.weight"]
    return {
        "patch_size": patches.shape[-1],
        "width": patches.shape[0],
        "num_blocks": num_blocks,
        "feed_forward_ratio": hidden.shape[0] / hidden.shape[1],
    }, blocks
