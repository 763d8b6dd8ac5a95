import errno
import json

import pytest

from regard.core.errors import CheckpointError
from regard.training import RunFolder
from regard.training.journal import Journal


def written(folder, step, lines, tensorboard=False):
    journal = Journal(folder, step, tensorboard)
    for line in lines:
        journal.write(line)
    journal.flush()
    journal.close()


def test_after_a_resume_it_reads_as_if_never_interrupted(tmp_path):
    folder = RunFolder.create_at(tmp_path / "run", "toy")
    written(folder, 0, [{"step": step, "loss": 1 / step} for step in (1, 2, 3, 4)])
    with folder.metrics_file.open("a") as file:
        file.write('{"step": 5, "lo')
    written(folder, 2, [{"step": step, "loss": 1 / step} for step in (3, 4, 5)])
    assert [line["step"] for line in folder.metrics()] == [1, 2, 3, 4, 5]


def test_what_the_end_of_a_run_wrote_goes_when_it_is_extended(tmp_path):
    folder = RunFolder.create_at(tmp_path / "run", "toy")
    written(folder, 0, [{"step": 2, "loss": 1.0}, {"step": 2, "averaged": {"loss": 0.5}}])
    written(folder, 2, [])
    assert folder.metrics() == [{"step": 2, "loss": 1.0}]


def test_lines_are_strict_json(tmp_path):
    folder = RunFolder.create_at(tmp_path / "run", "toy")
    written(folder, 0, [{"step": 1, "validation": {"loss": float("nan"), "bleu": float("inf")}}])
    line = json.loads(folder.metrics_file.read_text(), parse_constant=lambda name: 1 / 0)
    assert line == {"step": 1, "validation": {"loss": None, "bleu": None}}


def test_tensorboard_shows_the_same_and_drops_what_a_resume_repeats(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = RunFolder.create_at(tmp_path / "run", "toy")
    lines = [{"step": step, "loss": float(step), "parts": {"square": 2.0 * step}} for step in (1, 2, 3)]
    written(folder, 0, [*lines, {"step": 3, "validation": {"bleu": 30.0}, "best": True}], tensorboard=True)
    written(folder, 2, [{"step": 3, "loss": 33.0}], tensorboard=True)
    events = EventAccumulator(str(folder.events))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("train/loss")] == [(1, 1.0), (2, 2.0), (3, 33.0)]
    assert [event.value for event in events.Scalars("train/square")] == [2.0, 4.0]
    assert "validation/best" not in events.Tags()["scalars"]


def test_a_full_disk_is_a_clear_error(tmp_path):
    class Full:
        name = "metrics.jsonl"

        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    journal = Journal(RunFolder.create_at(tmp_path / "run", "toy"), 0, False)
    journal.close()
    journal._file = Full()
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl could not be written: No space left"):
        journal.write({"step": 1})
    journal.close()


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path):
    folder = RunFolder.create_at(tmp_path / "run", "toy")
    folder.metrics_file.mkdir()
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl cannot be"):
        Journal(folder, 0, False)
