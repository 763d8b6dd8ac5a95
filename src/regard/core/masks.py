"""Who may attend to whom: one convention, `True` = may attend, kept in its smallest form.

A causal mask is a word, a window is a number, padding is one row an example; only what has no structure is
stored as pairs. A matrix is made for the block of rows that is being computed, or never (fused kernels).

Queries and keys are aligned at their ends: with 1 query and 5 keys, the query is the fifth position. So the
same `allow_causal()` serves training, where all queries come at once, and decoding, where they come one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.core.errors import MaskError


@dataclass(frozen=True, eq=False)
class Allow:
    """A conjunction of up to four conditions; `&` adds more."""

    keys: Bool[Tensor, "batch keys"] | None = None
    causal: bool = False
    window: int | None = None
    pairs: Bool[Tensor, "*broadcast #queries #keys"] | None = None

    def __and__(self, other: Allow | None) -> Allow:
        if other is None:
            return self
        windows = [window for window in (self.window, other.window) if window is not None]
        return Allow(
            keys=_both(self.keys, other.keys),
            causal=self.causal or other.causal,
            window=min(windows, default=None),
            pairs=other.pairs if self.pairs is None else _both(_aligned(self.pairs), _aligned(other.pairs)),
        )

    @property
    def everything(self) -> bool:
        """No condition at all."""
        return self.keys is None and not self.causal and self.window is None and self.pairs is None

    @property
    def only_causal(self) -> bool:
        return self.causal and self.keys is None and self.window is None and self.pairs is None

    @property
    def of_heads(self) -> Bool[Tensor, "batch_or_1 heads_or_1 1 1"] | None:
        """The pairs, where they say no more than which heads attend at all."""
        pairs = self.pairs
        return pairs if pairs is not None and pairs.dim() == 4 and pairs.shape[2:] == (1, 1) else None

    def simplified(self, num_queries: int) -> Allow:
        """Without the causal condition where it excludes nothing: one query at the end sees all keys."""
        if not self.causal or num_queries != 1:
            return self
        return _EVERYTHING if self.only_causal else replace(self, causal=False)

    def leaves_all_something(self, num_queries: int, num_keys: int) -> bool:
        """Whether each query is sure to have a key: its own position at least, where only distance counts."""
        return self.keys is None and self.pairs is None and 0 < num_queries <= num_keys

    def block(
        self, start: int, stop: int, num_queries: int, num_keys: int, device: torch.device | None = None
    ) -> Bool[Tensor, "batch_or_1 heads_or_1 rows_or_1 keys"] | None:
        """The mask of queries `start` to `stop`, broadcastable to (batch, heads, rows, keys); None allows all."""
        mask: Tensor | None = None
        if self.keys is not None:
            mask = self.keys[:, None, None, :]
        if self.causal or self.window is not None:
            rows = torch.arange(start, stop, device=device)[:, None] + (num_keys - num_queries)
            columns = torch.arange(num_keys, device=device)[None, :]
            if self.causal:
                mask = _both(mask, (columns <= rows)[None, None])
            if self.window is not None:
                mask = _both(mask, ((columns - rows).abs() <= self.window)[None, None])
        pairs = _aligned(self.pairs)
        if pairs is not None:
            mask = _both(mask, pairs if pairs.shape[-2] == 1 else pairs[:, :, start:stop])
        return mask

    def matrix(
        self, num_queries: int, num_keys: int, device: torch.device | None = None
    ) -> Bool[Tensor, "batch_or_1 heads_or_1 queries_or_1 keys"] | None:
        """The whole mask; only for small sizes and for looking."""
        return self.block(0, num_queries, num_queries, num_keys, device)

    def check(self, batch: int, heads: int, num_queries: int, num_keys: int) -> None:
        """Raises a `MaskError` that draws the mask where it does not fit (batch, heads, queries, keys)."""
        if self.keys is not None and tuple(self.keys.shape) not in {(batch, num_keys), (1, num_keys)}:
            raise MaskError(
                f"allow_padding has the shape {tuple(self.keys.shape)}, but there are {batch} examples "
                f"with {num_keys} keys each.\n{draw(self.keys)}"
            )
        pairs = _aligned(self.pairs)
        if self.pairs is not None and pairs is not None:
            wanted = (batch, heads, num_queries, num_keys)
            shape = tuple(self.pairs.shape)
            if not 2 <= len(shape) <= 4 or any(
                have not in (1, want) for have, want in zip(pairs.shape, wanted, strict=True)
            ):
                raise MaskError(
                    f"allow has the shape {shape}, which does not spread to (batch, heads, queries, keys) = {wanted}. "
                    f"Rows are queries, columns are keys.\n{draw(self.pairs)}"
                )

    def select(self, examples: Int[Tensor, "kept"]) -> Allow:
        """The same conditions for some examples of the batch."""
        keys, pairs = self.keys, self.pairs
        if keys is not None and keys.shape[0] > 1:
            keys = keys[examples]
        if pairs is not None and pairs.dim() > 2 and pairs.shape[0] > 1:
            pairs = pairs[examples]
        return replace(self, keys=keys, pairs=pairs)


AllowLike: TypeAlias = Allow | Tensor | None

_EVERYTHING = Allow()


def allow_causal() -> Allow:
    """No query sees a key that comes after it."""
    return Allow(causal=True)


def allow_padding(present: Bool[Tensor, "batch keys"]) -> Allow:
    """Only keys that are there: `allow_padding(tokens != PAD)`."""
    return as_allow(present, name="present", padding=True)


def allow_present(present: Bool[Tensor, "batch keys"]) -> Allow:
    """As `allow_padding`, and no condition where nothing is padded; only asked where looking costs no waiting."""
    at_hand = present.device.type == "cpu" and not torch.compiler.is_compiling()
    return _EVERYTHING if at_hand and bool(present.all()) else allow_padding(present)


def allow_lengths(lengths: Int[Tensor, "batch"], num_keys: int) -> Allow:
    """Only the first `lengths[b]` keys of example `b`."""
    return Allow(keys=torch.arange(num_keys, device=lengths.device) < lengths[:, None])


def allow_window(radius: int) -> Allow:
    """Only keys at most `radius` positions away."""
    if radius < 0:
        raise MaskError(f"A window cannot have the radius {radius}; 0 allows each query its own position.")
    return Allow(window=radius)


def as_allow(allow: AllowLike, *, name: str = "allow", padding: bool = False) -> Allow:
    """What a caller may write: nothing, an `Allow`, or a boolean tensor (..., queries, keys)."""
    if allow is None:
        return Allow()
    if isinstance(allow, Allow):
        return allow
    if allow.dtype != torch.bool:
        raise MaskError(
            f"{name} must be boolean with True = may attend, not {allow.dtype}. For an additive mask of 0 and -inf "
            f"pass `mask == 0`; for a mask whose True means 'hide' pass `~mask`."
        )
    return Allow(keys=allow) if padding else Allow(pairs=allow)


def draw(mask: Tensor, limit: int = 24) -> str:
    """A mask as text: a full square may be attended to, a dot may not."""
    mask = mask.flatten(0, -2)[: mask.shape[-2]] if mask.dim() > 2 else mask.reshape(-1, mask.shape[-1])
    rows = [
        "".join("■" if cell else "·" for cell in row[:limit].tolist()) + ("…" if mask.shape[1] > limit else "")
        for row in mask[:limit]
    ]
    return "\n".join(rows + (["…"] if mask.shape[0] > limit else []))


def _aligned(pairs: Tensor | None) -> Tensor | None:
    """(queries, keys) and (batch, queries, keys) with the axes of batch and heads they lack."""
    if pairs is None or pairs.dim() > 3:
        return pairs
    return pairs[:, None] if pairs.dim() == 3 else pairs[None, None]


def _both(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other
