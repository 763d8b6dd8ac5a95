"""Attention within a window around each position of a feature map, at a cost of positions x window (decks A and C).

    weights_ij = softmax over the window of (q_ij . k_ab + bias),   context_ij = sum over the window of weights v_ab

The k x k neighbours of a position are never gathered: that would be k^2 times the feature map. Instead the map is
shifted by each of the k^2 offsets and multiplied as a whole, with sums that run along; so scores and context need what
the weights need, positions x k^2 numbers a head. With a stride, only every stride-th row and column has a query.

Positions outside the map are not attended to: their weight is exactly zero and the others sum to one.

Two ways were measured on one CPU core, forwards and backwards, against this one: blocks of 4 x 4 and 8 x 8 queries with
their halo of keys as dense products. They took 0.8 to 1.3 times (4 x 4) and 1.0 to 2.6 times (8 x 8) as long at 7 x 7
windows on maps of 14 x 14 to 56 x 56, with two to four times the memory; the way that has no waste was kept.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.core.context import context_of
from regard.core.relations import SparseRelation, masked_softmax
from regard.core.tap import Tap

Queries = Float[Tensor, "batch heads width rows columns"]
Keys = Float[Tensor, "batch heads width height columns_of_keys"]
Values = Float[Tensor, "batch heads value_width height columns_of_keys"]
Scores = Float[Tensor, "batch heads places rows columns"]
Context = Float[Tensor, "batch heads value_width rows columns"]


def attend_locally(
    queries: Queries,
    keys: Keys,
    values: Values,
    *,
    window: int,
    stride: int = 1,
    bias: Float[Tensor, "#batch heads places #rows #columns"],
    tap: Tap | None = None,
) -> Context:
    """The context of every query from the window x window keys around it; `bias` is added to their scores.

    Half precision is raised to float32 inside: on a CPU nothing is gained by less, and sums of 49 lose digits.
    """
    height, width = keys.shape[-2:]
    neighbours = local_neighbours(height, width, window, stride).to(keys.device)
    inside = (neighbours >= 0).T.reshape(window**2, *queries.shape[-2:])
    scores = local_scores(_full(queries), _full(keys), window, stride) + _full(bias)
    weights = masked_softmax(scores.movedim(2, -1), inside.movedim(0, -1)).movedim(-1, 2)
    flat = values.flatten(3).transpose(2, 3)
    if tap is not None and tap.edited:
        of_queries = context_of(tap.change(_relation(weights, neighbours, height * width)), flat)
        context = of_queries.transpose(2, 3).unflatten(3, queries.shape[-2:])
    else:
        context = local_context(weights, _full(values), window, stride).to(values.dtype)
    if tap is not None and tap.open:
        of_queries = context.flatten(3).transpose(2, 3)
        tap.emit(lambda: _relation(weights.detach(), neighbours, height * width), flat, of_queries)
        return of_queries.transpose(2, 3).unflatten(3, queries.shape[-2:])
    return context


def local_scores(queries: Queries, keys: Keys, window: int, stride: int = 1) -> Scores:
    """q . k for each query and the keys around it; zero for keys outside the map."""
    scores: Tensor = _LocalScores.apply(queries, _padded(keys, window), window, stride)
    return scores


def local_context(weights: Scores, values: Values, window: int, stride: int = 1) -> Context:
    """The sum of the values around each query, weighted."""
    context: Tensor = _LocalContext.apply(weights, _padded(values, window), window, stride)
    return context


def local_neighbours(height: int, width: int, window: int, stride: int = 1) -> Int[Tensor, "positions places"]:
    """Which keys each query sees, row by row, as indices into the flattened map; -1 is outside."""
    places = F.pad(torch.arange(height * width).view(height, width), _margins(window), value=-1)
    rows, columns = (torch.arange(0, size, stride) for size in (height, width))
    offsets = torch.arange(window)
    seen = places[(rows[:, None] + offsets)[:, None, :, None], (columns[:, None] + offsets)[None, :, None, :]]
    return seen.reshape(len(rows) * len(columns), window**2)


class _LocalScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, padded: Tensor, window: int, stride: int) -> Tensor:
        ctx.save_for_backward(queries, padded)
        ctx.window, ctx.stride = window, stride
        batch, heads, _, rows, columns = queries.shape
        scores = queries.new_empty(batch, heads, window**2, rows, columns)
        for place in range(window**2):
            scores[:, :, place] = (queries * _shifted(padded, place, window, stride, rows, columns)).sum(dim=2)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        queries, padded = ctx.saved_tensors
        rows, columns = queries.shape[-2:]
        of_queries, of_padded = torch.zeros_like(queries), torch.zeros_like(padded)
        for place in range(ctx.window**2):
            of_place = gradient[:, :, place, None]
            of_queries.addcmul_(of_place, _shifted(padded, place, ctx.window, ctx.stride, rows, columns))
            _shifted(of_padded, place, ctx.window, ctx.stride, rows, columns).addcmul_(of_place, queries)
        return of_queries, of_padded, None, None


class _LocalContext(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, padded: Tensor, window: int, stride: int) -> Tensor:
        ctx.save_for_backward(weights, padded)
        ctx.window, ctx.stride = window, stride
        batch, heads, _, rows, columns = weights.shape
        context = padded.new_zeros(batch, heads, padded.shape[2], rows, columns)
        for place in range(window**2):
            context.addcmul_(weights[:, :, place, None], _shifted(padded, place, window, stride, rows, columns))
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        weights, padded = ctx.saved_tensors
        rows, columns = weights.shape[-2:]
        of_weights, of_padded = torch.empty_like(weights), torch.zeros_like(padded)
        for place in range(ctx.window**2):
            values = _shifted(padded, place, ctx.window, ctx.stride, rows, columns)
            of_weights[:, :, place] = (gradient * values).sum(dim=2)
            _shifted(of_padded, place, ctx.window, ctx.stride, rows, columns).addcmul_(
                weights[:, :, place, None], gradient
            )
        return of_weights, of_padded, None, None


def _shifted(padded: Tensor, place: int, window: int, stride: int, rows: int, columns: int) -> Tensor:
    """A view of what stands at one place of every query's window."""
    down, right = divmod(place, window)
    return padded[..., down : down + stride * rows : stride, right : right + stride * columns : stride]


def _padded(tensor: Tensor, window: int) -> Tensor:
    return F.pad(tensor, _margins(window))


def _margins(window: int) -> tuple[int, int, int, int]:
    """Left, right, top, bottom: an even window has its extra row and column before the query."""
    before, after = window // 2, (window - 1) // 2
    return before, after, before, after


def _full(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def _relation(weights: Tensor, neighbours: Tensor, num_keys: int) -> SparseRelation:
    values = weights.flatten(3).transpose(2, 3)
    return SparseRelation(neighbours.expand(*values.shape[:2], -1, -1), values, num_keys)
