"""What a recording or a view costs, before it is made; and what there is to spend.

    cost = recording_cost(model, inputs...)      runs the model on `meta` tensors: shapes, no numbers, no time
    cost.recorded                                bytes that a recording keeps
    cost.maps                                    bytes of all attention matrices, had they been kept

The decks count matrices of float32 in binary units (a KB has 1,024 bytes): 768 GB for pixels, 150 KB and 112 MB for
ViT.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from regard.core.errors import ConfigError, RecordingError
from regard.core.relations import Relation

BYTES_OF_FLOAT32 = 4

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


@dataclass(frozen=True)
class TapCost:
    """One tap's share."""

    address: str
    form: str
    shape: tuple[int, int, int, int]
    """Examples, heads, queries, keys."""
    recorded: int
    """Bytes that are kept."""

    @property
    def matrix(self) -> int:
        """Bytes of one head's attention matrix of one example, in float32."""
        return self.shape[2] * self.shape[3] * BYTES_OF_FLOAT32

    @property
    def maps(self) -> int:
        """Bytes of all its matrices."""
        return self.shape[0] * self.shape[1] * self.matrix


@dataclass(frozen=True)
class Cost:
    """What a recording keeps, beside what its attention matrices would take."""

    taps: tuple[TapCost, ...]

    @property
    def recorded(self) -> int:
        return sum(tap.recorded for tap in self.taps)

    @property
    def maps(self) -> int:
        return sum(tap.maps for tap in self.taps)


def cost_of(relations: Mapping[str, Relation]) -> Cost:
    """Of relations that are there, or of their shapes on the `meta` device."""
    return Cost(
        tuple(
            TapCost(address, relation.form, relation.shape, relation.nbytes) for address, relation in relations.items()
        )
    )


def dense_cost(tokens: int, layers: int, heads: int) -> Cost:
    """Of a model that is only numbers: so many layers of heads over so many tokens, every matrix kept."""
    matrix = tokens * tokens * BYTES_OF_FLOAT32
    return Cost(
        tuple(
            TapCost(f"layer {layer}", "dense", (1, heads, tokens, tokens), heads * matrix)
            for layer in range(1, layers + 1)
        )
    )


DECK_CASES: dict[str, tuple[int, int, int]] = {
    "a transformer on 128 x 128 pixels": (128**2, 48, 16),
    "ViT, 14 x 14 patches": (14**2, 48, 16),
    "ViT, 16 x 16 patches": (16**2, 48, 16),
}
"""Tokens, layers and heads of the cases that deck C counts."""


def parse_bytes(budget: int | str) -> int:
    """`"2GB"`, `"512 MiB"` or a number of bytes."""
    if isinstance(budget, int):
        number, unit = float(budget), ""
    else:
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", budget, re.IGNORECASE)
        if not found or found[2].upper() not in _UNITS:
            raise ConfigError(f"{budget!r} is no amount of memory; write it as '2GB', '512MiB' or a number of bytes.")
        number, unit = float(found[1]), found[2].upper()
    if number <= 0:
        raise ConfigError(f"A memory budget of {budget!r} leaves nothing; give more than zero bytes.")
    return int(number * _UNITS[unit])


def memory_free() -> int | None:
    """Bytes that programs could still have, where the system says so."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def require(num_bytes: int, budget: int | None, what: str, advice: str) -> None:
    """Refuses, in a sentence, what would take more memory than the budget, or than there is."""
    limit, whose = (budget, "the budget of this recording") if budget is not None else (memory_free(), "what is free")
    if limit is not None and num_bytes > limit:
        raise RecordingError(
            f"{what} would take {readable(num_bytes)} of memory, more than {whose} ({readable(limit)}). {advice}"
        )


def readable(num_bytes: float) -> str:
    """Bytes as a person reads them, in decimal units."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}" if unit == "bytes" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} TB"


def binary(num_bytes: float) -> str:
    """Bytes in units of 1,024, cut off as the decks cut them."""
    for unit in ("bytes", "KiB", "MiB"):
        if num_bytes < 1024:
            return f"{int(num_bytes)} {unit}"
        num_bytes /= 1024
    return f"{int(num_bytes)} GiB"
