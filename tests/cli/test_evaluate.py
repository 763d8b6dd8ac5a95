from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from .conftest import TINY, Command


def test_the_numbers_for_people(regard: Command, run: Path) -> None:
    result = regard("eval", run)
    assert result.code == 0
    assert "alignment error rate" in result.out
    assert "nrefs:1|case:mixed" in result.out
    assert "words  sentences  BLEU" in result.out
    assert "expected at least 90: MISSED" in result.out


def test_the_numbers_for_programs(regard: Command, run: Path) -> None:
    found = regard("eval", run, "--json").json
    assert found["recipe"] == "rnnsearch"
    assert found["part"] == "test"
    assert found["weights"].startswith("step-")
    assert found["sentences"] == 6
    assert {"bleu", "bleu_signature", "chrf", "chrf_signature", "aer", "loss", "bleu_by_length"} <= set(found)
    assert found["reached"]["bleu"] is False


def test_without_attention_there_is_no_alignment_error_rate(regard: Command, trained: dict[str, Path]) -> None:
    assert "aer" not in regard("eval", trained["cho"], "--json").json


def test_decoding_can_be_chosen(regard: Command, run: Path) -> None:
    found = regard("eval", run, "--decoding.method", "greedy", "--part", "valid", "--json").json
    assert found["decoding"]["method"] == "greedy"
    assert found["part"] == "valid"
    assert found["expected"] == {}, "the aim is for the test part"


def test_a_test_of_ones_own(regard: Command, run: Path, tsv: Path) -> None:
    found = regard("eval", run, "--data.test", tsv, "--json").json
    assert found["sentences"] == 60
    assert found["expected"] == {}
    assert "aer" not in found


def test_what_is_left_out_of_the_text_is_told_with_its_lines(regard: Command, run: Path, tsv: Path) -> None:
    tsv.write_text(tsv.read_text(encoding="utf-8") + "alone\n\tnothing\n", encoding="utf-8")
    assert "line 61" in regard("eval", run, "--data.test", tsv).err, "refused by default"
    result = regard("eval", run, "--data.test", tsv, "--data.on-bad", "skip", "--json")
    assert "1 with fewer than two columns (line 61)" in result.err
    assert result.json["sentences"] == 60
    assert result.json["report"]["skipped"] == {"columns": 1, "empty": 1}


def test_the_training_part_of_ones_own_text(regard: Command, tsv: Path) -> None:
    """Of which the ids alone were kept for training."""
    made = regard("train", "rnnsearch", *TINY, "--data.train", tsv, "--run", "own", "--json")
    assert made.code == 0, made.err
    found = regard("eval", "own", "--part", "train", "--json").json
    assert found["sentences"] == 58


def test_a_run_that_was_moved_is_the_same(regard: Command, run: Path, own_run: Path) -> None:
    there, here = regard("eval", run, "--json").json, regard("eval", own_run, "--json").json
    for changing in ("run", "seconds", "tokens_per_second"):
        there.pop(changing), here.pop(changing)
    assert there == here


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--weights", "averaged"], 1, "there are: step-"),
        (["--part", "tset"], 2, "test"),
        (["--data.test", "nowhere.tsv"], 1, "There is no file nowhere.tsv"),
        (["--data.tset", "x"], 2, "--data.test"),
        (["--decoding.num-best", "9"], 2, "beam_width"),
    ],
)
def test_what_cannot_be(regard: Command, run: Path, arguments: list[str], code: int, said: str) -> None:
    result = regard("eval", run, *arguments)
    assert result.code == code
    assert said in result.err
    assert result.out == ""


class TestDamage:
    """Of a run folder: always one sentence that says which file."""

    def said(self, regard: Command, run: Path) -> str:
        result = regard("eval", run)
        assert result.code == 1
        assert result.err.startswith("regard: error: ")
        return result.err

    def test_a_folder_that_is_no_run(self, regard: Command, tmp_path: Path) -> None:
        assert "is not a run folder" in self.said(regard, tmp_path)

    def test_a_place_that_does_not_exist(self, regard: Command) -> None:
        assert "nowhere is not a run folder" in self.said(regard, Path("nowhere"))

    def test_weights_that_lost_a_byte(self, regard: Command, own_run: Path) -> None:
        (weights,) = own_run.glob("checkpoints/step-*/model.safetensors")
        weights.write_bytes(weights.read_bytes()[:-1])
        assert "model.safetensors" in self.said(regard, own_run)

    def test_weights_of_which_a_byte_changed(self, regard: Command, own_run: Path) -> None:
        (weights,) = own_run.glob("checkpoints/step-*/model.safetensors")
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)
        assert "model.safetensors" in self.said(regard, own_run)

    def test_weights_that_are_gone(self, regard: Command, own_run: Path) -> None:
        shutil.rmtree(own_run / "checkpoints")
        assert "nothing has been saved" in self.said(regard, own_run)

    def test_a_tokenizer_that_was_edited(self, regard: Command, own_run: Path) -> None:
        path = own_run / "source_tokenizer.json"
        path.write_text(path.read_text().replace("the", "eht", 1))
        assert "source_tokenizer.json" in self.said(regard, own_run)

    def test_a_config_of_another_version(self, regard: Command, own_run: Path) -> None:
        path = own_run / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "version": 99, "regard": "7.0"}))
        said = self.said(regard, own_run)
        assert "layout 99" in said
        assert "regard==7.0" in said

    def test_a_config_with_a_field_of_the_future(self, regard: Command, own_run: Path) -> None:
        path = own_run / "config.json"
        header = json.loads(path.read_text())
        header["config"]["model"]["swirl"] = 3
        path.write_text(json.dumps(header))
        assert "model.swirl: extra inputs are not permitted" in self.said(regard, own_run)

    def test_a_config_that_is_no_json(self, regard: Command, own_run: Path) -> None:
        (own_run / "config.json").write_text("{")
        assert "config.json" in self.said(regard, own_run)

    def test_a_model_that_is_not_known_here(self, regard: Command, own_run: Path) -> None:
        path = own_run / "config.json"
        header = json.loads(path.read_text())
        header["config"]["model"]["kind"] = "rnnserch"
        path.write_text(json.dumps(header))
        result = regard("eval", own_run)
        assert result.code == 2
        assert "Did you mean 'rnnsearch'?" in result.err
