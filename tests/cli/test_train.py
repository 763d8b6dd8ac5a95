from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.recipes.run import open_run, read_config
from regard.recording import film
from regard.training import RunFolder

from .conftest import TINY, Command


def test_a_run_and_what_it_says(regard: Command) -> None:
    result = regard("train", "rnnsearch", *TINY)
    assert result.code == 0
    (path,) = Path("runs/rnnsearch").iterdir()
    assert f"regard eval {path}" in result.out
    assert f"regard look {path}" in result.out
    assert "additive attention" in result.err
    assert "parameters" in result.err
    assert open_run(path).translate(["The cat sleeps ."])


def test_json_is_one_object(regard: Command) -> None:
    result = regard("train", "cho", *TINY, "--run", "here", "--json")
    found = result.json
    assert result.code == 0
    assert found["run"] == "here"
    assert found["steps"] == 2
    assert found["stopped_because"] == "max_steps"
    assert "bleu" in found["validation"]
    assert "aer" not in found["validation"]


def test_a_model_without_attention_is_not_to_be_looked_at(regard: Command) -> None:
    result = regard("train", "cho", *TINY)
    assert "regard predict runs/cho" in result.out


def test_a_film_of_the_training(regard: Command) -> None:
    assert regard("train", "rnnsearch", *TINY, "--run", "here", "--record-every", 1).code == 0
    assert [step for step, _ in film("here")] == [0, 1, 2]
    refused = regard("train", "cho", *TINY, "--run", "there", "--record-every", 1)
    assert refused.code == 2
    assert "'cho' model has no attention" in refused.err
    assert not Path("there").exists()
    assert "record_every" in regard("train", "--resume", "here", "--record-every", 2).err


def test_options_end_up_in_the_config(regard: Command, tsv: Path) -> None:
    options = ("--model.num-heads", "2", "--model.norm", "post", "--data.train", tsv)
    regard("train", "transformer", *TINY, "--run", "here", *options)
    config = read_config(RunFolder.open("here"))
    assert config.model.num_heads == 2
    assert config.model.norm == "post"
    assert config.data.source == "files"
    assert Path(config.data.train).is_absolute()
    assert config.expected == {}, "what a recipe expects holds for the recipe as it stands"


def test_the_attention_of_any_recipe_that_has_it(regard: Command, plugin: Path) -> None:
    for recipe in ("rnnsearch", "luong", "transformer"):
        result = regard(
            "train", recipe, *TINY, "--run", recipe, "--attention", "cosine_of_a_test", "--import", plugin, "--json"
        )
        assert result.code == 0, result.err
        assert read_config(RunFolder.open(recipe)).model.attention == "cosine_of_a_test"


def test_attention_for_a_model_that_has_none(regard: Command) -> None:
    result = regard("train", "cho", "--attention", "dot")
    assert result.code == 2
    assert "rnnsearch" in result.err
    assert "sutskever" not in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnnsaerch"], "Did you mean 'rnnsearch'?"),
        (["rnnsearch", "--attention", "aditive"], "Did you mean 'additive'?"),
        (["rnnsearch", "--model.cell", "gur"], "Did you mean 'gru'?"),
        (["transformer", "--model.positions", "learnt"], "Did you mean 'learned'?"),
        (["rnnsearch", "--training.schedule", "cosin"], "Did you mean 'cosine'?"),
        (["rnnsearch", "--training.optimizer", "adam"], "Did you mean 'adamw'?"),
        (["rnnsearch", "--data.tokenizer", "word"], "Did you mean 'words'?"),
        (["rnnsearch", "--model.width", "17"], "even"),
        (["rnnsearch", "--data.target-language", "de"], "en and fr"),
        (["--run", "here"], "Name the recipe first"),
        (["--resum", "here"], "did you mean --resume?"),
        (["rnnsearch", "--model.width", "0"], "width is 0, but it has to be at least 1"),
        (["transformer", "--model.num-encoder-blocks", "0"], "num_encoder_blocks is 0"),
        (["rnnsearch", "--model.dropout-rate", "1.5"], "dropout_rate is 1.5, but it is a probability"),
    ],
)
def test_a_wrong_choice_makes_no_folder(regard: Command, arguments: list[str], said: str) -> None:
    result = regard("train", *arguments, "--data.num-sentences", "60")
    assert result.code == 2
    assert said in result.err
    assert not Path("runs").exists()
    assert not Path("here").exists()


class TestBadData:
    """Each is one sentence, exit code 1, and no run folder."""

    def refused(self, regard: Command, *arguments: object) -> str:
        result = regard("train", "rnnsearch", *TINY, *arguments)
        assert result.code == 1
        assert not Path("runs").exists()
        error = [line for line in result.err.splitlines() if line.startswith("regard: error: ")]
        assert len(error) == 1
        return error[0]

    def test_a_missing_file(self, regard: Command, tsv: Path) -> None:
        assert f"Did you mean {tsv}?" in self.refused(regard, "--data.train", tsv.with_name("pair.tsv"))

    def test_a_folder(self, regard: Command, tmp_path: Path) -> None:
        assert "is a folder" in self.refused(regard, "--data.train", tmp_path)

    def test_an_empty_file(self, regard: Command, tmp_path: Path) -> None:
        (tmp_path / "empty.tsv").touch()
        assert "no usable pair" in self.refused(regard, "--data.train", tmp_path / "empty.tsv")

    def test_one_side_shorter(self, regard: Command, tmp_path: Path) -> None:
        (tmp_path / "a.en").write_text("One .\nTwo .\nThree .\n")
        (tmp_path / "a.fr").write_text("Un .\nDeux .\n")
        said = self.refused(regard, "--data.train", f"{tmp_path}/a.en,{tmp_path}/a.fr")
        assert "line 3" in said

    def test_an_over_long_sentence(self, regard: Command, tsv: Path) -> None:
        with tsv.open("a") as file:
            file.write("word " * 10_000 + "\tmot\n")
        assert "line 61: the source side has 10,000 words" in self.refused(regard, "--data.train", tsv)

    def test_what_is_skipped_is_reported(self, regard: Command, tsv: Path) -> None:
        with tsv.open("a") as file:
            file.write("only one column\n")
        result = regard("train", "rnnsearch", *TINY, "--data.train", tsv, "--data.on-bad", "skip")
        assert result.code == 0
        assert "skipped 1 with fewer than two columns (line 61)" in result.err


def test_a_place_that_is_taken(regard: Command, run: Path) -> None:
    result = regard("train", "rnnsearch", *TINY, "--run", run)
    assert result.code == 2
    assert "never overwritten" in result.err


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_place_that_cannot_be_written_to(regard: Command, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    make = Path.mkdir

    def refuse(self: Path, *arguments: object, **options: object) -> None:
        if "locked" in str(self):
            raise OSError(number, os.strerror(number), str(self))
        make(self, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", refuse)
    result = regard("train", "rnnsearch", *TINY, "--run", "locked/run")
    assert result.code == 1
    assert "locked/run" in result.err
    assert os.strerror(number) in result.err


def test_a_disk_that_is_full_at_the_first_checkpoint(regard: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("regard.training.checkpoints.save_file", fail)
    result = regard("train", "rnnsearch", *TINY, "--run", "here")
    assert result.code == 1
    assert "the disk is full; make room and use --resume" in result.err


class TestResuming:
    def test_with_a_larger_budget(self, regard: Command, own_run: Path) -> None:
        result = regard("train", "--resume", own_run, "--training.max-steps", "3", "--json")
        assert result.code == 0, result.err
        assert result.json["steps"] == 3
        assert read_config(RunFolder.open(own_run)).training.max_steps == 3

    def test_with_the_recipe_named_again(self, regard: Command, own_run: Path) -> None:
        assert regard("train", "rnnsearch", "--resume", own_run).code == 0

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--model.width", "32"], "--model.width cannot be given"),
            (["--training.learning-rate", "1", "--data.seed", "9"], "--data.seed, --training.learning_rate"),
            (["--attention", "dot"], "--attention"),
            (["--run", "elsewhere"], "--run"),
        ],
    )
    def test_nothing_else_may_change(self, regard: Command, own_run: Path, arguments: list[str], said: str) -> None:
        before = (own_run / "config.json").read_bytes()
        result = regard("train", "--resume", own_run, *arguments)
        assert result.code == 2
        assert said in result.err
        assert (own_run / "config.json").read_bytes() == before

    def test_another_recipe(self, regard: Command, own_run: Path) -> None:
        result = regard("train", "cho", "--resume", own_run)
        assert result.code == 2
        assert "'cho'" in result.err

    def test_what_is_no_run(self, regard: Command, tmp_path: Path) -> None:
        result = regard("train", "--resume", tmp_path)
        assert result.code == 1
        assert "not a run folder" in result.err

    def test_a_run_that_was_killed_before_its_tokenizers_were_written(self, regard: Command, own_run: Path) -> None:
        for path in [*own_run.glob("*tokenizer.json")]:
            path.unlink()
        assert regard("train", "--resume", own_run, "--training.max-steps", "3").code == 0
        assert open_run(own_run).translate(["The cat sleeps ."])


def test_ctrl_c_saves_and_the_run_goes_on(regard: Command, tmp_path: Path) -> None:
    program = "import sys; from regard.cli.main import main; sys.exit(main())"
    command = [
        sys.executable,
        "-c",
        program,
        "train",
        "cho",
        *TINY[:4],
        "--run",
        "here",
        "--training.max-epochs",
        "9999",
    ]
    command += ["--training.log-every", "1", "--training.precision", "float32", "--training.no-tensorboard"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ) as process:
        metrics, deadline = tmp_path / "here" / "metrics.jsonl", time.monotonic() + 120
        while not metrics.exists() or metrics.read_text().count("\n") < 3:
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == b""
    assert b"regard train --resume here" in err
    assert b"Traceback" not in err
    steps = json.loads(metrics.read_text().splitlines()[-1])["step"]
    result = regard("train", "--resume", "here", "--training.max-steps", str(steps + 2), "--json")
    assert result.code == 0
    assert result.json["steps"] == steps + 2
