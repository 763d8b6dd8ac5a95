"""Attention of some rows: all weights of the queries `start` to `stop`, and what becomes of them.

    W = softmax(scale Q K^T + bias),  C = W V,  and from the gradient G of C, with D = sum(G C) for each row:
    dV = W^T G,  dS = W (G V^T - D),  dQ = scale dS K,  dK = scale dS^T Q

`BlockedAttention` does both directions a block of rows at a time and makes the weights of a block again on the way
back, so that memory stays linear in the length.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.core.bias import OffsetBias
from regard.core.masks import Allow

Bias = OffsetBias | Float[Tensor, "#batch #heads queries keys"]


def bias_rows(
    bias: Bias, start: int, stop: int, num_queries: int, num_keys: int
) -> Float[Tensor, "#batch #heads rows keys"]:
    """A bias for some of the queries."""
    if isinstance(bias, OffsetBias):
        return bias.block(start, stop, num_queries, num_keys)[None]
    return bias[:, :, start:stop]


def keys_seen(allow: Allow, stop: int, num_queries: int, num_keys: int) -> int:
    """Keys behind the last query of a causal block are not looked at."""
    return max(1, min(num_keys, stop + num_keys - num_queries)) if allow.causal else num_keys


def weights_of_rows(
    queries: Float[Tensor, "batch heads rows width"],
    keys: Float[Tensor, "batch heads seen width"],
    allow: Allow,
    bias: Bias | None,
    start: int,
    num_queries: int,
    num_keys: int,
) -> tuple[Float[Tensor, "batch heads rows seen"], Tensor | None]:
    """The weights from queries that are scaled already, and which rows have nothing to attend to, if any may."""
    stop, seen = start + queries.shape[2], keys.shape[2]
    scores = _scores(queries, keys)
    if bias is not None:
        scores += bias_rows(bias, start, stop, num_queries, num_keys)[..., :seen].to(scores.dtype)
    if allow.only_causal and num_queries <= num_keys:
        # Every row has a key, so that -inf can be added: without a backward pass, and only where something is hidden.
        first = start + num_keys - num_queries
        hidden = scores.new_full((stop - start, seen - first), -torch.inf).triu_(1)
        part = scores if first == 0 else scores[..., first:]
        part += hidden
        return scores.softmax(dim=-1), None
    mask = allow.block(start, stop, num_queries, num_keys, queries.device)
    if mask is None:
        return scores.softmax(dim=-1), None
    mask = mask[..., :seen]
    weights = scores.masked_fill_(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
    sure = allow.leaves_all_something(num_queries, num_keys)
    return weights, None if sure else ~mask.any(dim=-1, keepdim=True)


def product(one: Tensor, other: Tensor) -> Tensor:
    """`one @ other` with less to decide than `matmul` has."""
    return torch.bmm(one.flatten(0, 1), other.flatten(0, 1)).view(*one.shape[:3], other.shape[3])


def _scores(queries: Tensor, keys: Tensor) -> Tensor:
    if queries.shape[2] == 1 and queries.dtype == torch.bfloat16 and not keys.is_contiguous():
        # One query and the filled part of a cache: turned round, because transposing would copy that part.
        return product(keys, queries.transpose(2, 3)).transpose(2, 3)
    return product(queries, keys.transpose(2, 3))


class BlockedAttention(torch.autograd.Function):
    """`size` rows at a time, without dropout; a bias is taken as it is and gets no gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        allow: Allow,
        bias: Bias | None,
        scale: float,
        size: int,
    ) -> Tensor:
        num_queries, num_keys = queries.shape[2], keys.shape[2]
        context = queries.new_empty(*queries.shape[:3], values.shape[3])
        for start in range(0, num_queries, size):
            stop = min(start + size, num_queries)
            seen = keys_seen(allow, stop, num_queries, num_keys)
            scaled = queries[:, :, start:stop] * scale
            weights, nobody = weights_of_rows(scaled, keys[:, :, :seen], allow, bias, start, num_queries, num_keys)
            block = product(weights, values[:, :, :seen])
            context[:, :, start:stop] = block if nobody is None else block.masked_fill_(nobody, 0.0)
        ctx.save_for_backward(queries, keys, values, context)
        ctx.rest = allow, bias, scale, size
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, context = ctx.saved_tensors
        allow, bias, scale, size = ctx.rest
        num_queries, num_keys = queries.shape[2], keys.shape[2]
        wide = torch.promote_types(queries.dtype, torch.float32)
        of_queries = torch.empty_like(queries, memory_format=torch.contiguous_format)
        of_keys = torch.zeros(keys.shape, dtype=wide, device=keys.device)
        of_values = torch.zeros(values.shape, dtype=wide, device=values.device)
        for start in range(0, num_queries, size):
            stop = min(start + size, num_queries)
            seen = keys_seen(allow, stop, num_queries, num_keys)
            scaled, coming = queries[:, :, start:stop] * scale, gradient[:, :, start:stop]
            weights, nobody = weights_of_rows(scaled, keys[:, :, :seen], allow, bias, start, num_queries, num_keys)
            if nobody is not None:
                coming = coming.masked_fill(nobody, 0.0)
            of_values[:, :, :seen] += product(weights.transpose(2, 3), coming)
            expected = (coming.to(wide) * context[:, :, start:stop]).sum(dim=-1, keepdim=True).to(coming.dtype)
            of_scores = product(coming, values[:, :, :seen].transpose(2, 3)).sub_(expected).mul_(weights)
            of_queries[:, :, start:stop] = product(of_scores, keys[:, :, :seen]).mul_(scale)
            of_keys[:, :, :seen] += product(of_scores.transpose(2, 3), scaled)
        return of_queries, of_keys.to(keys.dtype), of_values.to(values.dtype), None, None, None, None
