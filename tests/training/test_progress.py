import pytest

from regard.training import progress
from regard.training.progress import ProgressDisplay, describe, duration

LINE = {"step": 50, "epoch": 0.25, "loss": 1.5, "per_second": 1234.4, "learning_rate": 1e-3}


def test_plain_lines_go_to_standard_error_without_spamming(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with ProgressDisplay(visible=True, terminal=False) as display:
        for seconds in (0, 1, 4.9, 0.2, 1):
            now[0] += seconds
            display.show(LINE, 0.1, 61.0)
        display.note("step 50  validation: loss 1.0")
    captured = capsys.readouterr()
    assert captured.out == ""
    shown = "step 50  epoch 0.25  loss 1.5000  1,234/s  rate 1.00e-03  1:01 left"
    assert captured.err.splitlines() == [shown, shown, "step 50  validation: loss 1.0"]


def test_a_terminal_gets_a_bar_and_standard_output_stays_clean(capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with ProgressDisplay(visible=True, terminal=True) as display:
        display.show(LINE, 0.5, None)
        display.note("step 50 [best]")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "step 50 [best]" in captured.err
    assert "epoch 0.25" in captured.err
    assert "1.5000" in captured.err


def test_other_processes_are_silent(capsys):
    with ProgressDisplay(visible=False, terminal=False) as display:
        display.show(LINE, 0.5, None)
        display.note("nothing")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0:00"), (59.6, "1:00"), (61, "1:01"), (3599, "59:59"), (3723, "1:02:03")]
)
def test_durations(seconds, shown):
    assert duration(seconds) == shown


def test_time_left_is_left_out_where_nobody_knows():
    assert "left" not in describe(LINE, None)
