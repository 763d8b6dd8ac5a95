"""Every registered mechanism keeps every contract; every contract rejects its mutants."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

from regard.attention import Mechanism, mechanisms
from regard.core.errors import ConfigError

from .mechanisms import CHECKS, WIDTH, Make
from .mutant_mechanisms import MUTANTS, Honest

Check = Callable[[Make], None]


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("name", mechanisms)
def test_contract(name: str, check: Check) -> None:
    check(lambda: mechanisms[name](WIDTH, WIDTH, WIDTH))


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_mutants_are_broken_in_nothing_else(check: Check) -> None:
    check(lambda: Honest(WIDTH, WIDTH, WIDTH))


@pytest.mark.parametrize(
    ("mutant", "check"), MUTANTS, ids=[f"{mutant.__name__}-{check.__name__}" for mutant, check in MUTANTS]
)
def test_mutant_is_rejected(mutant: type[Mechanism], check: Check) -> None:
    with pytest.raises(AssertionError):
        check(lambda: mutant(WIDTH, WIDTH, WIDTH))


def test_every_contract_has_a_mutant() -> None:
    assert {check for _, check in MUTANTS} == set(CHECKS.values())


@pytest.mark.parametrize("name", mechanisms)
def test_unequal_widths_work_or_are_refused(name: str) -> None:
    refusal = None
    try:
        mechanism = mechanisms[name](5, 7, 11)
    except ConfigError as error:
        refusal = str(error)
    if refusal is not None:
        assert {"5", "7"} <= set(re.findall(r"\d+", refusal)), "the message says which widths do not fit"
        return
    context = mechanism(torch.randn(2, 3, 5), torch.randn(2, 13, 7), torch.randn(2, 13, 17))
    assert context.shape == (2, 3, 17)
