import pytest
from pydantic import ValidationError

from regard.core.errors import ConfigError
from regard.training import TrainingConfig


def test_json_and_back_is_the_identity():
    config = TrainingConfig(max_steps=7, betas=(0.8, 0.9), patience=3)
    assert TrainingConfig.model_validate_json(config.model_dump_json()) == config


def test_every_field_is_documented():
    assert [name for name, field in TrainingConfig.model_fields.items() if not field.description] == []


@pytest.mark.parametrize(
    "options",
    [
        {"accumulate": 0},
        {"learning_rate": 0},
        {"clip_norm": -1},
        {"precision": "float64"},
        {"max_epochs": 0},
        {"average_last": 0},
        {"learning_rte": 1e-3},
    ],
)
def test_nonsense_is_refused(options):
    with pytest.raises(ValidationError):
        TrainingConfig(**options)


def test_a_run_without_an_end_is_refused():
    with pytest.raises(ConfigError, match="never end"):
        TrainingConfig(max_epochs=None).check()


def test_patience_needs_validations():
    with pytest.raises(ConfigError, match="validate_every"):
        TrainingConfig(patience=2, validate_every=None).check()
