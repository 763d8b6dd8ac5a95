"""Every registered translator, with every choice it has, keeps every contract; every contract rejects its mutants."""

from __future__ import annotations

import contextvars
from collections.abc import Callable

import pytest

from regard.core.seq2seq import Seq2Seq

from .model_checks import CHECKS, check_one_batch_can_be_learned
from .mutant_models import MUTANTS, Mutant
from .subjects import SUBJECTS, TRANSLATORS, Subject

# Learning takes many steps: every model does it, but not with every choice.
EVERY_VARIANT = {name: check for name, check in CHECKS.items() if check is not check_one_batch_can_be_learned}


@pytest.mark.parametrize("check", EVERY_VARIANT.values(), ids=EVERY_VARIANT)
@pytest.mark.parametrize("name", SUBJECTS)
def test_contract(name: str, check: Callable[[Subject], None]) -> None:
    check(SUBJECTS[name])


@pytest.mark.parametrize("kind", TRANSLATORS)
def test_one_batch_can_be_learned(kind: str) -> None:
    check_one_batch_can_be_learned(SUBJECTS[kind])


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_one_batch_can_be_learned_with_every_choice(name: str) -> None:
    check_one_batch_can_be_learned(SUBJECTS[name])


@pytest.mark.parametrize("name", SUBJECTS)
def test_models_are_of_a_kind_that_contracts_know(name: str) -> None:
    assert isinstance(SUBJECTS[name].build(), Seq2Seq)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_rejected(mutant: Mutant) -> None:
    with pytest.raises(AssertionError):
        contextvars.copy_context().run(mutant.check, mutant)  # what a mutant leaves open ends here


def test_every_contract_has_a_mutant() -> None:
    assert {mutant.contract for mutant in MUTANTS} == set(CHECKS.values())
