"""Weights of timm's, torchvision's and `transformers`' ConvNeXt as weights of ours.

| timm | torchvision | transformers (after `convnext.`) | ours |
| --- | --- | --- | --- |
| stem.{0, 1} | features.0.{0, 1} | embeddings.{patch_embeddings, layernorm} | reductions.0.{0, 1} |
| stages.S.downsample.{0, 1} | features.2S.{0, 1} | encoder.stages.S.downsampling_layer.{0, 1} | reductions.S.{0, 1} |
| stages.S.blocks.B | features.2S+1.B | encoder.stages.S.layers.B | stages.S.B |
| ...conv_dw, norm | ...block.{0, 2} | ...dwconv, layernorm | ...depthwise, norm |
| ...mlp.{fc1, fc2} | ...block.{3, 5} | ...{pwconv1, pwconv2} | ...feed_forward.{expand, contract} |
| ...gamma | ...layer_scale | ...layer_scale_parameter | ...scale |
| head.norm, head.fc | classifier.{0, 2} | layernorm, classifier | norm, head |

Only torchvision shapes a scale as (channels, 1, 1). The last norm of `transformers` guards its division with 1e-12,
where the others and ours have 1e-6; logits of ordinary size do not show it. ConvNeXt V2 is refused: it has no scale.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from regard.models.convnext import ConvNeXtConfig
from regard.pretrained.renaming import Classified, Rules, count, renamed, take


def timm_to_convnext(state: Mapping[str, Tensor]) -> tuple[ConvNeXtConfig, dict[str, Tensor]]:
    """From `timm.create_model("convnext_tiny").state_dict()`; small ones have 1 x 1 convolutions for matrices."""
    return _convert(
        {
            name: tensor.flatten(1) if ".mlp.fc" in name and tensor.dim() == 4 else tensor
            for name, tensor in state.items()
        },
        "a ConvNeXt of timm",
        stem="stem.0.weight",
        depthwise="stages.0.blocks.0.conv_dw.weight",
        head="head.fc.weight",
        num_blocks=[
            count(state, rf"stages\.{stage}\.blocks\.(\d+)\.") for stage in range(count(state, r"stages\.(\d+)"))
        ],
        rules=[
            (r"stem\.(\d)\.(.+)", r"reductions.0.\1.\2"),
            (r"stages\.(\d+)\.downsample\.(\d)\.(.+)", r"reductions.\1.\2.\3"),
            *_block_rules(r"stages\.(\d+)\.blocks\.(\d+)", "conv_dw", "norm", r"mlp\.fc1", r"mlp\.fc2", "gamma"),
            (r"head\.norm\.(.+)", r"norm.\1"),
            (r"head\.fc\.(.+)", r"head.\1"),
        ],
    )


def transformers_to_convnext(state: Mapping[str, Tensor]) -> tuple[ConvNeXtConfig, dict[str, Tensor]]:
    """From `ConvNextForImageClassification.state_dict()`; all sizes are read off the shapes."""
    stages = count(state, r"convnext\.encoder\.stages\.(\d+)")
    prefix = r"convnext\.encoder\.stages\.(\d+)"
    return _convert(
        state,
        "a ConvNeXt of transformers",
        stem="convnext.embeddings.patch_embeddings.weight",
        depthwise="convnext.encoder.stages.0.layers.0.dwconv.weight",
        head="classifier.weight",
        num_blocks=[count(state, rf"convnext\.encoder\.stages\.{stage}\.layers\.(\d+)\.") for stage in range(stages)],
        rules=[
            (r"convnext\.embeddings\.patch_embeddings\.(.+)", r"reductions.0.0.\1"),
            (r"convnext\.embeddings\.layernorm\.(.+)", r"reductions.0.1.\1"),
            (rf"{prefix}\.downsampling_layer\.(\d)\.(.+)", r"reductions.\1.\2.\3"),
            *_block_rules(
                rf"{prefix}\.layers\.(\d+)", "dwconv", "layernorm", "pwconv1", "pwconv2", "layer_scale_parameter"
            ),
            (r"convnext\.layernorm\.(.+)", r"norm.\1"),
            (r"classifier\.(.+)", r"head.\1"),
        ],
    )


def torchvision_to_convnext(state: Mapping[str, Tensor]) -> tuple[ConvNeXtConfig, dict[str, Tensor]]:
    """From `torchvision.models.convnext_tiny().state_dict()`."""
    stages = count(state, r"features\.(\d+)") // 2
    rules: list[tuple[str, str]] = [(r"features\.0\.(\d)\.(.+)", r"reductions.0.\1.\2")]
    for stage in range(stages):
        if stage:
            rules.append((rf"features\.{2 * stage}\.(\d)\.(.+)", rf"reductions.{stage}.\1.\2"))
        rules += _block_rules(
            rf"features\.({2 * stage + 1})\.(\d+)",
            r"block\.0",
            r"block\.2",
            r"block\.3",
            r"block\.5",
            "layer_scale",
            stage=str(stage),
        )
    return _convert(
        {name: tensor.flatten() if name.endswith("layer_scale") else tensor for name, tensor in state.items()},
        "a ConvNeXt of torchvision",
        stem="features.0.0.weight",
        depthwise="features.1.0.block.0.weight",
        head="classifier.2.weight",
        num_blocks=[count(state, rf"features\.{2 * stage + 1}\.(\d+)\.") for stage in range(stages)],
        rules=[*rules, (r"classifier\.0\.(.+)", r"norm.\1"), (r"classifier\.2\.(.+)", r"head.\1")],
    )


def _block_rules(
    prefix: str, depthwise: str, norm: str, expand: str, contract: str, scale: str, stage: str = r"\1"
) -> Rules:
    """`prefix` has two groups, stage and block; the others are names of parts."""
    ours = rf"stages.{stage}.\2"
    return [
        (rf"{prefix}\.{depthwise}\.(.+)", rf"{ours}.depthwise.\3"),
        (rf"{prefix}\.{norm}\.(.+)", rf"{ours}.norm.\3"),
        (rf"{prefix}\.{expand}\.(.+)", rf"{ours}.feed_forward.expand.\3"),
        (rf"{prefix}\.{contract}\.(.+)", rf"{ours}.feed_forward.contract.\3"),
        (rf"{prefix}\.{scale}", rf"{ours}.scale"),
    ]


def _convert(
    state: Mapping[str, Tensor],
    family: str,
    *,
    stem: str,
    depthwise: str,
    head: str,
    num_blocks: list[int],
    rules: Rules,
) -> tuple[ConvNeXtConfig, dict[str, Tensor]]:
    patches = take(state, stem, family)
    config = ConvNeXtConfig(
        width=patches.shape[0],
        num_blocks=tuple(num_blocks),
        patch_size=patches.shape[-1],
        kernel_size=take(state, depthwise, family).shape[-1],
    )
    num_classes = take(state, head, family).shape[0]
    return config, renamed(state, rules, Classified(config, num_classes, patches.shape[1]), family)
