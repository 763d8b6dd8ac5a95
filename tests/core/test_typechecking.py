"""The import hook is in force: a wrong shape in a call is an error while tests run."""

from __future__ import annotations

import pytest
import torch
from jaxtyping import TypeCheckError

from regard.core.masks import Allow
from regard.core.relations import masked_softmax
from regard.layers.recurrent import PlainCell, run


def test_a_call_with_a_wrong_shape_is_refused() -> None:
    cell = PlainCell(3, 5)
    with pytest.raises(TypeCheckError, match="state"):
        run(cell, torch.zeros(2, 7, 3), torch.zeros(11, 5))


def test_a_wrong_dtype_is_refused() -> None:
    with pytest.raises(TypeCheckError, match="scores"):
        masked_softmax(torch.zeros(3, 5, dtype=torch.long), None)


def test_fields_of_dataclasses_are_checked() -> None:
    with pytest.raises(TypeCheckError, match="keys"):
        Allow(keys=torch.zeros(3, 5))
