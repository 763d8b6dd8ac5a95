"""Classifiers that are broken in one way each, and the contract that has to notice it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from regard.core.relations import DenseRelation
from regard.core.tap import Tap, taps
from regard.recording import Recording, record

from . import classifier_checks as contracts
from .classifier_subjects import Subject


@dataclass(frozen=True)
class Mutant:
    """A registered classifier, altered after it was built; or a recorder that is broken."""

    contract: Callable[..., None]
    alter: Callable[[nn.Module], Any] = lambda model: None
    kind: str = "vit"
    record: Callable[[nn.Module], Any] | None = None

    @property
    def name(self) -> str:
        what = self.record.__name__ if self.record else self.alter.__name__
        return f"{what}-{self.kind}-{self.contract.__name__}"

    @property
    def check(self) -> Callable[[Any], None]:
        return partial(self.contract, record=self.record) if self.record else self.contract

    def build(self, rate: float = 0.0, seed: int = 0) -> nn.Module:
        model = Subject(self.kind).build(rate, seed)
        self.alter(model)
        return model


def changed(model: nn.Module, change: Callable[..., Any]) -> None:
    """Puts `change(images, output)` behind the model."""
    forward = model.forward
    model.forward = lambda images: change(images, forward(images))


def divides_by_zero(model: nn.Module) -> None:
    changed(model, lambda images, output: replace(output, logits=output.logits / 0))


def closes_its_eyes(model: nn.Module) -> None:
    forward = model.forward
    model.forward = lambda images: forward(torch.zeros_like(images))


def forgets_a_class(model: nn.Module) -> None:
    changed(model, lambda images, output: replace(output, logits=output.logits[:, 1:]))


def centres_over_the_batch(model: nn.Module) -> None:
    changed(model, lambda images, output: replace(output, logits=output.logits - output.logits.mean(0)))


def shares_features(model: nn.Module) -> None:
    changed(model, lambda images, output: replace(output, features=output.features + output.features.mean(0)))


def has_a_dead_parameter(model: nn.Module) -> None:
    model.unused = nn.Parameter(torch.ones(3))


def freezes_a_part(model: nn.Module) -> None:
    contract = model.encoder[1].feed_forward.contract
    contract.forward = lambda inputs: nn.functional.linear(inputs, contract.weight.detach(), contract.bias)


def listens_and_changes(model: nn.Module) -> None:
    tap = next(iter(taps(model).values()))
    changed(model, lambda images, output: replace(output, logits=output.logits * (1 + 1e-6 * tap.open)))


def draws_when_heard(model: nn.Module) -> None:
    tap = next(iter(taps(model).values()))
    changed(model, lambda images, output: (tap.open and torch.rand(1), output)[1])


@contextmanager
def rounds_what_it_hears(model: nn.Module) -> Iterator[Recording]:
    """A recorder that computes the map itself, in the place of the model, from lower precision."""
    forwards = {module: module.forward for module in model.modules() if isinstance(module, nn.Linear)}
    for module, forward in forwards.items():
        module.forward = lambda inputs, forward=forward: forward(inputs.bfloat16().to(inputs.dtype))
    try:
        with record(model) as recording:
            yield recording
    finally:
        for module, forward in forwards.items():
            module.forward = forward


def has_a_silent_tap(model: nn.Module) -> None:
    model.encoder[1].extra = Tap("patches", "patches")


def says_something_else(model: nn.Module, change: Callable[[Any], Any]) -> None:
    """Every tap hands out a changed relation."""
    for tap in taps(model).values():
        tap.emit = lambda make, *_, tap=tap: Tap.emit(tap, lambda: change(make()))


def records_half_its_weights(model: nn.Module) -> None:
    says_something_else(model, lambda relation: DenseRelation(relation.weights()[..., ::2]))


def records_scores(model: nn.Module) -> None:
    """Every row sums to one, but with numbers that are no weights."""

    def spread(relation: Any) -> DenseRelation:
        weights = relation.weights()
        return DenseRelation(weights + 1e3 * (weights - weights.flip(-1)))

    says_something_else(model, spread)


def leaves_a_patch_out_of_the_record(model: nn.Module) -> None:
    def without_last(relation: Any) -> DenseRelation:
        weights = relation.weights().clone()
        weights[:, :, -1] = 0
        return DenseRelation(weights)

    says_something_else(model, without_last)


def names_an_unknown_role(model: nn.Module) -> None:
    for tap in taps(model).values():
        tap.keys = "pixels"


def forgets_the_class_token(model: nn.Module) -> None:
    axes = model.axes
    model.axes = lambda height, width: {role: replace(axis, extras=()) for role, axis in axes(height, width).items()}


def mixes_up_height_and_width(model: nn.Module) -> None:
    axes = model.axes
    model.axes = lambda height, width: axes(width, height)


def hides_a_tensor(model: nn.Module) -> None:
    hidden = [torch.randn(())]
    changed(model, lambda images, output: replace(output, logits=output.logits + hidden[0]))


def drops_out_always(model: nn.Module) -> None:
    changed(model, lambda images, output: replace(output, logits=nn.functional.dropout(output.logits, 0.5)))


def keeps_its_picture(model: nn.Module) -> None:
    def keep(images, output):
        model.last_images = images
        return output

    changed(model, keep)


def averages_over_calls(model: nn.Module) -> None:
    sums: list[Any] = []

    def averaged(images, output):
        sums.append(output.logits.sum())
        return replace(output, logits=output.logits + sum(sums) * 1e-3)

    changed(model, averaged)


def overflows_in_low_precision(model: nn.Module) -> None:
    changed(model, lambda images, output: replace(output, logits=output.logits * (1 + 1e38 * (_bfloat16(output) * 9))))


def is_coarse_in_low_precision(model: nn.Module) -> None:
    changed(model, lambda images, output: replace(output, logits=output.logits + 3.0 * _bfloat16(output)))


def _bfloat16(output: Any) -> bool:
    return output.logits.dtype == torch.bfloat16


def learns_nothing(model: nn.Module) -> None:
    changed(model, lambda images, output: replace(output, logits=output.logits * 0 + model.head.bias.mean()))


MUTANTS = [
    Mutant(contracts.check_scores_are_finite, divides_by_zero),
    Mutant(contracts.check_scores_are_finite, closes_its_eyes, "deit"),
    Mutant(contracts.check_scores_are_finite, forgets_a_class),
    Mutant(contracts.check_alone_equals_batch, centres_over_the_batch),
    Mutant(contracts.check_alone_equals_batch, shares_features, "deit"),
    Mutant(contracts.check_every_parameter_gets_a_gradient, has_a_dead_parameter),
    Mutant(contracts.check_every_parameter_gets_a_gradient, freezes_a_part, "deit"),
    Mutant(contracts.check_recording_changes_nothing, listens_and_changes),
    Mutant(contracts.check_recording_changes_nothing, draws_when_heard, "deit"),
    Mutant(contracts.check_recording_changes_nothing, record=rounds_what_it_hears),
    Mutant(contracts.check_every_tap_fires, has_a_silent_tap),
    Mutant(contracts.check_every_tap_fires, records_half_its_weights, "deit"),
    Mutant(contracts.check_every_tap_fires, records_scores),
    Mutant(contracts.check_every_tap_fires, leaves_a_patch_out_of_the_record),
    Mutant(contracts.check_axes_fit_the_recording, names_an_unknown_role),
    Mutant(contracts.check_axes_fit_the_recording, forgets_the_class_token, "deit"),
    Mutant(contracts.check_axes_fit_the_recording, mixes_up_height_and_width),
    Mutant(contracts.check_checkpoints_keep_everything, hides_a_tensor),
    Mutant(contracts.check_evaluation_is_deterministic, drops_out_always),
    Mutant(contracts.check_evaluation_is_deterministic, keeps_its_picture),
    Mutant(contracts.check_evaluation_is_deterministic, averages_over_calls, "deit"),
    Mutant(contracts.check_autocast_is_close, overflows_in_low_precision),
    Mutant(contracts.check_autocast_is_close, is_coarse_in_low_precision),
    Mutant(contracts.check_one_batch_can_be_learned, learns_nothing),
]
