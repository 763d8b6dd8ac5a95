"""Weights of timm's BiT (`resnetv2_50x1_bit` and its like) as weights of ours.

| timm | ours |
| --- | --- |
| stem.conv | stem |
| stages.S.blocks.B.{norm1, conv1} | stages.S.B.{reduce_norm, reduce} |
| stages.S.blocks.B.{norm2, conv2} | stages.S.B.{spatial_norm, spatial} |
| stages.S.blocks.B.{norm3, conv3} | stages.S.B.{expand_norm, expand} |
| stages.S.blocks.B.downsample.conv | stages.S.B.shortcut |
| norm, head.fc (a 1x1 convolution) | norm, head |

The number of groups is not in a file; it is 32 in all that are published. timm's other networks of version 2 have batch
norm or another stem, and are refused by what they lack or have too much.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from regard.models.bit import BiTConfig
from regard.pretrained.renaming import Classified, Rules, count, renamed, take


def timm_to_bit(state: Mapping[str, Tensor], num_groups: int = 32) -> tuple[BiTConfig, dict[str, Tensor]]:
    """From `timm.create_model("resnetv2_50x1_bit").state_dict()`."""
    family = "a BiT of timm"
    stem, head = take(state, "stem.conv.weight", family), take(state, "head.fc.weight", family)
    stages = range(count(state, r"stages\.(\d+)\."))
    num_blocks = tuple(count(state, rf"stages\.{stage}\.blocks\.(\d+)\.") for stage in stages)
    config = BiTConfig(width=stem.shape[0], num_blocks=num_blocks, num_groups=num_groups)
    prefix, ours = r"stages\.(\d+)\.blocks\.(\d+)", r"stages.\1.\2"
    rules: Rules = [
        (r"stem\.conv\.(.+)", r"stem.\1"),
        (rf"{prefix}\.downsample\.conv\.(.+)", rf"{ours}.shortcut.\3"),
        *(
            rule
            for number, part in enumerate(("reduce", "spatial", "expand"), start=1)
            for rule in (
                (rf"{prefix}\.norm{number}\.(.+)", rf"{ours}.{part}_norm.\3"),
                (rf"{prefix}\.conv{number}\.(.+)", rf"{ours}.{part}.\3"),
            )
        ),
        (r"(norm\..+)", r"\1"),
        (r"head\.fc\.(.+)", r"head.\1"),
    ]
    flat = {name: tensor.flatten(1) if name == "head.fc.weight" else tensor for name, tensor in state.items()}
    return config, renamed(flat, rules, Classified(config, head.shape[0], stem.shape[1]), family)
