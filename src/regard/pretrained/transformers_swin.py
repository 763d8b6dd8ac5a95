"""Weights of `transformers`' Swin and Swinv2 classifiers as weights of our Swin and Swin V2.

| transformers (PREFIX is swin or swinv2) | ours |
| --- | --- |
| PREFIX.embeddings.patch_embeddings.projection / norm | patches.projection / patch_norm |
| PREFIX.encoder.layers.S.blocks.I.attention.{q,k,v}_proj / o_proj | stages.S.I.attention.projection / output |
| ....attention.relative_position_bias.relative_position_bias_table | ....attention.by_offset, heads first |
| ....attention.{logit_scale, continuous_position_bias_mlp} | ....attention.{log_scale, offset_network} |
| ....layernorm_before / layernorm_after | ....attention_residual.norm / feed_forward_residual.norm |
| ....mlp.fc1 / fc2 | ....feed_forward.expand / contract |
| PREFIX.encoder.layers.S.downsample | mergings.S |
| PREFIX.layernorm, classifier | norm, head |

The spelling of files on the hub (attention.self.query, intermediate.dense, output.dense) is read as well, which is also
that of Swinv2 in memory.

Of the first version no window shifts on a grid that has only one in some direction, and of the second none in a stage
that has only one on pictures of the config's size: hence `shifts`. (Their first version keeps what one picture has made
of its windows; what is said here holds for a model's first picture.) Grids smaller than a window are filled up here;
there they get smaller windows, for which the first version has no bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from regard.models.swin import SwinConfig
from regard.models.swinv2 import SwinV2Config
from regard.pretrained.reading import Reader
from regard.pretrained.sizes import require
from regard.pretrained.windows import heads_of_stages, move_cosine, move_table, swin_config

RENAMES = (
    (r"\.attention\.self\.query\.", ".attention.q_proj."),
    (r"\.attention\.self\.key\.", ".attention.k_proj."),
    (r"\.attention\.self\.value\.", ".attention.v_proj."),
    (
        r"\.attention\.self\.relative_position_bias_table$",
        ".attention.relative_position_bias.relative_position_bias_table",
    ),
    (r"\.attention\.self\.", ".attention."),
    (r"\.attention\.output\.dense\.", ".attention.o_proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"(blocks\.\d+)\.output\.dense\.", r"\1.mlp.fc2."),
)
BLOCK = {
    "attention.o_proj": "attention.output",
    "layernorm_before": "attention_residual.norm",
    "layernorm_after": "feed_forward_residual.norm",
    "mlp.fc1": "feed_forward.expand",
    "mlp.fc2": "feed_forward.contract",
}


def transformers_to_swin(
    state: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[SwinConfig, dict[str, Tensor]]:
    """Config and state of a `Swin` that computes what this `SwinForImageClassification` computes."""
    reader = Reader("transformers' Swin", state, RENAMES)
    fields, blocks = _trunk(reader, config, "swin")
    for theirs, ours in blocks:
        reader.stack([f"{theirs}.attention.{part}_proj" for part in "qkv"], f"{ours}.attention.projection")
        table = f"{theirs}.attention.relative_position_bias.relative_position_bias_table"
        move_table(reader, table, f"{ours}.attention.by_offset")
    return reader.finish(swin_config(reader, {"shifts": "both_ways", **fields}))


def transformers_to_swinv2(
    state: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[SwinV2Config, dict[str, Tensor]]:
    """Config and state of a `SwinV2` that computes what this `Swinv2ForImageClassification` computes."""
    reader = Reader("transformers' Swinv2", state, RENAMES)
    fields, blocks = _trunk(reader, config, "swinv2")
    for theirs, ours in blocks:
        reader.stack([f"{theirs}.attention.{part}_proj" for part in "qkv"], f"{ours}.attention.projection", ["weight"])
        move_cosine(reader, f"{theirs}.attention", f"{ours}.attention", network="continuous_position_bias_mlp")
        for kind in ("query", "value"):
            place = f"{ours}.attention.{kind}_bias"
            reader.tensors[place] = reader.take(f"{theirs}.attention.{kind[0]}_proj.bias", place)
    measures = tuple(config.get("pretrained_window_sizes") or ())
    made = SwinV2Config(
        image_size=config["image_size"],
        window_size=config["window_size"],
        shifts="by_image_size",
        pretrained_window_size=measures if any(measures) else (),
        num_heads=heads_of_stages(reader, fields, "log_scale"),
        **fields,
    )
    return reader.finish(made)


def _trunk(reader: Reader, config: Mapping[str, Any], prefix: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Moves what both versions have in common; fields of the config, and the blocks by their name and ours."""
    require(config, "hidden_act", "gelu")
    require(config, "use_absolute_embeddings", False)
    require(config, "qkv_bias", True)
    reader.ignore(r"\.(relative_position_index|relative_coords_table)$")
    reader.move(f"{prefix}.embeddings.patch_embeddings.projection", "patches.projection")
    reader.move(f"{prefix}.embeddings.norm", "patch_norm")
    layers = f"{prefix}.encoder.layers."
    num_blocks = tuple(reader.count(f"{layers}{stage}.blocks.") for stage in range(reader.count(layers)))
    blocks = []
    for stage, count in enumerate(num_blocks):
        if stage:
            reader.move(f"{layers}{stage - 1}.downsample.norm", f"mergings.{stage - 1}.norm")
            reader.move(f"{layers}{stage - 1}.downsample.reduction", f"mergings.{stage - 1}.reduction", ["weight"])
        for index in range(count):
            theirs, ours = f"{layers}{stage}.blocks.{index}", f"stages.{stage}.{index}"
            blocks.append((theirs, ours))
            for name, place in BLOCK.items():
                reader.move(f"{theirs}.{name}", f"{ours}.{place}")
    reader.move(f"{prefix}.layernorm", "norm")
    reader.move("classifier", "head")
    return {
        "patch_size": config["patch_size"],
        "width": config["embed_dim"],
        "num_blocks": num_blocks,
        "feed_forward_ratio": config["mlp_ratio"],
        "norm_epsilon": config["layer_norm_eps"],
        "dropout_rate": config["hidden_dropout_prob"],
        "attention_dropout_rate": config["attention_probs_dropout_prob"],
        "stochastic_depth_rate": config["drop_path_rate"],
    }, blocks
