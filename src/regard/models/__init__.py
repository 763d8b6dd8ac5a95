"""The models, one file each; importing this package fills the registry."""

from regard.models import cho, deit, luong, rnnsearch, sutskever, transformer, vit

__all__ = ["cho", "deit", "luong", "rnnsearch", "sutskever", "transformer", "vit"]
