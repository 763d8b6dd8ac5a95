"""How a translator is trained and asked."""

from __future__ import annotations

from pydantic import Field

from regard.core.config import Config
from regard.tasks.decoding.config import DecodingConfig


class TranslationConfig(Config):
    """Loss, search and where alignments are read off."""

    label_smoothing: float = Field(0.1, ge=0.0, lt=1.0)
    """Share of the target distribution that is spread evenly over the vocabulary."""
    alignment_tap: str = "auto"
    """Address of the attention that alignments are read off; `auto` takes the last but one that reads the source."""
    decoding: DecodingConfig = DecodingConfig()
    """How translations are searched."""
