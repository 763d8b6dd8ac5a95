"""Which reader a state dict of timm or torchvision needs: told by a tensor that only this family has.

What a state dict does not show (heads of an unusual width, windows of Swin V2) is in `Facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from regard.core.errors import CheckpointError
from regard.core.models import ModelConfig
from regard.pretrained.bit import timm_to_bit
from regard.pretrained.convnext import timm_to_convnext, torchvision_to_convnext
from regard.pretrained.mixers import timm_to_convmixer, timm_to_mixer
from regard.pretrained.mvit import timm_to_mvitv2, torchvision_to_mvit
from regard.pretrained.resnet import torchvision_to_resnet
from regard.pretrained.timm_swin import timm_to_swin, timm_to_swinv2
from regard.pretrained.timm_vit import timm_to_deit, timm_to_vit
from regard.pretrained.torchvision_swin import torchvision_to_swin, torchvision_to_swinv2
from regard.pretrained.torchvision_vit import torchvision_to_vit

State = Mapping[str, Tensor]
Read = tuple[ModelConfig, dict[str, Tensor]]


@dataclass(frozen=True)
class Facts:
    """What is known of a model beside its tensors; None and () are not known."""

    num_heads: int | None = None
    image_size: int | None = None
    window_size: int | None = None
    pretrained_window_size: tuple[int, ...] = ()


@dataclass(frozen=True)
class Family:
    """Models of one library that one reader reads."""

    name: str
    marker: str
    """A tensor that every one of them has, and no family that stands below."""
    read: Callable[[State, Facts], Read]


def _swinv2(state: State, facts: Facts) -> Read:
    if facts.image_size is None or facts.window_size is None:
        raise CheckpointError(
            "The windows of timm's Swin V2 leave no trace in its tensors. Keep config.json beside the weights, or say "
            "which of them it is: `load_pretrained(path, architecture='swinv2_tiny_window8_256')`."
        )
    return timm_to_swinv2(state, facts.image_size, facts.window_size, facts.pretrained_window_size)


FAMILIES = (
    Family("torchvision's ViT", "conv_proj.weight", lambda state, facts: torchvision_to_vit(state, facts.num_heads)),
    Family("torchvision's Swin V2", "features.1.0.attn.logit_scale", lambda state, _: torchvision_to_swinv2(state)),
    Family("torchvision's Swin", "features.1.0.attn.qkv.weight", lambda state, _: torchvision_to_swin(state)),
    Family("torchvision's ConvNeXt", "features.1.0.layer_scale", lambda state, _: torchvision_to_convnext(state)),
    Family("torchvision's or timm's ResNet", "layer1.0.conv1.weight", lambda state, _: torchvision_to_resnet(state)),
    Family("timm's Swin V2", "layers.0.blocks.0.attn.logit_scale", _swinv2),
    Family("timm's Swin", "layers.0.blocks.0.attn.qkv.weight", lambda state, _: timm_to_swin(state)),
    Family("timm's ConvNeXt", "stages.0.blocks.0.conv_dw.weight", lambda state, _: timm_to_convnext(state)),
    Family(
        "timm's MViTv2",
        "stages.0.blocks.0.attn.pool_k.weight",
        lambda state, facts: timm_to_mvitv2(state, facts.image_size),
    ),
    Family("torchvision's MViT", "pos_encoding.class_token", lambda state, _: torchvision_to_mvit(state)),
    Family("timm's MLP-Mixer", "blocks.0.mlp_tokens.fc1.weight", lambda state, _: timm_to_mixer(state)),
    Family("timm's ConvMixer", "blocks.0.0.fn.0.weight", lambda state, _: timm_to_convmixer(state)),
    Family("timm's BiT", "stem.conv.weight", lambda state, _: timm_to_bit(state)),
    Family("timm's distilled DeiT", "dist_token", lambda state, facts: timm_to_deit(state, facts.num_heads)),
    Family("timm's ViT", "patch_embed.proj.weight", lambda state, facts: timm_to_vit(state, facts.num_heads)),
)


def recognised(state: State) -> Family:
    """The family whose marker is there; a state dict of no family is an error that says what it looks like."""
    for family in FAMILIES:
        if family.marker in state:
            return family
    shown = ", ".join(repr(name) for name in list(state)[:5])
    known = ", ".join(family.name for family in FAMILIES)
    raise CheckpointError(
        f"These tensors are of no model that Regard knows: {shown}, ... ({len(state)} in all). Known are {known}; a "
        "checkpoint of transformers needs its config.json beside it."
    )
