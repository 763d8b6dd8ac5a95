"""Weights of torchvision's `VisionTransformer` as weights of our ViT.

| torchvision | ours |
| --- | --- |
| class_token, encoder.pos_embedding, conv_proj | extras, positions.table, patches.projection |
| encoder.layers.encoder_layer_I.self_attention.in_proj_* / out_proj | encoder.I.attention.projection / output |
| ....ln_1 / ln_2 | encoder.I.attention_residual.norm / feed_forward_residual.norm |
| ....mlp.0 / mlp.3 | encoder.I.feed_forward.expand / contract |
| encoder.ln, heads.head | norm, head |

Heads have 64 numbers each, unless `num_heads` is given (vit_h_14 has 80). Checkpoints of torchvision before 0.13 spell
mlp.0 and mlp.3 as mlp.linear_1 and mlp.linear_2; both are read.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from regard.models.vit import ViTConfig
from regard.pretrained.reading import Reader
from regard.pretrained.sizes import heads_of, side_of

BLOCK = {
    "ln_1": "attention_residual.norm",
    "self_attention.in_proj": "attention.projection",
    "self_attention.out_proj": "attention.output",
    "ln_2": "feed_forward_residual.norm",
    "mlp.0": "feed_forward.expand",
    "mlp.3": "feed_forward.contract",
}
RENAMES = (
    (r"\.encoder_layer_(\d+)\.", r".\1."),
    (r"\.in_proj_(weight|bias)$", r".in_proj.\1"),
    (r"\.mlp\.linear_1\.", ".mlp.0."),
    (r"\.mlp\.linear_2\.", ".mlp.3."),
)


def torchvision_to_vit(
    state: Mapping[str, Tensor], num_heads: int | None = None
) -> tuple[ViTConfig, dict[str, Tensor]]:
    """Config and state of a `ViT` that computes what this torchvision model computes."""
    reader = Reader("torchvision's ViT", state, RENAMES)
    patches = reader.look("conv_proj.weight")
    positions = reader.take("encoder.pos_embedding", "positions.table")[0]
    reader.tensors["extras"] = reader.take("class_token", "extras")[0]
    reader.tensors["positions.table"] = positions
    reader.move("conv_proj", "patches.projection")
    num_blocks = reader.count("encoder.layers.")
    for index in range(num_blocks):
        for theirs, ours in BLOCK.items():
            reader.move(f"encoder.layers.{index}.{theirs}", f"encoder.{index}.{ours}")
    reader.move("encoder.ln", "norm")
    reader.move("heads.head", "head")
    config = ViTConfig(
        image_size=side_of(len(positions) - 1, "table of positions") * patches.shape[-1],
        patch_size=patches.shape[-1],
        width=patches.shape[0],
        num_heads=heads_of(patches.shape[0], num_heads),
        num_blocks=num_blocks,
        feed_forward_width=reader.look("encoder.layers.0.mlp.0.weight").shape[0],
    )
    return reader.finish(config)
