"""The calls of one layer that belong together: a decoder that goes step by step with a cache of keys.

A step's keys have to be those of the step before and then its own. Only so is a row that was computed earlier still
right beside the keys at the end; a beam search that has moved its hypotheses, or a cache that has forgotten its first
keys, is an error, not a wrong picture.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.errors import RecordingError
from regard.core.grouped import GroupedRelation
from regard.core.relations import DenseRelation, DotRelation, Relation
from regard.recording.foreign.masks import smallest_allow, smallest_bias
from regard.recording.foreign.scaled_dot import bias_matrix


class Steps:
    """The relations of one layer, one a step; of all but the last the keys are let go."""

    def __init__(self, first: Relation) -> None:
        first = _plain(first)
        self.last = first
        self._queries = [first.queries] if isinstance(first, DotRelation) else []
        self._dense = [first.dense] if isinstance(first, DenseRelation) else []
        self._allowed: list[Tensor] = []
        self._biases: list[Tensor] = []

    def add(self, relation: Relation) -> None:
        """The next step, which has to continue the one before."""
        before, relation = self.last, _plain(relation)
        if type(relation) is not type(before) or not isinstance(relation, DotRelation | DenseRelation):
            raise RecordingError(f"it was called again, and relations of the form {relation.form} are not joined")
        if (relation.batch, relation.heads) != (before.batch, before.heads) or relation.num_keys < before.num_keys:
            raise RecordingError(
                f"it was called with {before.batch} examples and {before.num_keys} keys, then with {relation.batch} "
                f"examples and {relation.num_keys} keys: these are not steps over one batch; record one call at a time"
            )
        if 1 < relation.num_keys == relation.num_queries:
            raise RecordingError(
                "it was called twice with whole sequences; record one call of the model at a time, and `generate` with "
                "`use_cache=True`"
            )
        if isinstance(relation, DotRelation):
            self._check_keys(before, relation)  # type: ignore[arg-type]
            self._queries.append(relation.queries)
        else:
            self._dense.append(relation.dense)
        if not self._allowed and isinstance(before, DotRelation):
            self._keep_conditions(before)
        if isinstance(relation, DotRelation):
            self._keep_conditions(relation)
        self.last = relation

    def joined(self) -> Relation:
        """All steps as one relation."""
        last = self.last
        if isinstance(last, DenseRelation):
            steps = [_wide(step, last.num_keys, 0.0) for step in self._dense]
            return DenseRelation(torch.cat(steps, dim=2), value_norms=last.value_norms)
        if not isinstance(last, DotRelation) or len(self._queries) == 1:
            return last
        queries = torch.cat(self._queries, dim=2)
        allowed = _stacked([_wide(step, last.num_keys, False) for step in self._allowed])
        biases = _stacked([_wide(step, last.num_keys, 0.0) for step in self._biases])
        bias = smallest_bias(biases, queries.shape[2]) if biases.any() else None
        allow = smallest_allow(allowed, queries.shape[2])
        return DotRelation(queries, last.keys, last.scale, allow, bias, value_norms=last.value_norms)

    def _keep_conditions(self, step: DotRelation) -> None:
        rows, keys = step.num_queries, step.num_keys
        allowed = step.allow.matrix(rows, keys, step.queries.device)
        if allowed is None:
            allowed = torch.ones(1, 1, rows, keys, dtype=torch.bool, device=step.queries.device)
        bias = bias_matrix(step.bias, rows, keys)
        if not isinstance(bias, Tensor):
            bias = step.queries.new_zeros(1, 1, rows, keys, dtype=torch.float32)
        self._allowed.append(allowed.expand(-1, -1, rows, keys))
        self._biases.append(bias[(None,) * (4 - bias.dim())].expand(-1, -1, rows, keys))

    @staticmethod
    def _check_keys(before: DotRelation, relation: DotRelation) -> None:
        same = relation.keys[:, :, : before.num_keys] == before.keys
        allowed = before.allow.matrix(before.num_queries, before.num_keys, before.keys.device)
        if allowed is not None:
            # What nobody was allowed to see may have been anything, such as the empty end of a cache of fixed size.
            seen = allowed.any(dim=2).any(dim=1)[:, None, :, None]
            same = same | ~seen
        if not same.all() or before.scale != relation.scale:
            raise RecordingError(
                "the keys that one step saw are not those of the next: a beam search has moved its hypotheses, a cache "
                "has let keys go, or these are calls over different inputs. Record one call at a time; to see a text "
                "that a beam search has found, record a call of the model over the finished text"
            )


def _plain(relation: Relation) -> Relation:
    """A form that steps are joined in; what an edit has made is the weights that it has."""
    if isinstance(relation, DotRelation | DenseRelation | GroupedRelation):
        return relation
    return DenseRelation(relation.weights(), value_norms=relation.value_norms)


def _wide(step: Tensor, num_keys: int, value: float | bool) -> Tensor:
    return F.pad(step, (0, num_keys - step.shape[-1]), value=value)


def _stacked(steps: list[Tensor]) -> Tensor:
    """One under another, each spread over as many examples and heads as any of them has."""
    batch, heads = max(len(step) for step in steps), max(step.shape[1] for step in steps)
    return torch.cat([step.expand(batch, heads, -1, -1) for step in steps], dim=2)
