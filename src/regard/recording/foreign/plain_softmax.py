"""Attention written out by hand: a softmax over the keys, then a product of the weights with the values.

The weights exist there anyway and are kept as they are (`DenseRelation`), before dropout. What happens in between may
be dropout, another dtype or shape, or a slice that leaves out a sink; after anything else the layer counts as unheard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.relations import DenseRelation
from regard.recording.foreign.calls import Attention

_Function = Callable[..., Any]

SOFTMAX: frozenset[_Function] = frozenset({F.softmax, torch.softmax, Tensor.softmax, torch.special.softmax})
_SAME_WEIGHTS: frozenset[_Function] = frozenset(
    {
        F.dropout,
        torch.dropout,
        Tensor.to,
        Tensor.type,
        Tensor.type_as,
        Tensor.float,
        Tensor.half,
        Tensor.bfloat16,
        Tensor.contiguous,
        Tensor.clone,
    }
)
_NEW_SHAPE: frozenset[_Function] = frozenset(
    {
        Tensor.view,
        Tensor.reshape,
        Tensor.flatten,
        Tensor.unflatten,
        Tensor.squeeze,
        Tensor.unsqueeze,
        Tensor.__getitem__,
    }
)
PRODUCTS: frozenset[_Function] = frozenset({torch.matmul, Tensor.matmul, torch.bmm, Tensor.bmm, torch.einsum})
FOLLOWED = SOFTMAX | _SAME_WEIGHTS | _NEW_SHAPE

# Weights that are being followed at once: a layer may make a second softmax before it uses the first.
_KEPT = 4


class Weights:
    """Follows the results of softmax until one of them is multiplied with something."""

    def __init__(self) -> None:
        self._followed: dict[int, tuple[Tensor, Tensor]] = {}

    def follow(self, function: _Function, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Takes note of a softmax over keys, or of what became of its result."""
        if function in SOFTMAX:
            if _over_keys(args, kwargs):
                self._add(result, result.detach())
            return
        before = self._of(args)
        if before is not None:
            keep = function in _SAME_WEIGHTS or (function is not Tensor.__getitem__ and before.dim() == 4)
            self._add(result, before if keep else result.detach())

    def multiplied(self, function: _Function, args: tuple[Any, ...]) -> Tensor | None:
        """The weights that a product is about to multiply with values, if it is."""
        if function is torch.einsum:
            return self._of(args[1:]) if _sums_over_keys(args[0]) else None
        return self._of(args)

    def _of(self, args: tuple[Any, ...]) -> Tensor | None:
        followed = self._followed.get(id(_first(args)))
        return None if followed is None else followed[1]

    def forget(self) -> None:
        self._followed.clear()

    def _add(self, tensor: Tensor, weights: Tensor) -> None:
        """Holding the tensor keeps its id from being given to another."""
        self._followed[id(tensor)] = (tensor, weights)
        while len(self._followed) > _KEPT:
            del self._followed[next(iter(self._followed))]


def multiplied(
    function: _Function, args: tuple[Any, ...], kwargs: dict[str, Any], weights: Tensor, module: nn.Module | None
) -> Attention:
    """The product of weights and values as a call of attention."""
    relation = plain(weights, module)
    place = 1 if function is torch.einsum else 0

    def reweigh(changed: Tensor) -> Any:
        factor = args[place]
        other = changed.to(factor.dtype).reshape(factor.shape)
        return function(*args[:place], other, *args[place + 1 :], **kwargs)

    def run() -> Any:
        return function(*args, **kwargs)

    values = None if place or len(args) < 2 else args[1]
    if values is None or values.shape[:-2] != args[0].shape[:-2] or function is torch.einsum:
        return Attention(run, lambda _: relation, reweigh=reweigh)
    return Attention(
        run,
        lambda _: relation,
        values=lambda: values.reshape(relation.batch, relation.heads, *values.shape[-2:]),
        put=lambda context, _, returned: context.reshape(returned.shape),
        context=lambda returned: returned.reshape(relation.batch, relation.heads, *returned.shape[-2:]),
    )


def plain(weights: Tensor, module: nn.Module | None) -> DenseRelation:
    """(..., heads, queries, keys); where examples and heads share an axis, the layer says how many heads it has."""
    if weights.dim() == 3:
        heads = next((count for count in _head_counts(module) if weights.shape[0] % count == 0), 1)
        weights = weights.unflatten(0, (-1, heads))
    elif weights.dim() == 2:
        weights = weights[None, None]
    else:
        weights = weights.flatten(0, -4)
    return DenseRelation(weights)


def _head_counts(module: nn.Module | None) -> Iterable[int]:
    for name in ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads"):
        count = getattr(module, name, None)
        if isinstance(count, int) and count > 0:
            yield count


def _over_keys(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    scores = _first(args) if args else kwargs.get("input")
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    return isinstance(scores, Tensor) and scores.dim() >= 2 and dim in (-1, scores.dim() - 1)


def _sums_over_keys(equation: Any) -> bool:
    """Whether an einsum sums over the last letter of its first factor."""
    if not isinstance(equation, str):
        return False
    inputs, _, output = equation.replace(" ", "").partition("->")
    return bool(output) and inputs.split(",")[0][-1] not in output


def _first(args: Iterable[Any]) -> Tensor | None:
    first = next(iter(args), None)
    if isinstance(first, list | tuple):
        first = next(iter(first), None)
    return first if isinstance(first, Tensor) else None
