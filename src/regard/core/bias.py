"""A bias on scores that depends on the distance only, kept as one number a distance, not one a pair."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class OffsetBias:
    """`values[h, o]` is added where key minus query is `o - (keys - 1)`, queries and keys aligned at their ends.

    The first entry serves the last query looking at the first key, the last one the first query looking at the
    last key: queries + keys - 1 entries for what would be queries x keys.
    """

    values: Float[Tensor, "heads offsets"]

    def block(self, start: int, stop: int, num_queries: int, num_keys: int) -> Float[Tensor, "heads rows keys"]:
        """The bias of queries `start` to `stop`: every row is the one above it, shifted by one."""
        if start == stop:
            return self.values.new_empty(len(self.values), 0, num_keys)
        last = num_queries - 1
        rows = self.values[:, last - stop + 1 : last - start + num_keys]
        return rows.unfold(1, num_keys, 1).flip(1)
