"""Where words go: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

SHADES = " ░▒▓█"


def say(text: str = "") -> None:
    """Progress and remarks; never part of a result."""
    print(text, file=sys.stderr, flush=True)


def show(text: str = "") -> None:
    """A part of the result, for people."""
    print(text)


def show_json(value: Mapping[str, Any]) -> None:
    """The result, for programs: one object on one line."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def table(rows: Sequence[Sequence[Any]], header: Sequence[str] = (), indent: str = "") -> str:
    """Columns side by side; numbers stand to the right."""
    lines = [list(map(_text, row)) for row in ([header] if header else [])] + [list(map(_text, row)) for row in rows]
    if not lines:
        return ""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    numeric = [
        all(isinstance(row[column], int | float) for row in rows) and bool(rows) for column in range(len(widths))
    ]
    return "\n".join(
        (indent + "  ".join(_fit(*cell) for cell in zip(line, widths, numeric, strict=True))).rstrip() for line in lines
    )


def matrix(
    weights: Float[np.ndarray, "targets sources"], source_words: Sequence[str], target_words: Sequence[str]
) -> str:
    """An alignment in a terminal: a row for each target word, the source written downwards above its column."""
    margin = max(map(len, target_words), default=0)
    if margin + 2 * len(source_words) + 1 > shutil.get_terminal_size((100, 24)).columns:
        return "(the matrix is too wide for this terminal; see the picture)"
    height = max(map(len, source_words), default=0)
    head = [
        " " * (margin + 1) + " ".join(word.rjust(height)[row] for word in source_words).rstrip()
        for row in range(height)
    ]
    body = [
        f"{word:>{margin}} " + "".join(SHADES[_shade(weight)] * 2 for weight in row).rstrip()
        for word, row in zip(target_words, weights, strict=True)
    ]
    return "\n".join([*head, *body])


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 sentence`, `1,000 sentences`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(num_bytes: float) -> str:
    """Bytes as a person reads them."""
    for unit in ("bytes", "KB", "MB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} GB"


def _shade(weight: float) -> int:
    """Only nothing at all looks like nothing."""
    return 0 if weight < 0.02 else min(len(SHADES) - 1, 1 + int(weight * (len(SHADES) - 1)))


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _fit(text: str, width: int, numeric: bool) -> str:
    return text.rjust(width) if numeric else text.ljust(width)
