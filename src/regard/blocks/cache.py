"""Keys and values of the tokens written so far, filled in place.

Appending writes one position. Room is made for a few positions at a time: once in `STEP` positions what is there moves
to a larger room, so that nothing is ever copied that is much larger than what is used, be it for the whole length that
a sentence might have, when hypotheses leave or change places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

STEP = 16


@dataclass(frozen=True)
class KeyValueCache:
    """One row a hypothesis, those of a sentence together; positions from `length` on are not filled yet.

    A cache is a value but shares its room with the one it grew from: go on from the newest only.
    """

    keys: Float[Tensor, "hypotheses heads room key_width"]
    values: Float[Tensor, "hypotheses heads room value_width"]
    batch: int
    max_length: int
    length: int = 0

    @classmethod
    def empty(cls, like_keys: Tensor, like_values: Tensor, batch: int, max_length: int) -> KeyValueCache:
        """For (batch * width, heads, 1, head_width) keys and values such as these."""
        room = min(STEP, max_length)
        return cls(_larger(like_keys[:, :, :0], room), _larger(like_values[:, :, :0], room), batch, max_length)

    def append(self, keys: Tensor, values: Tensor) -> KeyValueCache:
        """With one more position for every hypothesis."""
        assert self.length < self.max_length, f"the cache has room for {self.max_length} positions and all are filled"
        kept_keys, kept_values = self.keys, self.values
        if self.length == kept_keys.shape[2]:
            room = min(self.length + STEP, self.max_length)
            kept_keys, kept_values = _larger(kept_keys, room), _larger(kept_values, room)
        kept_keys.narrow(2, self.length, 1).copy_(keys)
        kept_values.narrow(2, self.length, 1).copy_(values)
        return replace(self, keys=kept_keys, values=kept_values, length=self.length + 1)

    def filled(self) -> tuple[Float[Tensor, "hypotheses heads length key_width"], Tensor]:
        """Keys and values so far, as views."""
        return self.keys.narrow(2, 0, self.length), self.values.narrow(2, 0, self.length)

    def keep(self, sentences: Int[Tensor, "kept"]) -> KeyValueCache:
        width = len(self.keys) // self.batch
        return self._select(sentences[:, None] * width + torch.arange(width, device=sentences.device), len(sentences))

    def reorder(self, beams: Int[Tensor, "batch width"]) -> KeyValueCache:
        width = len(self.keys) // self.batch
        return self._select(torch.arange(self.batch, device=beams.device)[:, None] * width + beams, self.batch)

    def _select(self, rows: Int[Tensor, "sentences width"], batch: int) -> KeyValueCache:
        chosen = rows.flatten()
        return replace(
            self, keys=self.keys.index_select(0, chosen), values=self.values.index_select(0, chosen), batch=batch
        )


def _larger(filled: Float[Tensor, "hypotheses heads length width"], room: int) -> Tensor:
    """The same with room for more positions behind."""
    larger = filled.new_empty(*filled.shape[:2], room, filled.shape[3])
    larger.narrow(2, 0, filled.shape[2]).copy_(filled)
    return larger
