"""The record of a run: lines of JSON for programs, TensorBoard events for people.

After a resume both read as if the run had never been interrupted: what was written after the checkpoint that it
resumes from is dropped.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from typing import Any

from regard.core.errors import CheckpointError
from regard.core.files import write_text
from regard.training.run_folder import RunFolder


class Journal:
    """Appends to `metrics.jsonl` and to `events/`; used by the main process alone."""

    def __init__(self, folder: RunFolder, step: int, tensorboard: bool) -> None:
        """`step` is the one that the run goes on from."""
        kept = [line for line in folder.metrics() if line["step"] <= step and "averaged" not in line]
        try:
            write_text(folder.metrics_file, "".join(_line(line) for line in kept))
            self._file = folder.metrics_file.open("a", encoding="utf-8")
        except OSError as error:
            raise CheckpointError(f"{folder.metrics_file} cannot be written: {error.strerror or error}.") from error
        self._events = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._events = SummaryWriter(str(folder.events), purge_step=step + 1 if step else None)

    def write(self, line: Mapping[str, Any]) -> None:
        """One line; nested numbers become `group/name` in TensorBoard."""
        try:
            self._file.write(_line(line))
            self._file.flush()
        except OSError as error:
            raise CheckpointError(f"{self._file.name} could not be written: {error.strerror or error}.") from error
        if self._events is None:
            return
        group = next((kind for kind in ("validation", "averaged") if kind in line), "train")
        for name, value in {**line, **line.get("parts", {}), **line.get(group, {})}.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and name != "step":
                self._events.add_scalar(f"{group}/{name}", value, line["step"])

    def flush(self) -> None:
        if self._events is not None:
            self._events.flush()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        if self._events is not None:
            self._events.close()


def _line(line: Mapping[str, Any]) -> str:
    return json.dumps(_finite(line), ensure_ascii=False) + "\n"


def _finite(value: Any) -> Any:
    """JSON knows no infinity and no NaN; both become null."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
