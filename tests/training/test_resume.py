import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard.core.errors import CheckpointError, ConfigError
from regard.training import RunFolder, checkpoints, load_model_weights

from .toy import ToyModel, assert_same_weights, toy_loss, toy_trainer, toy_validate

# Six batches of an epoch make three steps; with dropout, so that random numbers matter.
OPTIONS = {
    "max_epochs": 4,
    "accumulate": 2,
    "dropout_rate": 0.4,
    "checkpoint_every_steps": 2,
    "log_every": 2,
    "average_last": 2,
    "validate_every": 0.5,
}
CLOCK = {"seconds", "per_second"}


def timeless(path):
    return [{name: line[name] for name in line.keys() - CLOCK} for line in RunFolder.open(path).metrics()]


def assert_as_if_never_interrupted(path, trainer, tmp_path, **options):
    """The resumed run in `path` against one from beginning to end."""
    whole = toy_trainer(tmp_path / "whole", **{**OPTIONS, **options})
    result = whole.fit()
    assert_same_weights(trainer.model, whole.model)
    assert timeless(path) == timeless(tmp_path / "whole")
    for which in ("best", "last", "averaged") if result.best is not None else ("last",):
        mine, theirs = ToyModel(), ToyModel()
        state = load_model_weights(mine, RunFolder.open(path).weights(which))
        expected = load_model_weights(theirs, whole.folder.weights(which))
        assert_same_weights(mine, theirs)
        drop = {"seconds", "cpu_seconds", "peak_memory", "interval", "checksum", "files"}
        assert {name: state[name] for name in state.keys() - drop} == {
            name: expected[name] for name in expected.keys() - drop
        }


@pytest.mark.parametrize("losses", [2, 10])
def test_sigkill_within_an_epoch_changes_nothing(tmp_path, losses):
    """Killed in the first step, before anything was saved, and in the fifth, with one of its epoch's steps saved."""
    run = tmp_path / "run"
    script = Path(__file__).with_name("killed.py")
    done = subprocess.run([sys.executable, str(script), str(run), str(losses)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    saved = RunFolder.open(run).checkpoints.names()
    assert saved == ([] if losses == 2 else ["step-00000002", "step-00000004"])
    shutil.move(run, tmp_path / "moved")
    trainer = toy_trainer(tmp_path / "moved", resume=True, validate=None, **OPTIONS)
    result = trainer.fit(resume=True)
    assert result.steps == 12
    assert_as_if_never_interrupted(tmp_path / "moved", trainer, tmp_path, validate=None)


class Killed(BaseException):
    """Stands for SIGKILL inside the test's own process."""


@pytest.mark.parametrize("moment", range(1, 13, 3))
def test_dying_at_any_moment_changes_nothing(tmp_path, moment):
    calls = [0]

    def deadly(model):
        calls[0] += 1
        if calls[0] == moment:
            raise Killed
        return toy_validate(model)

    with pytest.raises(Killed):
        toy_trainer(tmp_path / "run", **{**OPTIONS, "validate_every": 0.3}, validate=deadly).fit()
    trainer = toy_trainer(tmp_path / "run", resume=True, **{**OPTIONS, "validate_every": 0.3})
    trainer.fit(resume=True)
    assert_as_if_never_interrupted(tmp_path / "run", trainer, tmp_path, validate_every=0.3)


def raise_signal_at(step, number, function):
    """`function`, with a signal during its call number `step`."""
    calls = [0]

    def signalling(*arguments):
        calls[0] += 1
        if calls[0] == step:
            os.kill(os.getpid(), number)
        return function(*arguments)

    return signalling


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_finishes_the_step_saves_and_tells_how_to_go_on(tmp_path, capsys, number):
    loss = raise_signal_at(9, number, toy_loss)
    handler = signal.getsignal(number)
    result = toy_trainer(tmp_path / "run", loss_function=loss, **OPTIONS).fit()
    assert (result.steps, result.stopped_because, result.signal) == (5, "interrupted", number)
    assert signal.getsignal(number) == handler
    captured = capsys.readouterr()
    assert f"--resume {tmp_path / 'run'}" in captured.err
    assert captured.out == ""
    trainer = toy_trainer(tmp_path / "run", resume=True, **OPTIONS)
    resumed = trainer.fit(resume=True)
    assert resumed.seconds > result.seconds
    assert_as_if_never_interrupted(tmp_path / "run", trainer, tmp_path)


def test_an_interrupted_validation_is_made_up_for(tmp_path):
    validate = raise_signal_at(3, signal.SIGINT, toy_validate)
    result = toy_trainer(tmp_path / "run", validate=validate, **OPTIONS).fit()
    assert result.stopped_because == "interrupted"
    trainer = toy_trainer(tmp_path / "run", resume=True, **OPTIONS)
    trainer.fit(resume=True)
    assert_as_if_never_interrupted(tmp_path / "run", trainer, tmp_path)


def test_an_interrupt_in_the_last_validation_is_made_up_for_too(tmp_path):
    validate = raise_signal_at(8, signal.SIGINT, toy_validate)
    result = toy_trainer(tmp_path / "run", validate=validate, **OPTIONS).fit()
    assert (result.stopped_because, result.steps) == ("interrupted", 12)
    trainer = toy_trainer(tmp_path / "run", resume=True, **OPTIONS)
    assert trainer.fit(resume=True).stopped_because == "max_epochs"
    assert_as_if_never_interrupted(tmp_path / "run", trainer, tmp_path)


def test_a_second_interrupt_ends_at_once_and_what_was_saved_stays(tmp_path):
    loss = raise_signal_at(9, signal.SIGINT, raise_signal_at(9, signal.SIGINT, toy_loss))
    with pytest.raises(KeyboardInterrupt):
        toy_trainer(tmp_path / "run", loss_function=loss, **OPTIONS).fit()
    trainer = toy_trainer(tmp_path / "run", resume=True, **OPTIONS)
    trainer.fit(resume=True)
    assert_as_if_never_interrupted(tmp_path / "run", trainer, tmp_path)


def test_a_damaged_checkpoint_is_passed_over_with_a_warning(tmp_path, capsys):
    first = toy_trainer(tmp_path / "run", **{**OPTIONS, "max_steps": 7})
    first.fit()
    newest, before = first.folder.checkpoints.names()[-1], first.folder.checkpoints.names()[-2]
    with (first.folder.checkpoints.path / newest / "optimizer.safetensors").open("r+b") as file:
        file.truncate(100)
    trainer = toy_trainer(tmp_path / "run", resume=True, **OPTIONS)
    trainer.fit(resume=True)
    shown = capsys.readouterr().err
    assert "optimizer.safetensors is damaged" in shown
    assert f"Going on from step {int(before[5:])}." in shown
    whole = toy_trainer(tmp_path / "whole", **OPTIONS)
    whole.fit()
    assert_same_weights(trainer.model, whole.model)


def test_a_finished_run_can_be_resumed_for_longer_or_not_at_all(tmp_path):
    toy_trainer(tmp_path / "run", **{**OPTIONS, "max_epochs": 2}).fit()
    again = toy_trainer(tmp_path / "run", resume=True, **{**OPTIONS, "max_epochs": 2})
    before = timeless(tmp_path / "run")
    assert again.fit(resume=True).steps == 6
    assert timeless(tmp_path / "run") == before
    longer = toy_trainer(tmp_path / "run", resume=True, **OPTIONS)
    longer.fit(resume=True)
    assert_as_if_never_interrupted(tmp_path / "run", longer, tmp_path)


def test_a_run_is_not_started_twice(tmp_path):
    toy_trainer(tmp_path / "run", max_steps=1).fit()
    with pytest.raises(ConfigError, match="--resume"):
        toy_trainer(tmp_path / "run", resume=True, max_steps=1).fit()


def test_another_model_is_refused(tmp_path):
    toy_trainer(tmp_path / "run", max_steps=1).fit()
    with pytest.raises(CheckpointError, match=r"'block\.linear\.weight' has shape \[11, 5\]"):
        toy_trainer(tmp_path / "run", resume=True, model=ToyModel(width=13)).fit(resume=True)


def test_another_optimizer_is_refused(tmp_path):
    toy_trainer(tmp_path / "run", max_steps=1).fit()
    with pytest.raises(ConfigError, match=r"'adamw'.*'sgd'"):
        toy_trainer(tmp_path / "run", resume=True, max_steps=2, optimizer="sgd").fit(resume=True)


def test_a_full_disk_ends_the_run_and_what_was_saved_stays(tmp_path, monkeypatch):
    save_file, calls = checkpoints.save_file, [0]

    def fill_up(tensors, path):
        calls[0] += 1
        if calls[0] == 6:
            Path(path).write_bytes(b"half of")
            raise OSError(errno.ENOSPC, "No space left on device")
        save_file(tensors, path)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "save_file", fill_up)
        with pytest.raises(CheckpointError, match=r"disk is full.*--resume.*is intact"):
            toy_trainer(tmp_path / "run", **OPTIONS).fit()
    assert not list((tmp_path / "run" / "checkpoints").glob(".*"))
    trainer = toy_trainer(tmp_path / "run", resume=True, **OPTIONS)
    trainer.fit(resume=True)
    assert_as_if_never_interrupted(tmp_path / "run", trainer, tmp_path)


def test_half_precision_resumes_bit_for_bit_too(tmp_path):
    options = {**OPTIONS, "precision": "bfloat16"}
    toy_trainer(tmp_path / "run", **{**options, "max_steps": 5}).fit()
    trainer = toy_trainer(tmp_path / "run", resume=True, **options)
    trainer.fit(resume=True)
    whole = toy_trainer(tmp_path / "whole", **options)
    whole.fit()
    assert_same_weights(trainer.model, whole.model)
    assert trainer.model.block.linear.weight.dtype == torch.float32
