"""The attention functions of `transformers`: every layer asks its registry for one and calls it with queries and keys.

Heard there, keys are not yet repeated for groups of heads, rotary embeddings have been applied, and position biases
stand by themselves. What arguments mean differs by function (sdpa makes its own causal mask, eager does not), and a
model may have its own. So a few rows of what was read are multiplied with the values and compared with what came out.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.errors import RecordingError
from regard.core.masks import Allow
from regard.core.relations import DenseRelation, DotRelation, Relation
from regard.recording.foreign.calls import Attention
from regard.recording.foreign.masks import read_mask, smallest_bias, sum_of
from regard.recording.foreign.scaled_dot import capped, scale_of

# How far a recorded row may lead away from what came out, as a part of the largest value: by the rounding of the dtype.
_FLOAT32, _SHORTER = 1e-4, 0.1


def registry() -> Any | None:
    """The class whose `get_interface` hands out attention functions; None where `transformers` is not loaded."""
    modeling = sys.modules.get("transformers.modeling_utils")
    return getattr(modeling, "AttentionInterface", None)


def met_by(mode: Callable[[], Any]) -> Callable[[Any], Any]:
    """`get_interface`, whose functions are met where all attention of the current thread is."""

    def replacement(get_interface: Callable[..., Callable[..., Any]]) -> Callable[..., Callable[..., Any]]:
        @functools.wraps(get_interface)
        def get(self: Any, name: Any, default: Any, *rest: Any, **more: Any) -> Callable[..., Any]:
            function = get_interface(self, name, default, *rest, **more)
            return function if mode() is None else _met(function, name, mode)

        return get

    return replacement


def _met(function: Callable[..., Any], name: str | None, mode: Callable[[], Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, *args: Any, **kwargs: Any
    ) -> Any:
        def run() -> Any:
            return function(module, query, key, value, attention_mask, *args, **kwargs)

        meeting = mode()
        if meeting is None or meeting.closed:
            return run()

        def read(result: Any) -> Relation:
            detached = query.detach(), key.detach(), value.detach()
            return related(name, module, *detached, attention_mask, kwargs, result)

        def put(context: Tensor, relation: Relation, returned: Any) -> Any:
            return context.transpose(1, 2).contiguous(), None if returned[1] is None else relation.weights()

        rate = kwargs.get("dropout") or 0.0
        return meeting.meet(
            Attention(
                run,
                read,
                values=lambda: value[:, :, : key.shape[2]],
                put=put,
                context=lambda returned: returned[0].transpose(1, 2),
                dropout_rate=rate,
            )
        )

    return call


@torch.no_grad()
def related(
    name: str | None,
    module: nn.Module,
    query: Float[Tensor, "batch heads queries width"],
    key: Float[Tensor, "batch groups keys width"],
    value: Float[Tensor, "batch groups keys value_width"],
    mask: Any,
    options: dict[str, Any],
    result: Any,
) -> Relation:
    """What the call related, checked by a few rows of its result; an error where no reading explains them."""
    if name is not None and "flash" in name:
        raise RecordingError(f"{name} does not say what it attends to; `model.set_attn_implementation('sdpa')` does")
    context, weights = result
    reading: Relation = _reading(name, module, query, key, mask, options)
    if options.get("dropout") or _explains(reading, value, context):
        return reading
    shape = (*query.shape[:3], value.shape[2])
    if isinstance(weights, Tensor) and tuple(weights.shape) == shape:
        given = DenseRelation(weights.detach())
        if _explains(given, value, context):
            return given
    raise RecordingError(
        f"what its function {name or 'eager'!r} returned does not follow from its queries, keys and mask, so it "
        f"attends in a way that Regard cannot read (options: {', '.join(options) or 'none'})"
    )


def _reading(
    name: str | None, module: nn.Module, query: Tensor, key: Tensor, mask: Any, options: dict[str, Any]
) -> Relation:
    num_queries, num_keys = query.shape[2], key.shape[2]
    causal = Allow()
    if name == "sdpa" and mask is None and num_queries > 1:
        wanted = options.get("is_causal")
        if wanted if wanted is not None else getattr(module, "is_causal", True):
            # Keys beyond the queries are an empty part of a cache.
            key, num_keys = key[:, :, :num_queries], min(num_keys, num_queries)
            causal = Allow(causal=True)
    if mask is not None and not isinstance(mask, Tensor):
        mask = _pairs(mask, query.shape[0], query.shape[1], num_queries, num_keys, query.device)
    if mask is not None:
        mask = mask[..., :num_keys]
    allow, bias = read_mask(mask, num_queries, num_keys)
    positions = options.get("position_bias")
    if positions is not None:
        positions = positions[..., :num_keys]
        own = smallest_bias(positions, num_queries) if positions.any() else None
        bias = sum_of(bias, own, num_queries, num_keys)
    relation = DotRelation(query, key, scale_of(query, options.get("scaling")), allow & causal, bias)
    softcap, sinks = options.get("softcap"), options.get("s_aux")
    return relation if softcap is None and sinks is None else capped(relation, softcap, sinks)


def _pairs(mask: Any, batch: int, heads: int, num_queries: int, num_keys: int, device: torch.device) -> Tensor:
    """A block mask of flex attention, written out."""
    from torch.nn.attention.flex_attention import BlockMask, create_mask

    if not isinstance(mask, BlockMask):
        raise RecordingError(f"its mask is a {type(mask).__name__}, which Regard cannot read")
    examples = mask.kv_num_blocks.shape[0]
    return create_mask(mask.mask_mod, examples, 1, num_queries, num_keys, device=str(device))


def _explains(relation: Relation, value: Tensor, context: Float[Tensor, "batch queries heads value_width"]) -> bool:
    """Whether some rows of the map, times the values, are what the layer went on with."""
    values = value[:, :, : relation.num_keys].float()
    values = values.repeat_interleave(relation.heads // values.shape[1], dim=1)
    limit = (_FLOAT32 if context.dtype == torch.float32 else _SHORTER) * float(values.abs().max().clamp(min=1e-6))
    last = relation.num_queries - 1
    return all(
        bool(((relation.rows(row, row + 1) @ values)[:, :, 0] - context[:, row]).abs().max() <= limit)
        for row in sorted({0, last // 2, last})
    )
