"""The base of every configuration: frozen, complete, and strict about names."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """Keyword-only, immutable, refuses unknown fields; `model_dump_json` and back is the identity."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True)
