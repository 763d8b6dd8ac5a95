"""The models, one file each; importing this package fills the registry."""

from regard.models import cho, deit, luong, rnnsearch, sutskever, swin, swinv2, transformer, vit

__all__ = ["cho", "deit", "luong", "rnnsearch", "sutskever", "swin", "swinv2", "transformer", "vit"]
