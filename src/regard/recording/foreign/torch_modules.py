"""`nn.MultiheadAttention` and `nn.TransformerEncoderLayer`: queries and keys projected once more from their inputs.

torch runs these as one operation each, on the fast path even the whole layer; no queries or keys ever leave it. They
are made again here with the layer's own weights, so the map is theirs up to rounding and their output stays theirs bit
for bit. torch leaves its fast path when it notices that somebody listens; `blind_to` keeps it from noticing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.core.errors import RecordingError
from regard.core.masks import Allow
from regard.core.relations import DotRelation, Relation
from regard.recording.foreign.calls import Attention
from regard.recording.foreign.masks import read_mask, sum_of


def multi_head(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> DotRelation:
    """What `multi_head_attention_forward` relates: (positions, batch, width), or without the batch."""
    if query.dim() == 2:
        query, key = query[:, None], key[:, None]
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    query, key = query.transpose(0, 1), key.transpose(0, 1)
    width = query.shape[-1]
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight)
    else:
        assert in_proj_weight is not None, "torch has either one weight or three"
        weights = (in_proj_weight[:width], in_proj_weight[width : 2 * width])
    biases = (None, None) if in_proj_bias is None else (in_proj_bias[:width], in_proj_bias[width : 2 * width])
    queries = _heads(query, weights[0], biases[0], num_heads)
    keys = _heads(key, weights[1], biases[1], num_heads)
    if static_k is not None:
        keys = static_k.detach().unflatten(0, (-1, num_heads))
    own_keys = keys.shape[2]
    if bias_k is not None:
        added = bias_k.detach().reshape(1, num_heads, 1, -1).expand(keys.shape[0], -1, -1, -1)
        keys = torch.cat([keys, added.to(keys.dtype)], dim=2)
    if add_zero_attn:
        keys = F.pad(keys, (0, 0, 0, 1))
    # What torch adds to the keys itself, no mask hides.
    extra = keys.shape[2] - own_keys
    if attn_mask is not None and attn_mask.dim() == 3:
        attn_mask = attn_mask.unflatten(0, (-1, num_heads))
    if key_padding_mask is not None:
        key_padding_mask = key_padding_mask[:, None, None]
    allow, bias = Allow(), None
    for mask in (attn_mask, key_padding_mask):
        read = read_mask(_with_extra(_true_means_seen(mask), extra), queries.shape[2], keys.shape[2])
        allow, bias = allow & read[0], sum_of(bias, read[1], queries.shape[2], keys.shape[2])
    return DotRelation(queries, keys, queries.shape[-1] ** -0.5, allow, bias)


def native_multi_head(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> DotRelation:
    """The fast path of one attention: its mask is of keys (type 1) or of pairs (0 and 2), True where hidden."""
    query, present = _padded(query)
    queries = _heads(query, qkv_weight[:embed_dim], qkv_bias[:embed_dim], num_head)
    key = query if key.is_nested else key
    keys = _heads(key, qkv_weight[embed_dim : 2 * embed_dim], qkv_bias[embed_dim : 2 * embed_dim], num_head)
    if mask is not None and mask_type == 1:
        mask = mask[:, None, None]
    allow, bias = read_mask(_true_means_seen(mask), queries.shape[2], keys.shape[2])
    if present is not None:
        allow = allow & Allow(keys=present)
    return DotRelation(queries, keys, queries.shape[-1] ** -0.5, allow, bias)


def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    *rest: Any,
) -> DotRelation:
    """The fast path of a whole encoder layer."""
    mask, mask_type = rest[6], rest[7]
    inside = F.layer_norm(src, (embed_dim,), norm_weight_1, norm_bias_1, eps) if norm_first else src
    given = (inside, inside, inside, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias)
    return native_multi_head(*given, mask=mask, mask_type=mask_type)


def multi_head_call(run: Callable[[], Any], *args: Any, **kwargs: Any) -> Attention:
    """A call of `multi_head_attention_forward`; its values are projected here only where somebody asks for them."""
    given = _ARGUMENTS.bind(*args, **kwargs)
    given.apply_defaults()
    options = given.arguments

    def put(context: Tensor, relation: Relation, returned: Any) -> Any:
        joined = context.transpose(1, 2).flatten(2).transpose(0, 1)
        output = F.linear(joined, options["out_proj_weight"], options["out_proj_bias"])
        weights = relation.weights().to(output.dtype) if options["need_weights"] else None
        if weights is not None and options["average_attn_weights"]:
            weights = weights.mean(dim=1)
        if options["query"].dim() == 2:
            output, weights = output[:, 0], None if weights is None else weights[0]
        return output, weights

    return Attention(
        run,
        lambda _: multi_head(*args, **kwargs),
        values=lambda: _values(**options),
        put=put,
        dropout_rate=options["dropout_p"] if options["training"] else 0.0,
        values_at_hand=False,
    )


_ARGUMENTS = inspect.signature(multi_head)


def _values(
    value: Tensor,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    use_separate_proj_weight: bool,
    v_proj_weight: Tensor | None,
    static_v: Tensor | None,
    embed_dim_to_check: int,
    **_: Any,
) -> Tensor:
    value = (value[:, None] if value.dim() == 2 else value).transpose(0, 1)
    width = embed_dim_to_check
    weight = v_proj_weight if use_separate_proj_weight or in_proj_weight is None else in_proj_weight[2 * width :]
    assert weight is not None, "torch has either one weight or three"
    bias = None if in_proj_bias is None else in_proj_bias[2 * width :]
    values = F.linear(value, weight, bias).unflatten(-1, (num_heads, -1)).transpose(1, 2)
    if static_v is not None:
        values = static_v.unflatten(0, (-1, num_heads))
    if bias_v is not None:
        values = torch.cat([values, bias_v.reshape(1, num_heads, 1, -1).expand(len(values), -1, -1, -1)], dim=2)
    return F.pad(values, (0, 0, 0, 1)) if add_zero_attn else values


def _as_one(read: Callable[..., DotRelation], inside: str = "") -> Callable[..., Attention]:
    """A call that cannot be given another context."""

    def call(run: Callable[[], Any], *args: Any, **kwargs: Any) -> Attention:
        return Attention(run, lambda _: read(*args, **kwargs), inside=inside)

    return call


def _heads(inputs: Tensor, weight: Tensor | None, bias: Tensor | None, num_heads: int) -> Tensor:
    if weight is None:
        raise RecordingError("it has no weights to make its queries and keys with")
    return F.linear(inputs, weight, bias).detach().unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _padded(tensor: Tensor) -> tuple[Tensor, Tensor | None]:
    """Examples of unequal length one under another, as long as the longest, and which of their positions are there."""
    if not tensor.is_nested:
        return tensor, None
    lengths = torch.tensor([len(example) for example in tensor.unbind()], device=tensor.device)
    padded = tensor.to_padded_tensor(0.0)
    return padded, torch.arange(padded.shape[1], device=tensor.device) < lengths[:, None]


def _true_means_seen(mask: Tensor | None) -> Tensor | None:
    return ~mask if mask is not None and mask.dtype == torch.bool else mask


def _with_extra(mask: Tensor | None, extra: int) -> Tensor | None:
    if mask is None or extra == 0:
        return mask
    return F.pad(mask, (0, extra), value=True if mask.dtype == torch.bool else 0.0)


def blind_to(kind: type[TorchFunctionMode], unless: Callable[[], bool]) -> Callable[[Any], Any]:
    """Of torch's question whether anybody interferes: the answer as if listeners of this kind were not there.

    `unless` says when they do interfere after all.
    """

    def replacement(asked: Callable[[Iterable[Any]], bool]) -> Callable[[Iterable[Any]], bool]:
        def answer(relevant: Iterable[Any]) -> bool:
            if unless():
                return asked(relevant)
            modes = _taken_off()
            try:
                for mode in modes:
                    if not isinstance(mode, kind):
                        torch._C._push_on_torch_function_stack(mode)
                return asked(relevant)
            finally:
                _taken_off()
                for mode in modes:
                    torch._C._push_on_torch_function_stack(mode)

        return answer

    return replacement


def _taken_off() -> list[Any]:
    """All modes of this thread's stack, which is empty then; outermost first."""
    count = torch._C._len_torch_function_stack()
    return [torch._C._pop_torch_function_stack() for _ in range(count)][::-1]


CALLS: dict[Callable[..., Any], Callable[..., Attention]] = {
    F.multi_head_attention_forward: multi_head_call,
    torch._native_multi_head_attention: _as_one(native_multi_head),
    torch._transformer_encoder_layer_fwd: _as_one(encoder_layer, inside="self_attn"),
}
