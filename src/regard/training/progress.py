"""What a person sees while a run goes on: a bar on a terminal, a line now and then elsewhere.

All of it goes to standard error, so that standard output carries results only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

PLAIN_PAUSE = 5.0
"""Seconds at least between two plain lines, however often something is logged."""


class ProgressDisplay:
    """Shows how far the run is; silent in all processes but the main one."""

    def __init__(self, visible: bool, terminal: bool | None = None) -> None:
        self.visible = visible
        self.terminal = sys.stderr.isatty() if terminal is None else terminal
        self._bar: Any = None
        self._last_plain = -PLAIN_PAUSE

    def __enter__(self) -> ProgressDisplay:
        if self.visible and self.terminal:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("epoch {task.fields[epoch]:.2f}"),
                BarColumn(bar_width=None),
                TextColumn("{task.fields[numbers]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("training", total=1.0, epoch=0.0, numbers="starting")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def show(self, line: Mapping[str, Any], fraction: float, seconds_left: float | None) -> None:
        """The numbers of a log line, and the part of the run that is done."""
        if not self.visible:
            return
        numbers = describe(line, seconds_left)
        if self._bar is not None:
            self._bar.update(self._task, completed=fraction, epoch=line["epoch"], numbers=numbers)
        elif not self.terminal and time.monotonic() - self._last_plain >= PLAIN_PAUSE:
            self._last_plain = time.monotonic()
            self._print(f"step {line['step']}  epoch {line['epoch']:.2f}  {numbers}")

    def note(self, text: str) -> None:
        """A sentence that stays: a validation, a warning, how to resume."""
        if not self.visible:
            return
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            self._print(text)

    def _print(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


def describe(line: Mapping[str, Any], seconds_left: float | None) -> str:
    """Loss, speed, learning rate and time left in a few words."""
    words = [f"loss {line['loss']:.4f}", f"{line['per_second']:,.0f}/s", f"rate {line['learning_rate']:.2e}"]
    if seconds_left is not None:
        words.append(f"{duration(seconds_left)} left")
    return "  ".join(words)


def duration(seconds: float) -> str:
    """Hours, minutes and seconds as 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
