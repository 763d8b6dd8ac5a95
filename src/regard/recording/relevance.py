"""Relevance of inputs for one output (Chefer, Gur and Wolf 2021): attention weighted by gradients, through all layers.

    A~ = mean over heads of (dy/dA * A)+
    self-attention    R_ss <- R_ss + A~ R_ss      R_sq <- R_sq + A~ R_sq
    cross attention   R_sq <- R_sq + N(R_ss)^T A~ N(R_qq)
    N(R) = rows of R - I made to sum to one, + I

s is the stream that looks, q the one that is looked at; at the start R_ss = I and R_sq = 0. After patch merging a
stream begins as M of the finer one, and what stands for I in N is M.

A row of R is asked for, not R: rows go backwards through the layers and columns (for the transposed factor and for the
row sums in N) forwards, so that no matrix of tokens by tokens is made. The rule for cross attention is the paper's for
an encoder and a decoder; a stream that is looked at and itself looks at a third one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.axes import Axis
from regard.core.errors import RecordingError
from regard.core.products import pull, spread_values
from regard.core.relations import Relation
from regard.recording.composing import Attends, Begins, Streams, one_hot, streams
from regard.recording.gradients import gradient_weighted
from regard.recording.recording import Recording
from regard.recording.rollout import Composed

Vectors = Float[Tensor, "vectors _"]


@dataclass(frozen=True, eq=False)
class Relevance:
    """What one call said and what it looked at: `recording` has the maps, `weighted` those times their gradients."""

    recording: Recording
    weighted: Recording

    def label(self, **axes: Sequence[Axis]) -> Relevance:
        """Says what the positions are, as `Recording.label` does."""
        self.recording.label(**axes)
        self.weighted.label(**axes)
        return self

    def onto(
        self,
        onto: str | None = None,
        *,
        example: int = 0,
        rows: int | slice | None = None,
        start: str | None = None,
        taps: str = "*",
    ) -> Composed:
        """How much each input position matters for positions of the stream `start` (the last one).

        Take the row that the output was read off: the class token, the target position whose word was asked for; the
        mean of all rows where a model pools its patches.
        """
        found = streams(self.weighted.maps, example, taps)
        start = found.checked(start or found.last, tuple(found.sizes), "start")
        onto = found.onto(onto, start)
        vectors = one_hot(found.rows(rows, start), found.sizes[start])
        weights = relevance_rows(found, vectors, start)[onto][:, : found.length(onto)]
        return Composed(
            weights[0] if isinstance(rows, int) else weights, start, onto, found.axes.get(start), found.axes.get(onto)
        )


def relevance(model: nn.Module, call: Callable[[], Any], target: Callable[[Any], Float[Tensor, ""]]) -> Relevance:
    """Runs `call` once and takes the gradient of `target` of what it gives, one number.

        found = relevance(model, lambda: model(images), lambda output: output.logits[0, 3])
        found.label(patches=[grid]).onto(rows=0).weights

    Examples of a batch are taken apart afterwards: `target` may add up a number for each.
    """
    plain, weighted, roles = gradient_weighted(model, call, target)
    return Relevance(Recording(plain, roles), Recording(weighted, dict(roles)))


def relevance_rows(found: Streams, vectors: Vectors, start: str) -> Mapping[str, Vectors]:
    """Rows of R of the stream `start`, onto each input."""
    state = {role: torch.zeros(len(vectors), size) for role, size in found.sizes.items()}
    landed = {role: torch.zeros_like(state[role]) for role in found.inputs}
    state[start] = vectors
    for place in range(len(found.steps) - 1, -1, -1):
        step = found.steps[place]
        if isinstance(step, Begins):
            state[step.parent] = state[step.parent] + step.resampling.pull(state.pop(step.role))
        elif not state[step.queries].any():
            continue
        elif step.queries == step.keys:
            state[step.queries] = state[step.queries] + _pulled(step.relation, state[step.queries])
        else:
            own, other = (_Chain(role, found.steps[:place], found.sizes) for role in (step.queries, step.keys))
            looked = own.normalised_columns(state[step.queries].T).T
            landed[other.origin] += other.normalised_rows(_pulled(step.relation, looked))
    return {role: state[role] + landed[role] for role in found.inputs}


class _Chain:
    """What has happened to one stream by itself, its R_ss: self-attention and resampling."""

    def __init__(self, role: str, steps: Sequence[Attends | Begins], sizes: Mapping[str, int]) -> None:
        self.role = role
        self.steps = steps
        self.sizes = sizes

    def _own(self) -> list[Attends | Begins]:
        """The steps that lead to the stream, first to last, across resampling."""
        role, own = self.role, list[Attends | Begins]()
        for step in reversed(self.steps):
            if isinstance(step, Begins) and step.role == role:
                own.append(step)
                role = step.parent
            elif isinstance(step, Attends) and step.queries == step.keys == role:
                own.append(step)
        return own[::-1]

    @property
    def origin(self) -> str:
        """The input that the stream began as."""
        return next((step.parent for step in self._own() if isinstance(step, Begins)), self.role)

    def columns(self, vectors: Float[Tensor, "origin width"], attending: bool = True) -> Float[Tensor, "now width"]:
        """R vectors; without attention, what the resampling alone would make of them."""
        for step in self._own():
            if isinstance(step, Begins):
                vectors = step.resampling.push(vectors)
            elif attending:
                vectors = vectors + _spread(step.relation, vectors)
        return vectors

    def rows(self, vectors: Vectors, attending: bool = True) -> Vectors:
        """vectors R."""
        for step in reversed(self._own()):
            if isinstance(step, Begins):
                vectors = step.resampling.pull(vectors)
            elif attending:
                vectors = vectors + _pulled(step.relation, vectors)
        return vectors

    def _sums(self) -> Float[Tensor, "now"]:
        """Row sums of R - M, by which N divides; one where a row is nothing."""
        ones = torch.ones(self.sizes[self.origin], 1)
        sums = (self.columns(ones) - self.columns(ones, attending=False))[:, 0]
        return torch.where(sums > 0, sums, 1.0)

    def normalised_rows(self, vectors: Vectors) -> Vectors:
        """vectors N(R), onto the input that the stream began as."""
        for step in self.steps:
            if isinstance(step, Attends) and step.queries == self.role != step.keys:
                raise RecordingError(
                    f"{self.role!r} is looked at and itself looks at {step.keys!r} ({step.address}): the rules of "
                    f"relevance are for an encoder that is looked at by a decoder. Leave maps out with `taps=`."
                )
        scaled = vectors / self._sums()
        taken = self.rows(scaled) - self.rows(scaled, attending=False)
        return taken + self.rows(vectors, attending=False)

    def normalised_columns(self, vectors: Float[Tensor, "now width"]) -> Float[Tensor, "now width"]:
        """N(R) vectors, for a stream that was never resampled."""
        if self.origin != self.role:
            raise RecordingError(f"{self.role!r} is resampled and then looks at another stream: there is no such rule.")
        return (self.columns(vectors) - vectors) / self._sums()[:, None] + vectors


def _pulled(relation: Relation, vectors: Vectors) -> Vectors:
    return pull(relation, vectors[None, None]).mean(dim=1)[0]


def _spread(relation: Relation, columns: Float[Tensor, "keys width"]) -> Float[Tensor, "queries width"]:
    return spread_values(relation, columns[None, None]).mean(dim=1)[0]
