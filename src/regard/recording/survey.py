"""All statistics of a relation in one pass over its rows, and vectors pulled through it in the same pass.

A tile is a block of rows of one head (of all heads where maps are small). It is made, asked everything and forgotten
while it is in the processor's cache, so that a survey costs about as much as the attention itself, and no memory but a
few tiles. The entropy of a softmax needs no logarithm of its weights:

    -sum_k a_k ln a_k = logsumexp(s) - sum_k a_k s_k,   logsumexp(s) = max s - ln max a
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core import relations
from regard.core.relations import DotRelation, Relation, spread
from regard.recording.distances import Distances

LOWEST = torch.finfo(torch.float32).min


@dataclass(frozen=True, eq=False)
class Survey:
    """What one pass over a relation's rows says; padded queries count in nothing that sums over queries."""

    entropy: Float[Tensor, "*examples heads queries"]
    """How spread each query's weights are, in nats."""
    largest: Float[Tensor, "*examples heads queries"]
    """The largest weight of each query."""
    received: Float[Tensor, "*examples heads keys"]
    """How much each key gets from all queries together."""
    distance: Float[Tensor, "*examples heads queries"] | None = None
    """How far each query looks on average, in the unit of the axes; NaN where it looks at nothing that has a place."""
    pulled: Float[Tensor, "*examples heads vectors keys"] | None = None
    """The vectors over queries that were handed in, times the map."""

    def of_first(self, queries: int, keys: int) -> Survey:
        """That of the first example, cut to so many queries and keys."""
        return Survey(
            self.entropy[0, :, :queries],
            self.largest[0, :, :queries],
            self.received[0, :, :keys],
            None if self.distance is None else self.distance[0, :, :queries],
            None if self.pulled is None else self.pulled[0, :, :, :keys],
        )


@dataclass(frozen=True, eq=False)
class _Tile:
    examples: slice
    heads: slice
    start: int
    stop: int
    weights: Float[Tensor, "examples heads rows keys"]
    entropy: Float[Tensor, "examples heads rows"]
    largest: Float[Tensor, "examples heads rows"]
    scratch: Float[Tensor, "examples heads rows keys"]
    """Room of the size of the weights that may be written over."""


def survey(
    relation: Relation,
    num_queries: Sequence[int] | None = None,
    distances: Distances | None = None,
    vectors: Float[Tensor, "examples #heads vectors queries"] | None = None,
) -> Survey:
    """One pass; only the first `num_queries[b]` queries of example b count as attention received."""
    examples, heads, queries, keys = relation.shape
    entropy, largest, distance = (torch.zeros(examples, heads, queries) for _ in range(3))
    counting = _counting(relation, num_queries)
    shared = counting if vectors is None else torch.cat([counting, vectors.float().expand(-1, heads, -1, -1)], dim=2)
    pulled = torch.zeros(examples, heads, shared.shape[2], keys)
    for tile in _tiles(relation):
        place = (tile.examples, tile.heads, slice(tile.start, tile.stop))
        entropy[place] = tile.entropy.cpu()
        largest[place] = tile.largest.cpu()
        mine = shared[tile.examples, tile.heads, :, tile.start : tile.stop].to(tile.weights.device)
        pulled[tile.examples, tile.heads] += (mine @ tile.weights).cpu()
        if distances is not None:
            measured = distances(tile.examples, tile.start, tile.stop)
            distance[place] = _mean_distance(tile, *measured).cpu()
    return Survey(
        entropy,
        largest,
        pulled[:, :, 0],
        None if distances is None else distance,
        None if vectors is None else pulled[:, :, 1:],
    )


def _mean_distance(
    tile: _Tile,
    away: Float[Tensor, "examples 1 rows keys"],
    known: Float[Tensor, "examples 1 rows keys"] | None,
) -> Float[Tensor, "examples heads rows"]:
    """The mean of the distances under the weights; keys without a place are left out, the others share the whole."""
    whole = tile.weights.sum(dim=-1) if known is None else _dot(tile.weights, known, tile.scratch)
    return _dot(tile.weights, away, tile.scratch) / whole.masked_fill(whole <= 0, torch.nan)


def _dot(one: Tensor, other: Tensor, scratch: Tensor) -> Tensor:
    """The sum of products along the last axis, without fresh memory for the products."""
    return torch.mul(one, other.to(one), out=scratch).sum(dim=-1)


def _counting(relation: Relation, num_queries: Sequence[int] | None) -> Float[Tensor, "examples heads 1 queries"]:
    """One for each query that is there, zero for padding."""
    counting = torch.ones(relation.batch, relation.heads, 1, relation.num_queries)
    if num_queries is not None:
        counting *= (torch.arange(relation.num_queries) < torch.tensor(num_queries)[:, None])[:, None, None]
    return counting


def _tiles(relation: Relation) -> Iterator[_Tile]:
    """Every head of a block of rows before the next block, so that distances can be kept for all heads."""
    whole = relation.batch * relation.heads * relation.num_queries * relation.num_keys
    if whole <= relations._BLOCK_WEIGHTS:
        parts: list[tuple[slice, list[tuple[slice, Relation]]]] = [(slice(None), [(slice(None), relation)])]
    else:
        parts = [
            (slice(example, example + 1), relation.select(torch.tensor([example])).by_head())
            for example in range(relation.batch)
        ]
    for examples, by_head in parts:
        size = max(1, relations._BLOCK_WEIGHTS // max(1, by_head[0][1].heads * relation.num_keys))
        room = _Room(by_head[0][1], size)
        makers = [(heads, _maker(part, room)) for heads, part in by_head]
        for start in range(0, relation.num_queries, size):
            stop = min(start + size, relation.num_queries)
            for heads, make in makers:
                yield _Tile(examples, heads, start, stop, *make(start, stop))


class _Room:
    """Two tiles that all heads write into: fresh memory for each would take longer than the arithmetic."""

    def __init__(self, part: Relation, size: int) -> None:
        self.size = size
        self.shape = (2, part.batch, part.heads, size, part.num_keys)
        self._tiles: Tensor | None = None

    def of(self, like: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """For scores and weights of so many rows."""
        if rows != self.size:
            scores, weights = like.new_empty(*self.shape[:3], rows, self.shape[4])
            return scores, weights
        if self._tiles is None:
            self._tiles = like.new_empty(self.shape)
        return self._tiles[0], self._tiles[1]


def _maker(part: Relation, room: _Room) -> Callable[[int, int], tuple[Tensor, Tensor, Tensor, Tensor]]:
    """What makes the weights of some rows, their entropy, the largest of them, and room to work in."""
    if not isinstance(part, DotRelation) or part.num_keys == 0:
        return lambda start, stop: _with_entropy(part.rows(start, stop))
    keys = spread(part.keys.float(), part.heads).transpose(-1, -2).contiguous()
    queries = part.queries.float() * part.scale

    def make(start: int, stop: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        scores, weights = room.of(queries, stop - start)
        torch.matmul(queries[:, :, start:stop], keys, out=scores)
        part.bias_scores(scores, start, stop)
        allow = part.allow.block(start, stop, part.num_queries, part.num_keys, scores.device)
        if allow is not None:
            scores.masked_fill_(~allow, LOWEST)
        torch.softmax(scores, dim=-1, out=weights)
        if allow is not None:
            weights.masked_fill_(~allow, 0.0)
            scores.masked_fill_(~allow, 0.0)
            none = ~allow.any(dim=-1)
            highest = scores.masked_fill(~allow, LOWEST).amax(dim=-1).masked_fill(none, 0.0)
            entropy, largest = _entropy(scores, weights, highest)
            return weights, entropy.masked_fill(none, 0.0), largest, scores
        return weights, *_entropy(scores, weights, scores.amax(dim=-1)), scores

    return make


def _entropy(scores: Tensor, weights: Tensor, highest: Tensor) -> tuple[Tensor, Tensor]:
    """The entropy, never below zero whatever was rounded, and the largest weight; writes over the scores."""
    largest = weights.amax(dim=-1)
    logsumexp = highest - largest.clamp(min=torch.finfo(weights.dtype).tiny).log()
    return (logsumexp - _dot(weights, scores, scores)).clamp(min=0.0), largest


def _with_entropy(weights: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    empty = weights.shape[-1] == 0
    largest = weights.new_zeros(weights.shape[:-1]) if empty else weights.amax(dim=-1)
    return weights, torch.special.entr(weights).sum(dim=-1), largest, torch.empty_like(weights)
