"""Folders that `transformers` writes (`save_pretrained`), for the model types that ours can be.

What an old `config.json` leaves out has the value that it had when the file was written: `USUAL`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from regard.core.errors import CheckpointError
from regard.core.models import ModelConfig
from regard.pretrained.checkpoint import IMAGENET, Checkpoint, Preparation, channels_of, classes_of, names_of
from regard.pretrained.convnext import transformers_to_convnext
from regard.pretrained.resnet import transformers_to_resnet
from regard.pretrained.transformers_swin import transformers_to_swin, transformers_to_swinv2
from regard.pretrained.transformers_vit import transformers_to_deit, transformers_to_deit_student, transformers_to_vit

Read = tuple[ModelConfig, dict[str, Tensor]]
State = Mapping[str, Tensor]

_VIT = {
    "hidden_act": "gelu",
    "image_size": 224,
    "patch_size": 16,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
_SWIN = {
    "image_size": 224,
    "patch_size": 4,
    "window_size": 7,
    "embed_dim": 96,
    "mlp_ratio": 4.0,
    "layer_norm_eps": 1e-5,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "drop_path_rate": 0.1,
}
_RESNET = {
    "hidden_act": "relu",
    "downsample_in_first_stage": False,
    "downsample_in_bottleneck": False,
    "embedding_size": 64,
    "depths": [3, 4, 6, 3],
    "layer_type": "bottleneck",
}
USUAL: dict[str, dict[str, Any]] = {"vit": _VIT, "deit": _VIT, "swin": _SWIN, "swinv2": _SWIN, "resnet": _RESNET}

HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
USUAL_COLOURS = {"vit": HALF}
"""Mean and standard deviation by model type where no preprocessor is beside the model; ImageNet's for the others."""


def _deit(state: State, config: Mapping[str, Any]) -> Read:
    """With both heads, or the one that reads the class token alone."""
    if "cls_classifier.weight" in state:
        return transformers_to_deit(state, config)
    return transformers_to_deit_student(state, config)


def _convnext(state: State, config: Mapping[str, Any]) -> Read:
    if config.get("hidden_act", "gelu") != "gelu":
        raise CheckpointError(f"Our ConvNeXt has gelu; this one has hidden_act = {config['hidden_act']!r}.")
    return transformers_to_convnext(state)


READERS: dict[str, Callable[[State, Mapping[str, Any]], Read]] = {
    "vit": transformers_to_vit,
    "deit": _deit,
    "swin": transformers_to_swin,
    "swinv2": transformers_to_swinv2,
    "convnext": _convnext,
    "resnet": transformers_to_resnet,
}


def read_transformers(
    state: Mapping[str, Tensor], config: Mapping[str, Any], preprocessor: Mapping[str, Any] | None = None
) -> Checkpoint:
    """From the tensors and what `config.json` and, where it is there, `preprocessor_config.json` hold."""
    kind = config["model_type"]
    if kind not in READERS:
        raise CheckpointError(
            f"Regard reads no {kind!r} of transformers; of its picture classifiers it reads {', '.join(READERS)}."
        )
    ours, tensors = READERS[kind](state, {**USUAL.get(kind, {}), **config})
    channels = channels_of(tensors)
    usual = Preparation.usual(getattr(ours, "image_size", 224), channels)
    if channels == 3:
        mean, std = USUAL_COLOURS.get(kind, IMAGENET)
        usual = Preparation(usual.height, usual.width, mean, std)
    names = names_of(config.get("id2label"), classes_of(tensors))
    return Checkpoint(f"{kind} of transformers", ours, tensors, _prepared(preprocessor or {}, usual), names)


def _prepared(preprocessor: Mapping[str, Any], usual: Preparation) -> Preparation:
    """A size is given as one number, by both sides, or by the shorter one."""
    size = preprocessor.get("crop_size") if preprocessor.get("do_center_crop") else None
    size = size or preprocessor.get("size") or usual.height
    if isinstance(size, Mapping):
        side = size.get("shortest_edge", usual.height)
        height, width = size.get("height", side), size.get("width", side)
    else:
        height = width = size
    mean, std = preprocessor.get("image_mean"), preprocessor.get("image_std")
    if not mean or not std or len(mean) != len(usual.mean) or len(std) != len(usual.std):
        mean, std = usual.mean, usual.std
    return Preparation(int(height), int(width), tuple(mean), tuple(std))
