"""Names for the positions of a text, from the tokenizer that made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from regard.core.axes import Text


def text_axes(ids: Tensor | Sequence[Sequence[int]], tokenizer: Any, present: Tensor | None = None) -> list[Text]:
    """One axis an example; `present` is the tokenizer's attention mask, whose padding at the end is cut off.

    `tokenizer` is one of `transformers`, or anything with `decode(ids)`. A token that alone stands for nothing (a part
    of a letter, a space) is shown as the tokenizer's own piece where it can tell.
    """
    rows = ids.tolist() if isinstance(ids, Tensor) else [list(row) for row in ids]
    lengths = [len(row) for row in rows] if present is None else [_length(row) for row in present.tolist()]
    return [
        Text(tuple(_name(number, tokenizer) for number in row[:length]))
        for row, length in zip(rows, lengths, strict=True)
    ]


def _length(present: Sequence[int]) -> int:
    """Up to the last token that is there; padding in front stays, because positions count from the front."""
    return max((place + 1 for place, there in enumerate(present) if there), default=0)


def _name(number: int, tokenizer: Any) -> str:
    text = tokenizer.decode([number])
    if text.strip() and "�" not in text:
        return text.strip()
    pieces = getattr(tokenizer, "convert_ids_to_tokens", None)
    return pieces([number])[0] if pieces is not None else text or str(number)
