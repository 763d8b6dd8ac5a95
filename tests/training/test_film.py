"""`record_every`: frames at the steps that are due, the same after a resumption, and no trace on the training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard.core.errors import ConfigError
from regard.core.files import write_json
from regard.training import RunFolder

from .toy import assert_same_weights, losses_of, toy_trainer, toy_validate

OPTIONS: dict[str, Any] = {"max_steps": 7, "max_epochs": None, "dropout_rate": 0.4, "checkpoint_every_steps": 2}


class Frame:
    def __init__(self, total: float) -> None:
        self.total = total

    def save(self, path: Path) -> None:
        write_json(path, {"total": self.total})


def look(model: nn.Module) -> Frame:
    """The sum of the weights; and it draws random numbers, which training must not notice."""
    assert not model.training
    assert not torch.is_grad_enabled()
    torch.rand(3)
    return Frame(float(sum(parameter.double().sum() for parameter in model.parameters())))


def frames(path: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in (path / "film").glob("*")}


def filming(path: Path, **options: Any) -> Any:
    return toy_trainer(path, record=look, **{**OPTIONS, **options})


def test_frames_of_the_steps_that_are_due(tmp_path: Path) -> None:
    filming(tmp_path / "run", record_every=3).fit()
    names = [f"step-{step:08d}.regard" for step in (0, 3, 6)]
    assert sorted(frames(tmp_path / "run")) == names
    assert len(set(frames(tmp_path / "run").values())) == 3, "the weights have changed between them"
    assert RunFolder.open(tmp_path / "run").frame(3).name == names[1]


def test_training_does_not_notice(tmp_path: Path) -> None:
    plain, filmed = toy_trainer(tmp_path / "plain", **OPTIONS), filming(tmp_path / "filmed", record_every=1)
    plain.fit()
    filmed.fit()
    assert_same_weights(plain.model, filmed.model)
    assert losses_of(tmp_path / "plain") == losses_of(tmp_path / "filmed")
    assert not (tmp_path / "plain" / "film").exists()


def test_resumed_the_film_is_the_same(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    calls = [0]

    def deadly(model: nn.Module) -> dict[str, float]:
        calls[0] += 1
        if calls[0] == 1:
            raise Killed
        return toy_validate(model)

    options = {"record_every": 2, "validate_every": 0.7}
    filming(tmp_path / "whole", **options).fit()
    with pytest.raises(Killed):
        filming(tmp_path / "run", validate=deadly, **options).fit()
    assert 0 < len(frames(tmp_path / "run")) < len(frames(tmp_path / "whole"))
    filming(tmp_path / "run", resume=True, **options).fit(resume=True)
    assert frames(tmp_path / "run") == frames(tmp_path / "whole")


def test_nothing_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to look at"):
        toy_trainer(tmp_path / "run", record_every=3)
