import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.training import RunFolder, load_model_weights
from regard.training.processes import Circle, connect, on_main

from .toy import ToyModel, losses_of, toy_trainer

OPTIONS = {"batch_size": 6, "accumulate": 2, "average_last": 2}


def launch(folder, kind, *arguments):
    """Two processes of `launched.py`; gives what each of them saw."""
    command = [sys.executable, "-m", "accelerate.commands.launch", *kind, "--num_processes", "2", "--num_machines", "1"]
    command += ["--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    command += [str(Path(__file__).with_name("launched.py")), str(folder), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-5000:]
    assert done.stdout == ""
    return [json.loads((folder / f"seen-{rank}.json").read_text()) for rank in (0, 1)]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    return folder, launch(folder, ["--multi_gpu"])


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sharded")
    kind = ["--use_fsdp", "--fsdp_version", "2", "--fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP"]
    return folder, launch(folder, [*kind, "--fsdp_transformer_layer_cls_to_wrap", "ToyBlock"], "sharded")


@pytest.mark.parametrize("kind", ["two", "sharded"])
def test_two_processes_train_as_one_does(kind, request, tmp_path):
    folder, seen = request.getfixturevalue(kind)
    trainer = toy_trainer(tmp_path / "one", **OPTIONS)
    result = trainer.fit()
    parameters = {"two": "Parameter", "sharded": "DTensor"}[kind]
    for mine in seen:
        assert mine["steady"] == {
            "steps": 8,
            "best": pytest.approx(result.best, abs=1e-6),
            "processes": 2,
            "kind": parameters,
        }
    assert losses_of(folder / "steady") == pytest.approx(losses_of(tmp_path / "one"), abs=1e-6)
    norms = [
        [line["gradient_norm"] for line in RunFolder.open(path).metrics() if "loss" in line]
        for path in (folder / "steady", tmp_path / "one")
    ]
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)
    for which in ("last", "averaged"):
        mine, theirs = ToyModel(), ToyModel()
        load_model_weights(mine, RunFolder.open(folder / "steady").weights(which))
        load_model_weights(theirs, trainer.folder.weights(which))
        for name, tensor in mine.state_dict().items():
            torch.testing.assert_close(tensor, theirs.state_dict()[name], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["two", "sharded"])
def test_several_processes_resume_bit_for_bit(kind, request):
    _, seen = request.getfixturevalue(kind)
    assert [mine["resumed"] for mine in seen] == [{"same": True}] * 2


@pytest.mark.parametrize("kind", ["two", "sharded"])
def test_a_run_of_two_processes_goes_on_with_one(kind, request, tmp_path):
    folder, _ = request.getfixturevalue(kind)
    one = toy_trainer(folder / "steady", resume=True, **{**OPTIONS, "max_epochs": 3})
    assert one.fit(resume=True).steps == 12
    toy_trainer(tmp_path / "one", **{**OPTIONS, "max_epochs": 3}).fit()
    assert losses_of(folder / "steady") == pytest.approx(losses_of(tmp_path / "one"), abs=1e-6)


def test_sharded_parameters_train_in_half_precision(sharded):
    assert [mine["halves"] for mine in sharded[1]] == [{"precision": "bfloat16"}] * 2


def test_a_signal_to_one_process_stops_all_at_the_same_step(two):
    expected = {"steps": 3, "reason": "interrupted", "signal": signal.SIGTERM}
    assert [mine["interrupted"] for mine in two[1]] == [expected] * 2


def test_all_processes_name_the_examples_that_one_of_them_choked_on(two):
    for mine in two[1]:
        message, rows = mine["poisoned"]["error"], mine["poisoned"]["rows"]
        assert "At step 1, batch 2 of epoch 0, the loss is not finite." in message
        assert f"It has {len(rows)} examples, by index: {', '.join(map(str, rows))}." in message


def test_an_error_of_the_main_process_is_everybodys(two):
    assert [mine["failing"] for mine in two[1]] == [{"error": "process 0"}] * 2


def test_all_processes_agree_on_the_name_of_a_new_run(two):
    names = {mine["named"]["path"] for mine in two[1]}
    assert len(names) == 1
    assert [path.name for path in (two[0] / "named").iterdir()] == list(names)


def test_a_launcher_that_started_only_one_process_is_found_out(monkeypatch):
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")
    connect()
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    with pytest.raises(ConfigError, match="--multi_gpu"):
        connect()


def test_one_process_talks_to_itself():
    assert Circle().share([1.0, 2.0]) == [[1.0, 2.0]]
    assert on_main(lambda: 7) == 7

    def fail():
        raise DataError("mine")

    with pytest.raises(DataError, match="mine"):
        on_main(fail)
