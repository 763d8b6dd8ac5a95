"""The models, one file each; importing this package fills the registry."""

from regard.models import cho, cnn, lrnet, luong, resnet, rnnsearch, stand_alone, sutskever, transformer, wide_resnet

__all__ = [
    "cho",
    "cnn",
    "lrnet",
    "luong",
    "resnet",
    "rnnsearch",
    "stand_alone",
    "sutskever",
    "transformer",
    "wide_resnet",
]
