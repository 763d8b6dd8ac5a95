"""How softmax(scale * Q K^T + bias) V is run: the one place that chooses.

| path | what it does | chosen for |
| --- | --- | --- |
| `fused` | torch's own kernel | CUDA; float32 on a CPU |
| `plain` | product, softmax, product | on a CPU: bfloat16 up to `PLAIN_LIMIT` weights a head, dropout, few queries |
| `blocked` | the same, for a block of queries at a time | bfloat16 on a CPU beyond that: fewer bytes through memory |

All three give the same numbers within the rounding of the dtype, and zeros for a query without any allowed key.
What is recorded is made from the arguments, after the context, so that recording cannot change the path.

An edit changes the relation first. If a softmax of dot products is left (heads made uniform, exchanged or silenced), it
takes the same paths; any other relation gives its weights for a block of queries at a time. Heads that are silenced
cost no mask: their context is zeroed behind the kernel, and the other heads keep their bits.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from regard.attention.rows import Bias, BlockedAttention, bias_rows, keys_seen, product, weights_of_rows
from regard.core.bias import OffsetBias
from regard.core.context import context_of, for_heads
from regard.core.dropout import dropout
from regard.core.masks import Allow, AllowLike, as_allow
from regard.core.relations import DotRelation, Relation
from regard.core.tap import Tap

# Measured on AVX-512 with bfloat16: from about 512 x 512 on, blocks win over the whole matrix.
PLAIN_LIMIT = 512 * 512
BLOCK_ROWS = 256
# In float32 a decoder's step, few queries and as many keys as a sentence has, is quicker in plain products.
FEW_QUERIES, FEW_KEYS = 8, 256

Queries = Float[Tensor, "batch heads queries width"]
Keys = Float[Tensor, "batch groups keys width"]
Values = Float[Tensor, "batch groups keys value_width"]
Context = Float[Tensor, "batch heads queries value_width"]


def attend(
    queries: Queries,
    keys: Keys,
    values: Values,
    *,
    allow: AllowLike = None,
    bias: Bias | None = None,
    scale: float | None = None,
    dropout_rate: float = 0.0,
    tap: Tap | None = None,
    path: str | None = None,
) -> Context:
    """The context of every query; heads may share keys and values in groups. `path` overrides the choice."""
    allow = as_allow(allow)
    allow.check(queries.shape[0], queries.shape[1], queries.shape[2], keys.shape[2])
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    if tap is not None and tap.edited:
        context = attend_to(tap.change(DotRelation(queries, keys, scale, allow, bias)), values, dropout_rate, path)
    else:
        context = _attend(queries, keys, values, allow, bias, scale, dropout_rate, path)
    if tap is not None and tap.open:
        tap.emit(lambda: DotRelation(queries.detach(), keys.detach(), scale, allow, _detached(bias)), values, context)
    return context


def attend_to(relation: Relation, values: Values, dropout_rate: float = 0.0, path: str | None = None) -> Context:
    """The context that a relation, edited or not, makes of the values."""
    if not isinstance(relation, DotRelation):
        return context_of(relation, values, dropout_rate)
    heads, allow = relation.allow.of_heads, relation.allow
    if heads is not None:
        allow = replace(allow, pairs=None)
    context = _attend(relation.queries, relation.keys, values, allow, relation.bias, relation.scale, dropout_rate, path)
    return context if heads is None else context.masked_fill(~heads, 0.0)


def _attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    allow: Allow,
    bias: Bias | None,
    scale: float,
    dropout_rate: float,
    path: str | None,
) -> Tensor:
    path = path or choose(queries, keys, values, dropout_rate)
    allow = allow.simplified(queries.shape[2])
    keys, values = (for_heads(shared, queries.shape[1]) for shared in (keys, values))
    return PATHS[path](queries, keys, values, allow, bias, scale, dropout_rate)


def choose(queries: Tensor, keys: Tensor, values: Tensor, dropout_rate: float) -> str:
    """The path for these arguments, by device, dtype, size and dropout."""
    if queries.device.type != "cpu":
        return "fused"
    if dropout_rate > 0 or keys.shape[2] == 0:
        return "plain"
    if queries.dtype != torch.bfloat16:
        return "plain" if queries.shape[2] <= FEW_QUERIES and keys.shape[2] <= FEW_KEYS else "fused"
    return "plain" if queries.shape[2] * keys.shape[2] <= PLAIN_LIMIT else "blocked"


def _plain(
    queries: Tensor, keys: Tensor, values: Tensor, allow: Allow, bias: Bias | None, scale: float, dropout_rate: float
) -> Tensor:
    num_queries = queries.shape[2]
    return _rows(queries, keys, values, allow, bias, scale, dropout_rate, 0, num_queries, num_queries)


def _blocked(
    queries: Tensor, keys: Tensor, values: Tensor, allow: Allow, bias: Bias | None, scale: float, dropout_rate: float
) -> Tensor:
    num_queries = queries.shape[2]
    of_bias = bias.values if isinstance(bias, OffsetBias) else bias
    learned = torch.is_grad_enabled() and of_bias is not None and of_bias.requires_grad
    if not learned and dropout_rate == 0 and not torch.compiler.is_compiling():
        return BlockedAttention.apply(queries, keys, values, allow, bias, scale, BLOCK_ROWS)
    training = learned or (torch.is_grad_enabled() and any(part.requires_grad for part in (queries, keys, values)))
    blocks = []
    for start in range(0, num_queries, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, num_queries)
        block = (queries[:, :, start:stop], keys, values, allow, bias, scale, dropout_rate, start, stop, num_queries)
        # A block's weights are made again in the backward pass: memory stays linear in the length.
        blocks.append(checkpoint(_rows, *block, use_reentrant=False) if training else _rows(*block))
    return torch.cat(blocks, dim=2)


def _rows(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    allow: Allow,
    bias: Bias | None,
    scale: float,
    dropout_rate: float,
    start: int,
    stop: int,
    num_queries: int,
) -> Tensor:
    """The context of queries `start` to `stop` out of `num_queries`, with all their weights at once."""
    num_keys = keys.shape[2]
    seen = keys_seen(allow, stop, num_queries, num_keys)
    if seen < num_keys:
        keys, values = keys[:, :, :seen], values[:, :, :seen]
    weights, nobody = weights_of_rows(queries * scale, keys, allow, bias, start, num_queries, num_keys)
    context = product(dropout(weights, dropout_rate, True), values)
    return context if nobody is None else context.masked_fill(nobody, 0.0)


def _fused(
    queries: Tensor, keys: Tensor, values: Tensor, allow: Allow, bias: Bias | None, scale: float, dropout_rate: float
) -> Tensor:
    num_queries, num_keys = queries.shape[2], keys.shape[2]
    if allow.everything and bias is None:
        return F.scaled_dot_product_attention(queries, keys, values, scale=scale, dropout_p=dropout_rate)
    if allow.only_causal and bias is None and num_queries == num_keys:
        return F.scaled_dot_product_attention(
            queries, keys, values, scale=scale, is_causal=True, dropout_p=dropout_rate
        )
    mask = allow.block(0, num_queries, num_queries, num_keys, queries.device)
    if mask is None:
        none_allowed = None
    else:
        # The kernel is not asked what a row without keys gives: such a row looks everywhere, then becomes zero.
        none_allowed = ~mask.any(dim=-1, keepdim=True)
        mask = mask | none_allowed
    if bias is not None:
        added = bias_rows(bias, 0, num_queries, num_queries, num_keys).to(queries.dtype)
        mask = added if mask is None else added.masked_fill(~mask, torch.finfo(queries.dtype).min)
    context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=scale, dropout_p=dropout_rate)
    return context if none_allowed is None else context.masked_fill(none_allowed, 0.0)


PATHS = {"plain": _plain, "fused": _fused, "blocked": _blocked}


def _detached(bias: Bias | None) -> Bias | None:
    if isinstance(bias, OffsetBias):
        return OffsetBias(bias.values.detach())
    return None if bias is None else bias.detach()
