"""Configs: frozen, strict about names, and found again by their kind."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from pydantic import ValidationError
from torch import nn

from regard.core.errors import UnknownNameError
from regard.core.models import ModelConfig, ModelEntry, models, read_model_config


class ToyConfig(ModelConfig):
    kind: Literal["toy"] = "toy"
    width: int = 3
    """Size of nothing."""
    dropout_rate: float = 0.5
    shifted: bool = True
    offset: float = 0.0


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_entries", dict(models.items()))
    models.register("toy")(ModelEntry(ToyConfig, nn.Identity, "nobody"))


def test_a_config_finds_its_class() -> None:
    config = read_model_config({"kind": "toy", "width": 5})
    assert config == ToyConfig(width=5)
    assert read_model_config(config) is config
    assert read_model_config(config.model_dump(mode="json")) == config


@pytest.mark.parametrize("value", [{"kind": "toyy"}, {"width": 3}])
def test_an_unknown_kind(value: dict) -> None:
    with pytest.raises(UnknownNameError, match="There is no model called"):
        read_model_config(value)


@pytest.mark.parametrize("value", [{"widht": 3}, {"width": "three"}, {"width": None}])
def test_what_does_not_fit_is_refused(value: dict) -> None:
    with pytest.raises(ValidationError):
        ToyConfig.model_validate(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"width": 0}, "width is 0, but it has to be at least 1"),
        ({"width": -5}, "width is -5"),
        ({"dropout_rate": 1.0}, "dropout_rate is 1.0, but it is a probability"),
        ({"dropout_rate": -0.1}, "dropout_rate is -0.1"),
        ({"dropout_rate": float("nan")}, "dropout_rate is nan"),
    ],
)
def test_sizes_and_probabilities_are_possible_in_every_model(value: dict, said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        ToyConfig.model_validate(value)


def test_what_is_no_size_may_be_nothing() -> None:
    config = ToyConfig(dropout_rate=0.0, shifted=False, offset=-1.5)
    assert (config.shifted, config.offset) == (False, -1.5)


def test_a_config_cannot_be_changed() -> None:
    config = ToyConfig()
    with pytest.raises(ValidationError, match="frozen"):
        config.width = 5


def test_fields_are_described_by_what_stands_under_them() -> None:
    assert ToyConfig.model_fields["width"].description == "Size of nothing."
