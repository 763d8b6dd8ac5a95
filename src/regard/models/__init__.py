"""The models, one file each; importing this package fills the registry."""

from regard.models import cho, cnn, luong, resnet, rnnsearch, sutskever, transformer, wide_resnet

__all__ = ["cho", "cnn", "luong", "resnet", "rnnsearch", "sutskever", "transformer", "wide_resnet"]
