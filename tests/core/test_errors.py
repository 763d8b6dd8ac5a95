"""Errors are sentences that help, and exit as a shell expects."""

from __future__ import annotations

import pytest

from regard.core import errors
from regard.core.errors import ConfigError, RegardError, UnknownNameError, nearest


def test_the_nearest_name() -> None:
    assert nearest("aditive", ["dot", "additive", "bilinear"]) == "additive"
    assert nearest("zzz", ["dot", "additive"]) is None
    assert nearest("dot", []) is None


def test_an_unknown_name_is_answered() -> None:
    error = UnknownNameError("mechanism", "aditive", {"dot": 1, "additive": 2}, hint="See the list.")
    assert str(error) == (
        "There is no mechanism called 'aditive'. Did you mean 'additive'? Known: additive, dot. See the list."
    )
    assert str(UnknownNameError("cell", "x", [])) == "There is no cell called 'x'. Known: none."


def test_the_command_line_can_catch_all() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) > 5
    assert all(issubclass(kind, RegardError) and kind.__doc__ for kind in kinds)


@pytest.mark.parametrize(("kind", "code"), [(RegardError, 1), (ConfigError, 2), (UnknownNameError, 2)])
def test_exit_codes(kind: type[RegardError], code: int) -> None:
    assert kind.exit_code == code
