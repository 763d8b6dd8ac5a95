"""Attention weighted by the gradient of what a model said, without a matrix of either.

For one head, context = A V, so dL/dA = dL/dcontext V^T: what has to be kept of a layer is the relation, its values and
the gradient of its context, all of the order of the tokens. A block of rows of (dL/dA * A)+ is made when it is asked
for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.errors import RecordingError
from regard.core.grouped import GroupedRelation
from regard.core.relations import Relation, spread
from regard.core.tap import Tap, listening
from regard.core.tap import taps as taps_of
from regard.recording.changed import ChangedRelation
from regard.recording.foreign import reaching_foreign, taps_by_address


@dataclass(frozen=True, eq=False)
class GradientWeighted(ChangedRelation):
    """(A * gradient values^T)+ of a relation A, where `gradient` is that of its context."""

    gradient: Float[Tensor, "batch heads queries width"]
    head_values: Float[Tensor, "batch heads keys width"]

    @property
    def separable(self) -> bool:  # type: ignore[override]
        return self.inner.separable

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows keys"]:
        by_weight = self.gradient[:, :, start:stop].float() @ self.head_values.float().transpose(-1, -2)
        return (by_weight * self.inner.rows(start, stop)).clamp(min=0.0)

    def select(self, examples: Int[Tensor, "kept"]) -> GradientWeighted:
        gradient, values = self.gradient[examples], self.head_values[examples]
        return GradientWeighted(self.inner.select(examples), gradient, values)

    def select_heads(self, heads: Int[Tensor, "kept"]) -> GradientWeighted:
        gradient, values = self.gradient[:, heads], self.head_values[:, heads]
        return GradientWeighted(self.inner.select_heads(heads), gradient, values)

    def joined(self, later: Sequence[Relation]) -> GradientWeighted:
        raise RecordingError("Relations with gradients are those of one call and are not joined step by step.")

    @property
    def nbytes(self) -> int:
        return self.inner.nbytes + self.gradient.nbytes + self.head_values.nbytes


@dataclass(frozen=True, eq=False)
class _Heard:
    relation: Relation
    values: Tensor
    context: Tensor


class _Witness:
    """Keeps what the gradients will be taken of."""

    def __init__(self, addresses: dict[Tap, str]) -> None:
        self.addresses = addresses
        self.heard: dict[str, _Heard] = {}

    def hear(self, tap: Tap, relation: Relation) -> None:
        self.witness(tap, relation, None, None)

    def witness(self, tap: Tap, relation: Relation, values: Tensor | None, context: Tensor | None) -> None:
        address = self.addresses.get(tap)
        if address is None:
            return
        if address in self.heard:
            raise RecordingError(f"{address} was called twice; relevance is that of one call of the model.")
        if values is None or context is None:
            raise RecordingError(f"The mechanism at {address} does not hand its context over, so it has no relevance.")
        if not context.requires_grad:
            context.requires_grad_()  # of a model whose parameters are frozen; what comes after it then has a graph
        self.heard[address] = _Heard(relation, values.detach(), context)


def gradient_weighted(
    model: nn.Module, call: Callable[[], Any], target: Callable[[Any], Float[Tensor, ""]]
) -> tuple[dict[str, Relation], dict[str, Relation], dict[str, tuple[str, str]]]:
    """The relations of one call, those weighted by the gradient of `target(call())`, and the roles they relate."""
    if model.training:
        raise RecordingError(
            "Relevance is taken of a model in `eval()`: with dropout the context is not that of the map."
        )
    own, foreign = taps_of(model), taps_by_address(model)
    known = {**own, **foreign}
    if not known:
        raise RecordingError(f"{type(model).__name__} has no taps and no attention that Regard knows, so no relevance.")
    witness = _Witness({tap: address for address, tap in known.items()})
    with torch.inference_mode(False), torch.enable_grad(), listening(witness), ExitStack() as stack:
        if foreign:
            stack.enter_context(reaching_foreign(model))
        said = target(call())
    if said.numel() != 1 or not said.requires_grad:
        raise RecordingError(
            f"`target` has to give one number that depends on the model, such as a logit; it gave {tuple(said.shape)}"
            f"{'' if said.requires_grad else ' without a gradient'}."
        )
    silent = [address for address in known if address not in witness.heard]
    if silent:
        raise RecordingError(f"These taps of {type(model).__name__} stayed silent: {', '.join(silent)}.")
    ordered = {address: witness.heard[address] for address in known}
    contexts = [heard.context for heard in ordered.values()]
    gradients = torch.autograd.grad(said, contexts, torch.ones_like(said), allow_unused=True)
    relations = {address: heard.relation for address, heard in ordered.items()}
    weighted = {
        address: _weighted(heard.relation, heard.values, torch.zeros_like(heard.context) if found is None else found)
        for (address, heard), found in zip(ordered.items(), gradients, strict=True)
    }
    return relations, weighted, {address: (known[address].queries, known[address].keys) for address in ordered}


def _weighted(relation: Relation, values: Tensor, gradient: Tensor) -> Relation:
    if isinstance(relation, GroupedRelation):
        return replace(relation, inner=_weighted(relation.inner, values, gradient))
    return GradientWeighted(relation, gradient.detach(), spread(values, relation.heads))
