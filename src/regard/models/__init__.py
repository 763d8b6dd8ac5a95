"""The models, one file each; importing this package fills the registry."""

from regard.models import (
    bit,
    cho,
    cnn,
    convmixer,
    convnext,
    lrnet,
    luong,
    mixer,
    resnet,
    rnnsearch,
    stand_alone,
    sutskever,
    transformer,
    wide_resnet,
)

__all__ = [
    "bit",
    "cho",
    "cnn",
    "convmixer",
    "convnext",
    "lrnet",
    "luong",
    "mixer",
    "resnet",
    "rnnsearch",
    "stand_alone",
    "sutskever",
    "transformer",
    "wide_resnet",
]
