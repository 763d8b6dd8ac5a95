"""Mechanisms that are broken in one way each, and the contract that has to notice it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.attention import Mechanism, ScoreAttention
from regard.core.dropout import dropout
from regard.core.masks import as_allow
from regard.core.relations import DenseRelation, masked_softmax

from . import mechanisms as contracts


class Honest(Mechanism):
    """Scaled dot products, written so that each step can be broken. Unbroken it keeps every contract."""

    def __init__(self, queries_width: int, keys_width: int, width: int) -> None:
        super().__init__(queries_width, keys_width, width)
        self.between = nn.Linear(queries_width, keys_width, bias=False)

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        return self.between(queries) @ keys.transpose(-1, -2)

    def mask(self, allow, num_queries: int, num_keys: int) -> Tensor | None:
        return as_allow(allow).matrix(num_queries, num_keys)

    def biased(self, scores: Tensor, bias) -> Tensor:
        if bias is None:
            return scores
        return scores + (bias if isinstance(bias, Tensor) else bias.block(0, scores.shape[-2], *scores.shape[-2:]))

    def normalised(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return masked_softmax(scores, mask)

    def emitted(self, weights: Tensor) -> None:
        self.tap.emit(lambda: DenseRelation(weights.detach()))

    def mixed(self, weights: Tensor, values: Tensor) -> Tensor:
        return dropout(weights, self._dropout_now, self.training) @ values

    def _attend(self, queries, prepared, values, allow, bias) -> Tensor:
        scores = self.biased(self.scores(queries, prepared), bias)
        weights = self.normalised(scores, self.mask(allow, queries.shape[2], prepared.shape[2]))
        self.emitted(weights)
        return self.mixed(weights, values)


class Unnormalised(Honest):
    def normalised(self, scores, mask):
        weights = scores.sigmoid()
        return weights if mask is None else weights * mask


class Negative(Honest):
    def normalised(self, scores, mask):
        weights = super().normalised(scores, mask)
        return weights + torch.tensor([0.1, -0.1] + [0.0] * (weights.shape[-1] - 2))


class IgnoresMasks(Honest):
    def mask(self, allow, num_queries, num_keys):
        return None


class LeakyMask(Honest):
    def normalised(self, scores, mask):
        return (scores if mask is None else scores - 10.0 * ~mask).softmax(dim=-1)


class MaskedInTheRecordOnly(Honest):
    def mixed(self, weights, values):
        return super().mixed(weights, values) + 1e-9 * values.mean(dim=-2, keepdim=True)


class NaNForNobody(Honest):
    def normalised(self, scores, mask):
        return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(dim=-1)


class NaNOnTheWayBack(Honest):
    """The forward pass is mended, the backward pass is not."""

    def normalised(self, scores, mask):
        if mask is None:
            return scores.softmax(dim=-1)
        hidden = torch.zeros(()).masked_fill(~mask, -torch.inf)
        return (scores + hidden).softmax(dim=-1).masked_fill(~mask, 0.0)


class UniformForNobody(Honest):
    def normalised(self, scores, mask):
        return (scores if mask is None else scores.masked_fill(~mask, -1e30)).softmax(dim=-1)


class SeesOneAhead(Honest):
    def mask(self, allow, num_queries, num_keys):
        mask = super().mask(allow, num_queries, num_keys)
        return mask if mask is None else mask | mask.roll(1, dims=-1)


class AlignedAtTheStart(Honest):
    """The causal mask of a single query hides all but the first key."""

    def mask(self, allow, num_queries, num_keys):
        mask = super().mask(allow, num_queries, num_keys)
        corner = torch.ones(num_queries, num_keys, dtype=torch.bool).tril()
        return mask & corner if as_allow(allow).causal and mask is not None else mask


class MixesTheBatch(Honest):
    def scores(self, queries, keys):
        scores = super().scores(queries, keys)
        return scores / scores.std()


class ScalesWithoutHeads(Honest):
    def attend(self, queries, prepared, values, *, allow=None, bias=None):
        context = super().attend(queries, prepared, values, allow=allow, bias=bias)
        return context if context.dim() > 3 else 2 * context


class DeadParameter(Honest):
    def scores(self, queries, keys):
        return queries @ self.between.weight.detach().T @ keys.transpose(-1, -2)


class RecordsSomethingElse(Honest):
    def emitted(self, weights):
        super().emitted(weights.flip(1))


class RecordsAfterDropout(Honest):
    def mixed(self, weights, values):
        context = super().mixed(weights, values)
        return context if not self.tap.open else dropout(weights, self._dropout_now, self.training) @ values


class DrawsNumbersForTheRecord(Honest):
    def emitted(self, weights):
        if self.tap.open:
            torch.rand(1)
        super().emitted(weights)


class IgnoresBias(Honest):
    def biased(self, scores, bias):
        return scores


class BiasFromTheWrongEnd(Honest):
    def biased(self, scores, bias):
        return super().biased(scores, bias if bias is None or isinstance(bias, Tensor) else type(bias)(-bias.values))


class RemembersItsKeys(Honest):
    def scores(self, queries, keys):
        scores = super().scores(queries, keys)
        self.last_scores = scores.detach()
        return scores


class GetsTired(Honest):
    calls = 0

    def scores(self, queries, keys):
        self.calls += 1
        return super().scores(queries, keys) / self.calls


class KeepsAParameterToItself(Honest):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.own = [torch.randn(())]

    def scores(self, queries, keys):
        return super().scores(queries, keys) * self.own[0]


class Peculiar(ScoreAttention):
    """Scores that depend on how many queries there are."""

    def scores(self, queries, keys):
        return queries @ keys.transpose(-1, -2) / queries.shape[-2]


MUTANTS = [
    (Unnormalised, contracts.check_rows_sum_to_one),
    (Negative, contracts.check_rows_sum_to_one),
    (IgnoresMasks, contracts.check_masked_weights_are_zero),
    (LeakyMask, contracts.check_masked_weights_are_zero),
    (MaskedInTheRecordOnly, contracts.check_masked_weights_are_zero),
    (NaNForNobody, contracts.check_empty_rows_are_zero),
    (NaNOnTheWayBack, contracts.check_empty_rows_are_zero),
    (UniformForNobody, contracts.check_empty_rows_are_zero),
    (IgnoresMasks, contracts.check_ignores_the_future),
    (SeesOneAhead, contracts.check_ignores_the_future),
    (AlignedAtTheStart, contracts.check_one_query_at_a_time),
    (Peculiar, contracts.check_one_query_at_a_time),
    (MixesTheBatch, contracts.check_alone_equals_batch),
    (IgnoresMasks, contracts.check_alone_equals_batch),
    (ScalesWithoutHeads, contracts.check_without_heads),
    (DeadParameter, contracts.check_every_parameter_gets_a_gradient),
    (RecordsSomethingElse, contracts.check_recorded_weights_give_the_context),
    (RecordsAfterDropout, contracts.check_recording_changes_nothing),
    (DrawsNumbersForTheRecord, contracts.check_recording_changes_nothing),
    (IgnoresBias, contracts.check_bias_is_added_to_the_scores),
    (BiasFromTheWrongEnd, contracts.check_bias_is_added_to_the_scores),
    (RemembersItsKeys, contracts.check_nothing_is_left_behind),
    (GetsTired, contracts.check_nothing_is_left_behind),
    (KeepsAParameterToItself, contracts.check_state_dict_holds_everything),
]
