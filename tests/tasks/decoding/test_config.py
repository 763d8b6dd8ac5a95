from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError

from regard.core.errors import ConfigError
from regard.tasks.decoding import DecodingConfig


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"beam_width": 0}, "beam_width is 0"),
        ({"num_best": 0}, "num_best is 0"),
        ({"max_length": 0}, "max_length is 0"),
        ({"num_best": 5}, "beam_width of at least 5"),
        ({"method": "greedy", "num_best": 2}, "one hypothesis"),
        ({"length_penalty": math.nan}, "length_penalty is nan"),
        ({"length_penalty": 300.0}, "length_penalty is 300"),
        ({"max_length_ratio": 0.0, "max_length_extra": 0}, "no room"),
        ({"max_length_ratio": -1.0}, "no room"),
        ({"max_length_extra": -1}, "no room"),
        ({"max_length_ratio": math.inf}, "no room"),
        ({"max_length_ratio": math.nan}, "no room"),
        ({"temperature": 0.0}, "greedy"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"temperature": math.inf}, "temperature is inf"),
        ({"top_k": 0}, "top_k is 0"),
        ({"top_p": 0.0}, "top_p is 0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"top_p": math.nan}, "top_p is nan"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_options_that_do_not_fit_say_so(options: dict, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        DecodingConfig(**options)


def test_unknown_methods_and_options_are_refused() -> None:
    with pytest.raises(ValidationError, match="method"):
        DecodingConfig(method="oracle")
    with pytest.raises(ValidationError, match="beam_size"):
        DecodingConfig(beam_size=4)


def test_survives_json() -> None:
    config = DecodingConfig(method="sample", num_best=9, top_k=7, top_p=0.9, forbidden=(0, 2, 5))
    assert DecodingConfig.model_validate_json(config.model_dump_json()) == config


def test_limits() -> None:
    config = DecodingConfig(max_length_ratio=1.1, max_length_extra=3, max_length=19)
    assert config.limits(torch.tensor([0, 1, 10, 11, 13, 400])).tolist() == [3, 5, 14, 16, 18, 19]
    assert DecodingConfig(max_length_ratio=0.5, max_length_extra=0).limits(torch.tensor([0, 3])).tolist() == [1, 2]


def test_limits_are_not_rounded_up_by_a_hair() -> None:
    assert 2.2 * 25 > 55
    assert DecodingConfig(max_length_ratio=2.2, max_length_extra=0).limits(torch.tensor([25])).tolist() == [55]
