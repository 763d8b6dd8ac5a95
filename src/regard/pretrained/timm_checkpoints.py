"""Folders that timm writes (`save_for_hf`) and their weights alone.

`config.json` names the architecture, whose published size tells what tensors do not show, and the arguments that were
given beside it. What would change the model and leaves no trace in tensors is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from regard.core.errors import CheckpointError
from regard.core.models import sizes
from regard.pretrained.checkpoint import Checkpoint, Preparation, channels_of, classes_of, names_of
from regard.pretrained.states import Facts, recognised

TRACELESS = ("act_layer", "norm_layer", "aa_layer", "output_stride", "block_reduce_first", "dynamic_img_pad")
"""Arguments of timm's models that change what is computed, but no tensor's name or shape."""

TRACELESS_NAMES = re.compile(r"resnet(aa|blur)|quickgelu|_relu$|_silu$|swish")
"""The same in names of architectures."""


def read_timm(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> Checkpoint:
    """From the tensors and what `config.json` holds."""
    name = str(config.get("architecture", ""))
    published = {**config, **(config.get("pretrained_cfg") or {})}
    arguments = config.get("model_args") or {}
    family = recognised(state)
    _refuse_traceless(name, arguments, str(config.get("global_pool", "")), state)
    ours, tensors = family.read(state, facts_of(name, arguments))
    size = (*published.get("input_size", ()), *([224] * 3))[1:3] if "input_size" in published else None
    channels, num_classes = channels_of(tensors), classes_of(tensors)
    preparation = Preparation.usual(_side(arguments, ours, 224), channels)
    mean, std = published.get("mean"), published.get("std")
    if size is not None and mean and std and len(mean) == len(std) == channels:
        preparation = Preparation(int(size[0]), int(size[1]), tuple(mean), tuple(std))
    names = names_of(published.get("label_names"), num_classes)
    return Checkpoint(f"{name or family.name} of timm", ours, tensors, preparation, names)


def facts_of(architecture: str, arguments: Mapping[str, Any] | None = None) -> Facts:
    """What a name and the arguments beside it tell; nothing of a name without a published size."""
    arguments = arguments or {}
    name = architecture.split(".")[0]
    known = sizes[name]() if name in sizes else None
    heads = arguments.get("num_heads", getattr(known, "num_heads", None))
    measures = arguments.get("pretrained_window_sizes", getattr(known, "pretrained_window_size", ()))
    return Facts(
        num_heads=heads if isinstance(heads, int) else None,
        image_size=_whole(arguments.get("img_size", getattr(known, "image_size", None)), "img_size"),
        window_size=_whole(arguments.get("window_size", getattr(known, "window_size", None)), "window_size"),
        pretrained_window_size=tuple(measures) if any(measures) else (),
    )


def _refuse_traceless(name: str, arguments: Mapping[str, Any], pooling: str, state: Mapping[str, Tensor]) -> None:
    for argument in TRACELESS:
        if arguments.get(argument):
            raise CheckpointError(
                f"This checkpoint of timm was made with {argument} = {arguments[argument]!r}, for which our model has "
                "no place."
            )
    if TRACELESS_NAMES.search(name):
        raise CheckpointError(f"timm's {name!r} computes something else than our model of the same tensors would.")
    plain = ("", "avg", "token") if "cls_token" not in state else ("", "token")
    if pooling not in plain and "fc_norm.weight" not in state:
        known = " or ".join(repr(known) for known in plain if known)
        raise CheckpointError(f"This checkpoint of timm has global_pool = {pooling!r}; our model can be {known} only.")


def _whole(value: Any, what: str) -> int | None:
    """One number for both sides."""
    if isinstance(value, list | tuple):
        if len(set(value)) != 1:
            raise CheckpointError(f"This checkpoint of timm has {what} = {value}; ours can only be the same both ways.")
        value = value[0]
    return None if value is None else int(value)


def _side(arguments: Mapping[str, Any], ours: Any, otherwise: int) -> int:
    given = _whole(arguments.get("img_size"), "img_size")
    return int(getattr(ours, "image_size", otherwise)) if given is None else given
