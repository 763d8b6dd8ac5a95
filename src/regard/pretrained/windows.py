"""What all readers of Swin and Swin V2 share: bias tables, cosine attention, and the config that these show."""

from __future__ import annotations

from typing import Any

from regard.core.errors import CheckpointError
from regard.models.swin import SwinConfig
from regard.pretrained.reading import Reader
from regard.pretrained.sizes import side_of


def move_table(reader: Reader, theirs: str, ours: str) -> None:
    """A bias table of (offsets, heads) as ours, (heads, rows of offsets, columns of offsets)."""
    table = reader.take(theirs, ours)
    side = side_of(table.shape[0], "table of relative positions")
    reader.tensors[ours] = table.T.unflatten(1, (side, side)).contiguous()


def move_cosine(reader: Reader, theirs: str, ours: str, *, network: str) -> None:
    """Scale and bias network of a cosine attention."""
    scale = reader.take(f"{theirs}.logit_scale", f"{ours}.log_scale")
    reader.tensors[f"{ours}.log_scale"] = scale.flatten()
    reader.move(f"{theirs}.{network}.0", f"{ours}.offset_network.0")
    reader.move(f"{theirs}.{network}.2", f"{ours}.offset_network.2", ["weight"])


def swin_config(reader: Reader, fields: dict[str, Any]) -> SwinConfig:
    """With the windows and heads that the bias tables have."""
    stages = range(len(fields["num_blocks"]))
    sides = [(reader.tensors[f"stages.{stage}.0.attention.by_offset"].shape[1] + 1) // 2 for stage in stages]
    config = SwinConfig(
        image_size=fields["patch_size"] * sides[-1] * 2 ** (len(sides) - 1),
        window_size=max(sides),
        num_heads=heads_of_stages(reader, fields, "by_offset"),
        **fields,
    )
    if config.stage_windows() != sides:
        raise CheckpointError(f"{reader.peer} has windows of {sides} places; no picture size makes ours so.")
    return config


def heads_of_stages(reader: Reader, fields: dict[str, Any], name: str) -> tuple[int, ...]:
    """By the first axis of a tensor that each block's attention has."""
    stages = range(len(fields["num_blocks"]))
    return tuple(reader.tensors[f"stages.{stage}.0.attention.{name}"].shape[0] for stage in stages)
