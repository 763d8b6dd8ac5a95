"""Keys and values of the tokens written so far: room for all of them from the start, filled in place.

Appending writes one position and copies nothing; only leaving the batch and reordering beams move what is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class KeyValueCache:
    """The room is (batch, width, heads, max_length, head_width); positions from `length` on are not filled yet.

    A cache is a value but shares its room with the one it grew from: go on from the newest only.
    """

    keys: Float[Tensor, "batch width heads max_length key_width"]
    values: Float[Tensor, "batch width heads max_length value_width"]
    length: int

    @classmethod
    def empty(cls, like_keys: Tensor, like_values: Tensor, batch: int, max_length: int) -> KeyValueCache:
        """For (batch * width, heads, 1, head_width) keys and values such as these."""

        def room(like: Tensor) -> Tensor:
            width = like.shape[0] // batch
            return like.new_empty(batch, width, like.shape[1], max_length, like.shape[3])

        return cls(room(like_keys), room(like_values), 0)

    def append(self, keys: Tensor, values: Tensor) -> KeyValueCache:
        """With one more position for every hypothesis."""
        room = self.keys.shape[3]
        assert self.length < room, f"the cache has room for {room} positions and all are filled"
        self.keys.flatten(0, 1)[:, :, self.length] = keys[:, :, 0]
        self.values.flatten(0, 1)[:, :, self.length] = values[:, :, 0]
        return replace(self, length=self.length + 1)

    def filled(self) -> tuple[Float[Tensor, "hypotheses heads length key_width"], Tensor]:
        """Keys and values so far, one row a hypothesis, as views."""
        return (
            self.keys.flatten(0, 1)[:, :, : self.length],
            self.values.flatten(0, 1)[:, :, : self.length],
        )

    def keep(self, sentences: Int[Tensor, "kept"]) -> KeyValueCache:
        return self._moved(lambda room: room.index_select(0, sentences))

    def reorder(self, beams: Int[Tensor, "batch width"]) -> KeyValueCache:
        batch, width = self.keys.shape[:2]
        rows = (torch.arange(batch, device=beams.device)[:, None] * width + beams).flatten()
        return self._moved(lambda room: room.flatten(0, 1).index_select(0, rows).unflatten(0, beams.shape))

    def _moved(self, select: Callable[[Tensor], Tensor]) -> KeyValueCache:
        def move(room: Tensor) -> Tensor:
            used = select(room[:, :, :, : self.length])
            moved = used.new_empty(*used.shape[:3], room.shape[3], used.shape[4])
            moved[:, :, :, : self.length] = used
            return moved

        return replace(self, keys=move(self.keys), values=move(self.values))
