"""`torch.nn.functional.scaled_dot_product_attention`, whoever calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.errors import RecordingError
from regard.core.masks import Allow
from regard.core.relations import DenseRelation, DotRelation, masked_softmax
from regard.recording.foreign.calls import Attention
from regard.recording.foreign.masks import Bias, read_mask


def scaled_dot_product(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> DotRelation:
    """What the call with these arguments related; the names are torch's."""
    if query.is_nested or key.is_nested:
        raise RecordingError("it attends within nested tensors, which Regard cannot take apart; pad them instead")
    if query.dim() == 3 and attn_mask is not None and attn_mask.dim() == 3:
        attn_mask = attn_mask[:, None]
    query, key = with_heads(query), with_heads(key)
    num_queries, num_keys = query.shape[2], key.shape[2]
    if attn_mask is not None and attn_mask.dim() > 4:
        attn_mask = attn_mask.expand(*query.shape[:-4], *attn_mask.shape[-4:]).flatten(0, -4)
    allow, bias = read_mask(attn_mask, num_queries, num_keys)
    if is_causal:
        allow = allow & from_the_start(num_queries, num_keys, query.device)
    return DotRelation(query, key, scale_of(query, scale), allow, bias)


def call(run: Callable[[], Any], *args: Any, **kwargs: Any) -> Attention:
    """The call with these arguments."""
    query = args[0] if args else kwargs["query"]
    value = args[2] if len(args) > 2 else kwargs["value"]
    dropout_rate = args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0)
    return Attention(
        run,
        lambda _: scaled_dot_product(*args, **kwargs),
        values=lambda: _with_axes(value),
        put=lambda context, *_: context.reshape(*query.shape[:-1], context.shape[-1]),
        context=_with_axes,
        dropout_rate=dropout_rate,
    )


def from_the_start(num_queries: int, num_keys: int, device: torch.device) -> Allow:
    """torch's causal mask: the first query sees the first key only, also where there are more keys than queries."""
    if num_queries == num_keys:
        return Allow(causal=True)
    return Allow(pairs=torch.ones(num_queries, num_keys, dtype=torch.bool, device=device).tril())


def scale_of(query: Tensor, scale: float | None) -> float:
    return query.shape[-1] ** -0.5 if scale is None else float(scale)


def with_heads(tensor: Tensor) -> Float[Tensor, "batch heads positions width"]:
    """(..., heads, positions, width) with one axis of examples; three axes are examples without heads."""
    return _with_axes(tensor.detach())


def _with_axes(tensor: Tensor) -> Tensor:
    if tensor.dim() == 3:
        return tensor[:, None]
    return tensor[None, None] if tensor.dim() == 2 else tensor.flatten(0, -4)


def capped(relation: DotRelation, softcap: float | None, sinks: Tensor | None) -> DenseRelation:
    """Weights whose scores are bent by a tanh, or that a sink takes a share of: no form of ours holds these smaller.

    A sink is one more score for each head whose weight goes nowhere, so that the others sum to less than one.
    """
    queries, keys = relation.queries.float(), relation.keys.float()
    keys = keys.repeat_interleave(queries.shape[1] // keys.shape[1], dim=1)
    scores = relation.scale * queries @ keys.transpose(-1, -2)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores + bias_matrix(relation.bias, relation.num_queries, relation.num_keys)
    allow = relation.allow.matrix(relation.num_queries, relation.num_keys, scores.device)
    if sinks is None:
        return DenseRelation(masked_softmax(scores, allow))
    sunk = sinks.detach().float().reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    if allow is not None:
        scores = scores.masked_fill(~allow, float("-inf"))
    return DenseRelation(torch.cat([scores, sunk], dim=-1).softmax(dim=-1)[..., :-1])


def bias_matrix(bias: Bias | None, num_queries: int, num_keys: int) -> Tensor | float:
    if bias is None:
        return 0.0
    return bias.float() if isinstance(bias, Tensor) else bias.block(0, num_queries, num_queries, num_keys)
