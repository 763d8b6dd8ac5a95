"""Every registered model with attention keeps the contracts of edits; each contract rejects its mutants."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import pytest
from torch import nn

from regard.core import tap as tap_module
from regard.core.errors import EditError
from regard.core.models import models
from regard.core.relations import Relation
from regard.core.tap import Tap, taps
from regard.recording.edit import _Edits, edit
from regard.recording.head_plan import HeadPlan

from . import classifier_subjects, edit_checks, subjects
from .edit_checks import CHECKS

SUBJECTS: dict[str, Any] = {
    name: subject
    for name, subject in {**subjects.SUBJECTS, **classifier_subjects.SUBJECTS}.items()
    if taps(subject.build())
}
# Inside a classifier every mechanism is asked in the same way, and none looks at an activation, a norm or a readout.
TOLD_APART = {
    "translator": {"attention", "heads", "positions"},
    "classifier": {"stem"},
}
ATTENTIVE = {
    name: subject
    for name, subject in SUBJECTS.items()
    if set(subject.options) <= TOLD_APART[models[subject.kind].family]
}
EDIT_MODULE = sys.modules["regard.recording.edit"]  # which has the name of the function that it holds
EXAMPLE = subjects.SUBJECTS["transformer"]


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("name", ATTENTIVE)
def test_contract(name: str, check: Callable[..., None]) -> None:
    check(ATTENTIVE[name])


def changing(change: Callable[[Any, Tap, Relation, bool], Relation]) -> Callable[..., Any]:
    """`edit` whose relations are made by `change(edits, tap, relation, shown)`."""

    class Changed(_Edits):
        def change(self, tap: Tap, relation: Relation, *, shown: bool) -> Relation:
            return change(super(), tap, relation, shown)

    @contextmanager
    def altered(model: nn.Module, given: Mapping[str, Any]) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(EDIT_MODULE, "_Edits", Changed)
            with edit(model, given):
                yield

    return altered


def only_shows(proper: Any, tap: Tap, relation: Relation, shown: bool) -> Relation:
    changed = proper.change(tap, relation, shown=shown)
    return changed if shown else relation


def only_computes(proper: Any, tap: Tap, relation: Relation, shown: bool) -> Relation:
    return relation if shown else proper.change(tap, relation, shown=shown)


def mutes_one_head_more(proper: Any, tap: Tap, relation: Relation, shown: bool) -> Relation:
    muted = HeadPlan.unchanged(relation.heads).silencing([0]).of(proper.change(tap, relation, shown=shown))
    return relation if muted is None else muted


def forgets_the_step(proper: Any, tap: Tap, relation: Relation, shown: bool) -> Relation:
    return contextvars.Context().run(_alone, proper, tap, relation, shown)


def _alone(proper: Any, tap: Tap, relation: Relation, shown: bool) -> Relation:
    return proper.change(tap, relation, shown=shown)


@contextmanager
def stays_open(model: nn.Module, given: Mapping[str, Any]) -> Iterator[None]:
    with edit(model, given):
        yield
        left = tap_module.open_editing()
    tap_module._editing.set(left)


def ignores_everything(model: nn.Module, given: Mapping[str, Any]) -> Any:
    return nullcontext()


def is_patient(model: nn.Module, given: Mapping[str, Any]) -> Any:
    """Does what it should, but never says that an edit was idle."""

    @contextmanager
    def patient() -> Iterator[None]:
        with suppress(EditError), edit(model, given):
            yield

    return patient()


MUTANTS = [
    (changing(only_shows), "muting_everything_leaves_no_context"),
    (changing(only_computes), "muting_everything_leaves_no_context"),
    (ignores_everything, "muting_everything_leaves_no_context"),
    (changing(mutes_one_head_more), "an_identity_changes_nothing"),
    (stays_open, "muting_everything_leaves_no_context"),
    (changing(only_shows), "a_frozen_relation_is_looked_at"),
    (changing(only_computes), "a_frozen_relation_is_looked_at"),
    (changing(mutes_one_head_more), "heads_are_addressed_one_by_one"),
    (changing(only_computes), "heads_are_addressed_one_by_one"),
    (changing(forgets_the_step), "steps_under_edits_equal_the_whole"),
    (is_patient, "an_idle_edit_is_named"),
    (ignores_everything, "an_idle_edit_is_named"),
]


@pytest.mark.parametrize(("mutant", "contract"), MUTANTS)
def test_mutant_is_rejected(mutant: Callable[..., Any], contract: str) -> None:
    with pytest.raises(AssertionError):
        contextvars.copy_context().run(CHECKS[contract], EXAMPLE, mutant)


def test_every_contract_has_a_mutant() -> None:
    assert {contract for _, contract in MUTANTS} == set(CHECKS)
    assert edit_checks.CHECKS is CHECKS
