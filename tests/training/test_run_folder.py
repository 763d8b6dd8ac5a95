import json
import shutil

import pytest

from regard.core.errors import CheckpointError, ConfigError
from regard.training import RunFolder
from regard.training.run_folder import time as run_time


def test_a_new_run_has_a_place_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(run_time, "strftime", lambda *_: "2025-01-02_03-04-05")
    first = RunFolder.create(tmp_path, "toy", {"width": 7})
    second = RunFolder.create(tmp_path, "toy", {"width": 11})
    assert first.path == tmp_path / "toy" / "2025-01-02_03-04-05"
    assert second.path == tmp_path / "toy" / "2025-01-02_03-04-05-2"
    assert (first.recipe, first.config) == ("toy", {"width": 7})
    assert RunFolder.open(second.path).config == {"width": 11}


def test_an_existing_run_is_never_overwritten(tmp_path):
    RunFolder.create_at(tmp_path / "run", "toy")
    with pytest.raises(ConfigError, match=r"already holds a run.*--resume"):
        RunFolder.create_at(tmp_path / "run", "toy")
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ConfigError, match="something else"):
        RunFolder.create_at(tmp_path, "toy")
    with pytest.raises(ConfigError, match="something else"):
        RunFolder.create_at(tmp_path / "thesis.tex", "toy")


def test_an_empty_folder_may_become_a_run(tmp_path):
    assert RunFolder.create_at(tmp_path, "toy").config == {}


def test_a_run_knows_nothing_of_its_place(tmp_path):
    folder = RunFolder.create_at(tmp_path / "here", "toy", {"width": 7})
    assert str(tmp_path) not in folder.config_file.read_text()
    shutil.move(folder.path, tmp_path / "there")
    assert RunFolder.open(tmp_path / "there").config == {"width": 7}


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        RunFolder.open(tmp_path / "nowhere")
    for content in ("{", "[]", '{"width": 7}'):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(CheckpointError, match=r"config\.json"):
            RunFolder.open(tmp_path)


def test_another_layout_says_who_wrote_it_and_what_to_do(tmp_path):
    folder = RunFolder.create_at(tmp_path / "run", "toy")
    header = json.loads(folder.config_file.read_text())
    folder.config_file.write_text(json.dumps({**header, "version": 7, "regard": "9.9.9"}))
    with pytest.raises(CheckpointError, match=r"regard 9.9.9 in layout 7.*pip install regard==9.9.9"):
        RunFolder.open(folder.path)


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be made: Not a directory"):
        RunFolder.create_at(tmp_path / "file" / "run", "toy")


def test_an_unfinished_line_of_metrics_is_not_one(tmp_path):
    folder = RunFolder.create_at(tmp_path / "run", "toy")
    assert folder.metrics() == []
    folder.metrics_file.write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert folder.metrics() == [{"step": 1}, {"step": 2}]
