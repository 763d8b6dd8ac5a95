"""Weights of timm's MViTv2, and of torchvision's MViT for single pictures, as weights of ours.

| timm | torchvision | ours |
| --- | --- | --- |
| patch_embed.proj | conv_proj | patches.projection |
| cls_token | pos_encoding.class_token | extras |
| - | pos_encoding.{class_pos, spatial_pos, temporal_pos} | positions.table |
| stages.S.blocks.B | blocks.N | stages.S.B |
| ...norm1 / norm2 | ...norm1 / norm2 | ...attention_norm / feed_forward_norm |
| ...attn.qkv / proj | ...attn.qkv / project.0 | ...attention.projection / output |
| ...attn.pool_q, norm_q | ...attn.pool_q.{pool, norm_act.0} | ...attention.query_pooling.{convolution, norm} |
| ...attn.rel_pos_h / rel_pos_w | - | ...attention.offsets.{rows, columns} |
| ...mlp.fc1 / fc2 | ...mlp.0 / mlp.3 | ...feed_forward.expand / contract |
| ...shortcut_proj_attn, shortcut_proj_mlp | ..., project | ...attention_skip, ...feed_forward_skip |
| head.fc | head.1 | head |

Heads of timm's published sizes are 96 wide (72 in large, 64 in huge), which the convolutions show; the strides of keys
leave no trace, and are 4 as in all of these. torchvision's MViT is for films; one made for films of one picture is a
model for pictures, whose convolutions matter in their middle slice only. Its second version, whose class token is left
out of the residual pooling, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import CheckpointError
from regard.models.mvit import MViTConfig
from regard.models.mvitv2 import MViTv2Config
from regard.pretrained.reading import Reader
from regard.pretrained.sizes import side_of

POOLED = {"q": "query_pooling", "k": "key_pooling", "v": "value_pooling"}


def timm_to_mvitv2(
    state: Mapping[str, Tensor], image_size: int | None = None, key_stride: int = 4
) -> tuple[MViTv2Config, dict[str, Tensor]]:
    """Config and state of an `MViTv2` that computes what this timm model computes."""
    reader = Reader("timm's MViTv2", state)
    patches = reader.look("patch_embed.proj.weight")
    reader.move("patch_embed.proj", "patches.projection")
    class_token = "cls_token" in reader
    if class_token:
        reader.tensors["extras"] = reader.take("cls_token", "extras")[0]
    num_blocks = tuple(reader.count(f"stages.{stage}.blocks.") for stage in range(reader.count("stages.")))
    for stage, count in enumerate(num_blocks):
        for index in range(count):
            theirs, ours = f"stages.{stage}.blocks.{index}", f"stages.{stage}.{index}"
            _move_block(reader, theirs, ours)
            for part, place in POOLED.items():
                reader.move(f"{theirs}.attn.pool_{part}", f"{ours}.attention.{place}.convolution", ["weight"])
                reader.move(f"{theirs}.attn.norm_{part}", f"{ours}.attention.{place}.norm")
            for part, place in {"h": "rows", "w": "columns"}.items():
                name = f"{ours}.attention.offsets.{place}"
                reader.tensors[name] = reader.take(f"{theirs}.attn.rel_pos_{part}", name)
    reader.move("norm", "norm")
    reader.move("head.fc", "head")
    patch_size = (patches.shape[-1] + 1) // 2
    if image_size is None:
        image_size = patch_size * (reader.tensors["stages.0.0.attention.offsets.rows"].shape[0] + 1) // 2
    widened = "stages.1.blocks.0.shortcut_proj_attn.weight" in reader
    config = MViTv2Config(
        image_size=image_size,
        tokens=("class",) if class_token else (),
        widen="attention" if widened or len(num_blocks) == 1 else "feed_forward",
        **_sizes(reader, patch_size, num_blocks, key_stride),
    )
    return reader.finish(config)


def torchvision_to_mvit(
    state: Mapping[str, Tensor], key_stride: int | None = None
) -> tuple[MViTConfig, dict[str, Tensor]]:
    """Config and state of an `MViT` that computes what this torchvision model computes of films of one picture."""
    reader = Reader("torchvision's MViT of the first version", state)
    times = reader.look("pos_encoding.temporal_pos").shape[0]
    if times != 1 or reader.look("conv_proj.weight").shape[2] != 1:
        raise CheckpointError(
            f"This MViT is for films of {times} pictures; our MViT is for single pictures, and has no place for time."
        )
    reader.state = {name: _middle(tensor) for name, tensor in reader.state.items()}
    reader.move("conv_proj", "patches.projection")
    reader.tensors["extras"] = reader.take("pos_encoding.class_token", "extras")[None]
    table = reader.take("pos_encoding.spatial_pos", "positions.table")
    table = table + reader.take("pos_encoding.temporal_pos", "positions.table")
    first = reader.take("pos_encoding.class_pos", "positions.table")
    reader.tensors["positions.table"] = torch.cat([first[None], table])
    num_blocks: list[int] = []
    for number in range(reader.count("blocks.")):
        theirs = f"blocks.{number}"
        if not num_blocks or f"{theirs}.attn.pool_q.pool.weight" in reader:
            num_blocks.append(0)
        ours = f"stages.{len(num_blocks) - 1}.{num_blocks[-1]}"
        num_blocks[-1] += 1
        _move_block(reader, theirs, ours, output="attn.project.0", hidden=("mlp.0", "mlp.3"), skip="project")
        for part, place in POOLED.items():
            if f"{theirs}.attn.pool_{part}.pool.weight" in reader:
                own = f"{ours}.attention.{place}"
                reader.move(f"{theirs}.attn.pool_{part}.pool", f"{own}.convolution", ["weight"])
                reader.move(f"{theirs}.attn.pool_{part}.norm_act.0", f"{own}.norm")
    reader.move("norm", "norm")
    reader.move("head.1", "head")
    patch_size = (reader.tensors["patches.projection.weight"].shape[-1] + 1) // 2
    image_size = patch_size * side_of(len(table), "table of positions")
    sizes = _sizes(reader, patch_size, tuple(num_blocks), key_stride or 4)
    return reader.finish(MViTConfig(image_size=image_size, **sizes))


def _move_block(
    reader: Reader,
    theirs: str,
    ours: str,
    output: str = "attn.proj",
    hidden: tuple[str, str] = ("mlp.fc1", "mlp.fc2"),
    skip: str = "shortcut_proj_mlp",
) -> None:
    """All but what is pooled."""
    reader.move(f"{theirs}.norm1", f"{ours}.attention_norm")
    reader.move(f"{theirs}.norm2", f"{ours}.feed_forward_norm")
    reader.move(f"{theirs}.attn.qkv", f"{ours}.attention.projection")
    reader.move(f"{theirs}.{output}", f"{ours}.attention.output")
    reader.move(f"{theirs}.{hidden[0]}", f"{ours}.feed_forward.expand")
    reader.move(f"{theirs}.{hidden[1]}", f"{ours}.feed_forward.contract")
    if f"{theirs}.shortcut_proj_attn.weight" in reader:
        reader.move(f"{theirs}.shortcut_proj_attn", f"{ours}.attention_skip")
    if f"{theirs}.{skip}.weight" in reader:
        reader.move(f"{theirs}.{skip}", f"{ours}.feed_forward_skip")


def _sizes(reader: Reader, patch_size: int, num_blocks: tuple[int, ...], key_stride: int) -> dict[str, Any]:
    tensors = reader.tensors
    width = tensors["patches.projection.weight"].shape[0]
    hidden = tensors["stages.0.0.feed_forward.expand.weight"]
    return {
        "patch_size": patch_size,
        "width": width,
        "num_heads": width // tensors["stages.0.0.attention.key_pooling.convolution.weight"].shape[0],
        "num_blocks": num_blocks,
        "key_stride": key_stride,
        "feed_forward_ratio": hidden.shape[0] / hidden.shape[1],
    }


def _middle(tensor: Tensor) -> Tensor:
    """Of a convolution in time and space what one picture meets of it."""
    return tensor[:, :, tensor.shape[2] // 2] if tensor.dim() == 5 else tensor
