"""Weights of timm's MLP-Mixer and ConvMixer as weights of ours.

| timm's MLP-Mixer | ours |
| --- | --- |
| stem.proj | patches |
| blocks.B.{norm1, norm2} | blocks.B.{token_norm, channel_norm} |
| blocks.B.{mlp_tokens, mlp_channels}.{fc1, fc2} | blocks.B.{token_mixing, channel_mixing}.{expand, contract} |

| timm's ConvMixer | ours |
| --- | --- |
| stem.{0, 2} | patches.{convolution, norm} |
| blocks.B.0.fn.{0, 2} | blocks.B.positions.{convolution, norm} |
| blocks.B.{1, 3} | blocks.B.channels.{convolution, norm} |

A file of ConvMixer does not say which nonlinearity it was trained with: gelu, but relu for `convmixer_768_32`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt

from torch import Tensor

from regard.core.errors import CheckpointError
from regard.layers.feed_forward import Activation
from regard.models.convmixer import ConvMixerConfig
from regard.models.mixer import MixerConfig
from regard.pretrained.renaming import Classified, Rules, count, renamed, take

_PARTS = {"mlp_tokens": "token_mixing", "mlp_channels": "channel_mixing"}


def timm_to_mixer(state: Mapping[str, Tensor]) -> tuple[MixerConfig, dict[str, Tensor]]:
    """From `timm.create_model("mixer_b16_224").state_dict()`."""
    family = "an MLP-Mixer of timm"
    patches, head = take(state, "stem.proj.weight", family), take(state, "head.weight", family)
    tokens = take(state, "blocks.0.mlp_tokens.fc1.weight", family)
    channels = take(state, "blocks.0.mlp_channels.fc1.weight", family)
    side = isqrt(tokens.shape[1])
    if side**2 != tokens.shape[1]:
        raise CheckpointError(f"This MLP-Mixer has {tokens.shape[1]} patches; ours are those of a square picture.")
    config = MixerConfig(
        image_size=side * patches.shape[-1],
        patch_size=patches.shape[-1],
        width=patches.shape[0],
        num_blocks=count(state, r"blocks\.(\d+)\."),
        token_width=tokens.shape[0],
        feed_forward_width=channels.shape[0],
    )
    rules: Rules = [
        (r"stem\.proj\.(.+)", r"patches.\1"),
        (r"blocks\.(\d+)\.norm1\.(.+)", r"blocks.\1.token_norm.\2"),
        (r"blocks\.(\d+)\.norm2\.(.+)", r"blocks.\1.channel_norm.\2"),
        *((rf"blocks\.(\d+)\.{part}\.fc1\.(.+)", rf"blocks.\1.{name}.expand.\2") for part, name in _PARTS.items()),
        *((rf"blocks\.(\d+)\.{part}\.fc2\.(.+)", rf"blocks.\1.{name}.contract.\2") for part, name in _PARTS.items()),
        (r"((norm|head)\..+)", r"\1"),
    ]
    return config, renamed(state, rules, Classified(config, head.shape[0], patches.shape[1]), family)


def timm_to_convmixer(
    state: Mapping[str, Tensor], activation: Activation = "gelu"
) -> tuple[ConvMixerConfig, dict[str, Tensor]]:
    """From `timm.create_model("convmixer_1536_20").state_dict()`."""
    family = "a ConvMixer of timm"
    patches, head = take(state, "stem.0.weight", family), take(state, "head.weight", family)
    config = ConvMixerConfig(
        width=patches.shape[0],
        num_blocks=count(state, r"blocks\.(\d+)\."),
        kernel_size=take(state, "blocks.0.0.fn.0.weight", family).shape[-1],
        patch_size=patches.shape[-1],
        activation=activation,
    )
    rules: Rules = [
        (r"stem\.0\.(.+)", r"patches.convolution.\1"),
        (r"stem\.2\.(.+)", r"patches.norm.\1"),
        (r"blocks\.(\d+)\.0\.fn\.0\.(.+)", r"blocks.\1.positions.convolution.\2"),
        (r"blocks\.(\d+)\.0\.fn\.2\.(.+)", r"blocks.\1.positions.norm.\2"),
        (r"blocks\.(\d+)\.1\.(.+)", r"blocks.\1.channels.convolution.\2"),
        (r"blocks\.(\d+)\.3\.(.+)", r"blocks.\1.channels.norm.\2"),
        (r"(head\..+)", r"\1"),
    ]
    return config, renamed(state, rules, Classified(config, head.shape[0], patches.shape[1]), family)
