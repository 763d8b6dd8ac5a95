"""How sentences are written: which search, how wide, how long, how random."""

from __future__ import annotations

import math
from typing import Literal

from jaxtyping import Int
from pydantic import model_validator
from torch import Tensor

from regard.core.config import Config
from regard.core.errors import ConfigError
from regard.data.special import BOS, PAD

# Keeps a product such as 1.1 * 10, which is a hair above 11 in binary, from being rounded up to 12.
_ROUNDING_SLACK = 1e-9
# Far beyond any sensible choice, and lengths to this power still fit into float32.
_MAX_PENALTY = 10


class DecodingConfig(Config):
    """Options of all searches; those of another search than the chosen one are ignored."""

    method: Literal["greedy", "beam", "sample"] = "beam"
    """The most likely token each time, the best of several continued hypotheses, or a random draw."""

    beam_width: int = 4
    """How many hypotheses of a sentence are continued at the same time (beam only)."""

    length_penalty: float = 1.0
    """A hypothesis scores its log-probability divided by (tokens written, EOS included) ** length_penalty."""

    num_best: int = 1
    """How many hypotheses to return for a sentence; when sampling, how many independent ones to draw."""

    max_length_ratio: float = 2.0
    """A translation may have ceil(ratio * source tokens) + extra tokens, EOS included."""

    max_length_extra: int = 10
    """See `max_length_ratio`."""

    max_length: int = 256
    """No translation is longer than this, whatever its source."""

    temperature: float = 1.0
    """Divides the log-probabilities before drawing; below 1 is bolder (sample only)."""

    top_k: int | None = None
    """Draw among this many most likely tokens only (sample only)."""

    top_p: float = 1.0
    """Draw among the fewest most likely tokens that together have this probability (sample only)."""

    seed: int = 0
    """With a sentence's position this fixes its random draws (sample only)."""

    forbidden: tuple[int, ...] = (PAD, BOS)
    """Tokens never written. The others keep the log-probabilities they had, so that sums stay comparable."""

    @model_validator(mode="after")
    def _fits(self) -> DecodingConfig:
        for name in ("beam_width", "num_best", "max_length"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, but it has to be at least 1.")
        if self.method == "beam" and self.num_best > self.beam_width:
            raise ConfigError(
                f"num_best is {self.num_best}, but a beam of width {self.beam_width} has at most {self.beam_width} "
                f"hypotheses. Choose a beam_width of at least {self.num_best}."
            )
        if self.method == "greedy" and self.num_best > 1:
            raise ConfigError(
                f"num_best is {self.num_best}, but greedy decoding has one hypothesis. "
                "Choose the method beam or sample."
            )
        if not abs(self.length_penalty) <= _MAX_PENALTY:
            raise ConfigError(
                f"length_penalty is {self.length_penalty}, but it has to be between -{_MAX_PENALTY} and {_MAX_PENALTY}."
            )
        room = self.max_length_ratio + self.max_length_extra
        if not math.isfinite(room) or room <= 0 or min(self.max_length_ratio, self.max_length_extra) < 0:
            raise ConfigError(
                f"max_length_ratio {self.max_length_ratio} and max_length_extra {self.max_length_extra} leave no room "
                "for a token. Neither may be negative and one has to be positive."
            )
        if not math.isfinite(self.temperature) or self.temperature <= 0:
            raise ConfigError(
                f"temperature is {self.temperature}, but it has to be a positive number. "
                "For no randomness choose the method greedy."
            )
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(
                f"top_k is {self.top_k}, but at least 1 token has to remain. Leave it out for all tokens."
            )
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}, but it is a probability above 0 and at most 1.")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}, but it may not be negative.")
        return self

    def limits(self, source_lengths: Int[Tensor, "batch"]) -> Int[Tensor, "batch"]:
        """How many tokens each sentence may have, EOS included."""
        longest = (self.max_length_ratio * source_lengths.double() - _ROUNDING_SLACK).ceil() + self.max_length_extra
        return longest.clamp(1, self.max_length).long()
