"""The models, one file each; importing this package fills the registry."""

from regard.models import cho, luong, rnnsearch, sutskever, transformer

__all__ = ["cho", "luong", "rnnsearch", "sutskever", "transformer"]
