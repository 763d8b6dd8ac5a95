"""How a translator is trained and asked."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from regard.core.task import TaskConfig
from regard.tasks.decoding.config import DecodingConfig


class TranslationConfig(TaskConfig):
    """Loss, search and where alignments are read off."""

    kind: Literal["translation"] = "translation"
    label_smoothing: float = Field(0.1, ge=0.0, lt=1.0)
    """Share of the target distribution that is spread evenly over the vocabulary."""
    alignment_tap: str = "auto"
    """Address of the attention that alignments are read off; `auto` takes the last but one that reads the source."""
    decoding: DecodingConfig = DecodingConfig()
    """How translations are searched."""
