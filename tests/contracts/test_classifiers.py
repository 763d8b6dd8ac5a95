"""Every registered classifier, with every choice it has, keeps every contract; every contract rejects its mutants."""

from __future__ import annotations

import contextvars
from collections.abc import Callable

import pytest

from regard.core.classifier import Classifier
from regard.core.models import ModelConfig, models, sizes

from .classifier_checks import CHECKS, check_one_batch_can_be_learned
from .classifier_subjects import CLASSIFIERS, SUBJECTS, Subject
from .mutant_classifiers import MUTANTS, Mutant

# Learning takes many steps: every model does it, but not with every choice.
EVERY_VARIANT = {name: check for name, check in CHECKS.items() if check is not check_one_batch_can_be_learned}


@pytest.mark.parametrize("check", EVERY_VARIANT.values(), ids=EVERY_VARIANT)
@pytest.mark.parametrize("name", SUBJECTS)
def test_contract(name: str, check: Callable[[Subject], None]) -> None:
    check(SUBJECTS[name])


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_one_batch_can_be_learned(kind: str) -> None:
    check_one_batch_can_be_learned(SUBJECTS[kind])


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_one_batch_can_be_learned_with_every_choice(name: str) -> None:
    check_one_batch_can_be_learned(SUBJECTS[name])


@pytest.mark.parametrize("name", SUBJECTS)
def test_models_are_of_a_kind_that_contracts_know(name: str) -> None:
    assert isinstance(SUBJECTS[name].build(), Classifier)


@pytest.mark.parametrize("name", sizes)
def test_a_size_is_a_config_of_a_registered_model(name: str) -> None:
    config = sizes[name]()
    assert isinstance(config, ModelConfig)
    assert type(config) is models[config.kind].config


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_rejected(mutant: Mutant) -> None:
    with pytest.raises(AssertionError):
        contextvars.copy_context().run(mutant.check, mutant)  # what a mutant leaves open ends here


def test_every_contract_has_a_mutant() -> None:
    assert {mutant.contract for mutant in MUTANTS} == set(CHECKS.values())
