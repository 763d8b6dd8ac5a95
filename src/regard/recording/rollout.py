"""Attention rollout (Abnar and Zuidema 2020): how much each position of the last layer comes from each input.

    A' = normalised (1 - residual) F(A) + residual I,   rollout = A'_L ... A'_2 A'_1

F takes the mean, the largest or the smallest of the heads; rows of A' sum to one, and a query that looks at nothing
stays what it is. Cross attention takes its share from the other stream, pooling from the finer grid, so that rows over
all inputs together sum to one (but for what went to places that are nowhere, such as a window's padding).

No matrix is built. A row is a vector that goes from the last layer to the first, r <- r A', a block of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.axes import Axis
from regard.core.errors import RecordingError
from regard.core.products import pull, row_sums
from regard.core.relations import Relation
from regard.recording.composing import Attends, Begins, Streams, one_hot, streams
from regard.recording.recorded_map import RecordedMap
from regard.recording.survey import Survey

Heads = Literal["mean", "max", "min"]
Vectors = Float[Tensor, "vectors _"]
Through = Callable[[Attends, Vectors], tuple[Vectors, Vectors]]
"""From a map and vectors over its queries to what stays with the queries and what goes to the keys."""

CHUNK = 1 << 24
"""Numbers in the vectors that go through the model together, over all heads."""


@dataclass(frozen=True, eq=False)
class Composed:
    """What a whole model takes from where: for each chosen position of one stream, a number for each input position."""

    weights: Float[Tensor, "*rows positions"]
    queries: str
    keys: str
    query_axis: Axis | None
    key_axis: Axis | None

    def labelled(self) -> list[str]:
        """A label for each input position."""
        positions = self.weights.shape[-1]
        return self.key_axis.labels() if self.key_axis is not None else [str(place) for place in range(positions)]


def rollout(
    maps: Mapping[str, RecordedMap],
    *,
    example: int = 0,
    rows: int | slice | None = None,
    start: str | None = None,
    onto: str | None = None,
    heads: Heads = "mean",
    residual: float = 0.5,
    taps: str = "*",
) -> Composed:
    """Rows of the rollout, of the stream `start` (the last one) onto the input `onto` (the one it reads from)."""
    found = streams(maps, example, taps)
    return compose(found, attention_step(heads, residual), rows, start, onto)


def overview(
    maps: Mapping[str, RecordedMap], *, row: int, example: int = 0, onto: str | None = None, residual: float = 0.5
) -> tuple[dict[str, Survey], Composed]:
    """All statistics of all maps and one row of the rollout (mean of heads), in one pass over each map.

    Maps are gone through from the last to the first: the row goes along with the pass that has to be made anyway.
    """
    found = streams(maps, example)
    surveys: dict[str, Survey] = {}

    def through(step: Attends, vectors: Vectors) -> tuple[Vectors, Vectors]:
        sums = row_sums(step.relation).mean(dim=1)[0].cpu()
        scaled = vectors / normaliser(sums, residual)
        one = maps[step.address].example(example)
        seen = one.survey(vectors=scaled[None, None])
        assert seen.pulled is not None
        surveys[step.address] = seen.of_first(*one.lengths)
        return residual * scaled, (1 - residual) * seen.pulled.mean(dim=1)[0]

    composed = compose(found, through, row, None, onto)
    for address in maps:
        if address not in surveys:
            surveys[address] = maps[address].survey(example)
    return {address: surveys[address] for address in maps}, composed


def compose(
    found: Streams, through: Through, rows: int | slice | None, start: str | None, onto: str | None
) -> Composed:
    """Vectors for the chosen rows, sent back through all steps, some at a time."""
    start = found.checked(start or found.last, tuple(found.sizes), "start")
    onto = found.onto(onto, start)
    chosen = found.rows(rows, start)
    most_heads = max(step.relation.heads for step in found.steps if isinstance(step, Attends))
    size = max(1, CHUNK // (most_heads * max(found.sizes.values())))
    parts = []
    for first in range(0, len(chosen), size):
        vectors = one_hot(chosen[first : first + size], found.sizes[start])
        parts.append(sent_back(found, {start: vectors}, through)[onto][:, : found.length(onto)])
    weights = torch.cat(parts) if parts else torch.zeros(0, found.length(onto))
    return Composed(
        weights[0] if isinstance(rows, int) else weights, start, onto, found.axes.get(start), found.axes.get(onto)
    )


def sent_back(found: Streams, vectors: Mapping[str, Vectors], through: Through) -> dict[str, Vectors]:
    """Vectors over the streams at the end as vectors over the inputs."""
    count = len(next(iter(vectors.values())))
    state = {role: torch.zeros(count, size) for role, size in found.sizes.items()} | dict(vectors)
    for step in reversed(found.steps):
        if isinstance(step, Begins):
            state[step.parent] = state[step.parent] + step.resampling.pull(state.pop(step.role))
        elif state[step.queries].any():
            kept, moved = through(step, state[step.queries])
            state[step.queries] = kept
            state[step.keys] = state[step.keys] + moved
    return state


def attention_step(heads: Heads, residual: float) -> Through:
    """One layer of a rollout."""
    if not 0 <= residual <= 1:
        raise RecordingError(f"`residual` is the share of the residual path, from 0 to 1, not {residual}.")
    if heads not in ("mean", "max", "min"):
        raise RecordingError(f"`heads` are put together by 'mean', 'max' or 'min', not by {heads!r}.")

    def through(step: Attends, vectors: Vectors) -> tuple[Vectors, Vectors]:
        if heads == "mean":
            sums = row_sums(step.relation).mean(dim=1)[0].cpu()
            scaled = vectors / normaliser(sums, residual)
            moved = pull(step.relation, scaled[None, None].to(_device(step.relation))).mean(dim=1)[0].cpu()
            return residual * scaled, (1 - residual) * moved
        return _extreme(step.relation, vectors, heads, residual)

    return through


def normaliser(sums: Float[Tensor, "queries"], residual: float) -> Float[Tensor, "queries"]:
    """What a row of (1 - residual) F + residual I sums to; one where that is nothing."""
    normal = (1 - residual) * sums + residual
    return torch.where(normal > 0, normal, 1.0)


def _extreme(relation: Relation, vectors: Vectors, heads: Heads, residual: float) -> tuple[Vectors, Vectors]:
    kept, moved = torch.zeros_like(vectors), torch.zeros(len(vectors), relation.num_keys)
    for start, weights in relation.blocks():
        block = slice(start, start + weights.shape[2])
        fused = (weights.amax(dim=1) if heads == "max" else weights.amin(dim=1))[0].cpu()
        scaled = vectors[:, block] / normaliser(fused.sum(dim=-1), residual)
        kept[:, block] = residual * scaled
        moved += (1 - residual) * scaled @ fused
    return kept, moved


def _device(relation: Relation) -> torch.device:
    return next(iter(relation.tensors().values())).device
