"""Weights of torchvision's, timm's and `transformers`' ResNet as weights of ours.

| torchvision, timm | transformers | ours |
| --- | --- | --- |
| conv1, bn1 | resnet.embedder.embedder.{convolution, normalization} | stem.entry.{convolution, norm} |
| layerS.B.conv1, .conv2 (basic) | ...stages.S.layers.B.layer.{0, 1} | stages.S.B.{first, second} |
| layerS.B.conv1, .conv2, .conv3 | ...stages.S.layers.B.layer.{0, 1, 2} | stages.S.B.{reduce, spatial, expand} |
| layerS.B.downsample | ...stages.S.layers.B.shortcut | stages.S.B.shortcut |
| fc | classifier.1 | head |

timm's networks with another stem (`resnet50d`), squeezed channels or group convolutions are refused: their names or
shapes have no place here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from torch import Tensor

from regard.core.errors import CheckpointError
from regard.models.resnet import ResNetConfig
from regard.pretrained.renaming import Classified, Rules, count, renamed, take

Block = Literal["basic", "bottleneck"]


def torchvision_to_resnet(state: Mapping[str, Tensor]) -> tuple[ResNetConfig, dict[str, Tensor]]:
    """From `torchvision.models.resnet50().state_dict()`, or timm's network of the same name."""
    family = "a ResNet of torchvision or timm"
    stem, head = take(state, "conv1.weight", family), take(state, "fc.weight", family)
    block: Block = "bottleneck" if "layer1.0.conv3.weight" in state else "basic"
    num_blocks = tuple(count(state, rf"layer{stage}\.(\d+)\.") for stage in range(1, 1 + count(state, r"layer(\d+)\.")))
    config = ResNetConfig(width=stem.shape[0], num_blocks=num_blocks, block=block, stem="imagenet")
    rules = [("conv1.(.+)", r"stem.entry.convolution.\1"), ("bn1.(.+)", r"stem.entry.norm.\1"), ("fc.(.+)", r"head.\1")]
    for stage in range(len(num_blocks)):
        theirs, ours = rf"layer{stage + 1}\.(\d+)", rf"stages.{stage}.\1"
        rules += [
            (rf"{theirs}\.downsample\.0\.(.+)", rf"{ours}.shortcut.convolution.\2"),
            (rf"{theirs}\.downsample\.1\.(.+)", rf"{ours}.shortcut.norm.\2"),
        ]
        for number, (convolution, norm) in enumerate(_parts(block), start=1):
            rules += [
                (rf"{theirs}\.conv{number}\.(.+)", rf"{ours}.{convolution}.\2"),
                (rf"{theirs}\.bn{number}\.(.+)", rf"{ours}.{norm}.\2"),
            ]
    return config, renamed(state, rules, Classified(config, head.shape[0], stem.shape[1]), family)


def transformers_to_resnet(
    state: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[ResNetConfig, dict[str, Tensor]]:
    """From `ResNetForImageClassification.state_dict()` and `ResNetConfig.to_dict()`."""
    family = "a ResNet of transformers"
    if config["hidden_act"] != "relu" or config["downsample_in_first_stage"] or config["downsample_in_bottleneck"]:
        raise CheckpointError(
            "Our ResNet has relu, its first stage keeps the resolution and later ones change it in their 3x3 "
            f"convolution; this one has hidden_act = {config['hidden_act']!r}, downsample_in_first_stage = "
            f"{config['downsample_in_first_stage']}, downsample_in_bottleneck = {config['downsample_in_bottleneck']}."
        )
    stem = take(state, "resnet.embedder.embedder.convolution.weight", family)
    head = take(state, "classifier.1.weight", family)
    block: Block = config["layer_type"]
    ours = ResNetConfig(
        width=config["embedding_size"], num_blocks=tuple(config["depths"]), block=block, stem="imagenet"
    )
    rules: Rules = [
        (r"resnet\.embedder\.embedder\.convolution\.(.+)", r"stem.entry.convolution.\1"),
        (r"resnet\.embedder\.embedder\.normalization\.(.+)", r"stem.entry.norm.\1"),
        (r"classifier\.1\.(.+)", r"head.\1"),
    ]
    prefix = r"resnet\.encoder\.stages\.(\d+)\.layers\.(\d+)"
    for theirs, (convolution, norm) in {
        "shortcut": ("shortcut.convolution", "shortcut.norm"),
        **{rf"layer\.{number}": parts for number, parts in enumerate(_parts(block))},
    }.items():
        rules = [
            *rules,
            (rf"{prefix}\.{theirs}\.convolution\.(.+)", rf"stages.\1.\2.{convolution}.\3"),
            (rf"{prefix}\.{theirs}\.normalization\.(.+)", rf"stages.\1.\2.{norm}.\3"),
        ]
    return ours, renamed(state, rules, Classified(ours, head.shape[0], stem.shape[1]), family)


def _parts(block: Block) -> list[tuple[str, str]]:
    """Convolution and norm of a block, in their order."""
    if block == "basic":
        return [(f"{part}.convolution", f"{part}.norm") for part in ("first", "second")]
    return [
        ("reduce.convolution", "reduce.norm"),
        ("spatial", "spatial_norm"),
        ("expand.convolution", "expand.norm"),
    ]
