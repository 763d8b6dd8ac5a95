"""Exact statistics of a softmax of dot products from the fused kernel itself: no block of weights is ever made.

The kernel gives each query's logsumexp besides its context. With the keys as values the context is the expected key:

    entropy           = logsumexp - scale q . E[k]
    squared distance  = |x_q|^2 - 2 x_q . E[x_k] + E[|x_k|^2]        places x as values

The logarithm of a weight is itself a dot product, ln a = scale (q . k - logsumexp / scale), so the columns of the map
are the rows of a second softmax, with queries and keys exchanged:

    received by key k = exp(logsumexp'_k),      (r A)_k = received_k * E'[r]       the vector r as values

`survey` answers more in one pass over tiles, which on a CPU costs about as much as one of these calls; these are for
maps of which one thing is asked, and for processors whose kernel is much faster than its parts.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.core.errors import RecordingError
from regard.core.relations import DotRelation, Relation, spread

ROWS = 1024
"""Queries that are handed to the kernel together where a mask has to be written out."""

Heads = Float[Tensor, "batch heads _ _"]


def fits(relation: Relation) -> bool:
    """Whether the kernel can answer: scores without a bias."""
    return isinstance(relation, DotRelation) and relation.bias is None


def fused_entropy(relation: DotRelation) -> Float[Tensor, "batch heads queries"]:
    """How spread each query's weights are, in nats."""
    queries, keys = _whole(relation)
    expected, logsumexp = _kernel(relation, queries, keys, keys)
    entropy = logsumexp - relation.scale * torch.linalg.vecdot(queries, expected)
    return entropy.clamp(min=0.0).masked_fill(~logsumexp.isfinite(), 0.0)


def fused_squared_distance(
    relation: DotRelation, queries_at: Float[Tensor, "queries dims"], keys_at: Float[Tensor, "keys dims"]
) -> Float[Tensor, "batch heads queries"]:
    """The mean of the squared distance to the keys, whose places every example and head shares; NaN for no key."""
    queries, keys = _whole(relation)
    middle = keys_at.mean(dim=0)  # the same distances, with smaller numbers to cancel
    here, there = queries_at - middle, keys_at - middle
    features = torch.cat([there, there.square().sum(dim=-1, keepdim=True)], dim=-1)
    expected, logsumexp = _kernel(relation, queries, keys, features.expand(*keys.shape[:2], -1, -1))
    crossing = (expected[..., :-1] * here).sum(dim=-1)
    squared = here.square().sum(dim=-1) - 2 * crossing + expected[..., -1]
    return squared.clamp(min=0.0).masked_fill(~logsumexp.isfinite(), torch.nan)


def fused_pull(
    relation: DotRelation, vectors: Float[Tensor, "batch #heads vectors queries"]
) -> tuple[Float[Tensor, "batch heads keys"], Float[Tensor, "batch heads vectors keys"]]:
    """What each key receives from all queries, and vectors over the queries times the map."""
    queries, keys = _whole(relation)
    _, logsumexp = _kernel(relation, queries, keys, keys)
    lost = ~logsumexp.isfinite()
    # One more number makes the scores logarithms of weights; a query without any key is far below all others.
    offset = (-logsumexp / relation.scale).masked_fill(lost, -1e30 / abs(relation.scale))
    widened = torch.cat([queries, offset[..., None]], dim=-1)
    constant = torch.cat([keys, torch.ones_like(keys[..., :1])], dim=-1)
    values = vectors.expand(-1, relation.heads, -1, -1).transpose(-1, -2)
    means, received = _kernel(relation, constant, widened, values, exchanged=True)
    received = received.exp().nan_to_num(0.0)
    return received, (means * received[..., None]).nan_to_num(0.0).transpose(-1, -2)


def _whole(relation: DotRelation) -> tuple[Heads, Heads]:
    if not fits(relation):
        raise RecordingError("The fused kernel has no statistics of scores with a bias; take a survey.")
    return relation.queries.float(), spread(relation.keys.float(), relation.heads)


def _kernel(
    relation: DotRelation, queries: Heads, keys: Heads, values: Heads, exchanged: bool = False
) -> tuple[Heads, Float[Tensor, "batch heads _"]]:
    """Context and logsumexp, which is -inf for a row that may look at nothing; the mask is the relation's."""
    width = max(queries.shape[-1], values.shape[-1])
    asked, seen, shown = (F.pad(part, (0, width - part.shape[-1])).contiguous() for part in (queries, keys, values))
    plain = relation.allow.everything
    step = len_rows = asked.shape[2]
    step = len_rows if plain else min(ROWS, len_rows)
    parts = []
    for start in range(0, len_rows, max(1, step)):
        stop = min(start + step, len_rows)
        allow = None if plain else _mask(relation, start, stop, exchanged)
        parts.append(_call(asked[:, :, start:stop], seen, shown, relation.scale, allow))
    context = torch.cat([part[0] for part in parts], dim=2)[..., : values.shape[-1]]
    return context, torch.cat([part[1] for part in parts], dim=2)


def _call(queries: Tensor, keys: Tensor, values: Tensor, scale: float, allow: Tensor | None) -> tuple[Tensor, Tensor]:
    added, none = None, None
    if allow is not None:
        none = ~allow.any(dim=-1)
        added = torch.zeros(allow.shape).masked_fill(~allow, torch.finfo(torch.float32).min)
    if queries.device.type == "cpu":
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        context, logsumexp = kernel(queries, keys, values, 0.0, False, attn_mask=added, scale=scale)
    else:
        scores = scale * queries @ keys.transpose(-1, -2)
        scores = scores if added is None else scores + added.to(scores.device)
        context, logsumexp = scores.softmax(dim=-1) @ values, scores.logsumexp(dim=-1)
    if none is not None:
        none = none.to(context.device)
        context = context.masked_fill(none[..., None], 0.0)
        logsumexp = logsumexp.masked_fill(none, -torch.inf)
    return context, logsumexp


def _mask(relation: DotRelation, start: int, stop: int, exchanged: bool) -> Tensor:
    """Who may look at whom, for a block of the rows: queries, or keys where the two are exchanged."""
    whole = (relation.num_queries, relation.num_keys, relation.queries.device)
    if not exchanged:
        mask = relation.allow.block(start, stop, *whole)
        assert mask is not None
        return mask.expand(*mask.shape[:2], stop - start, relation.num_keys)
    blocks = []
    for first in range(0, relation.num_queries, ROWS):
        last = min(first + ROWS, relation.num_queries)
        mask = relation.allow.block(first, last, *whole)
        assert mask is not None
        spread_out = mask.expand(*mask.shape[:2], last - first, relation.num_keys)
        blocks.append(spread_out[..., start:stop].transpose(-1, -2))
    return torch.cat(blocks, dim=-1)
