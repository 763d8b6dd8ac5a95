"""`record`: hears what a model attends to, without changing what it computes.

Only what fires in the same thread, while the context is open, is heard; contexts may be nested. When the block ends
well, a tap that should have spoken and did not is an error that names it: a map is never missing in silence. When it
raises, nothing is kept and the error goes on as it is.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from torch import nn

from regard.core.errors import RecordingError
from regard.core.relations import Relation
from regard.core.tap import Tap, listening
from regard.core.tap import taps as taps_of
from regard.recording.recording import Recording


class _Recorder:
    """Collects relations; a tap that fires several times is a decoder that goes step by step."""

    def __init__(self, recording: Recording, addresses: dict[Tap, str]) -> None:
        self.recording = recording
        self.addresses = addresses
        self.heard: dict[str, list[Relation]] = {}

    def hear(self, tap: Tap, relation: Relation) -> None:
        address = self.addresses.get(tap)
        if address is not None:
            self.heard.setdefault(address, []).append(relation)

    def finish(self) -> None:
        for tap, address in self.addresses.items():
            if address in self.heard:
                self.recording.relations[address] = _joined(address, self.heard[address])
                self.recording.roles[address] = (tap.queries, tap.keys)

    def silent(self) -> list[str]:
        return [address for address in self.addresses.values() if address not in self.heard]


@contextmanager
def record(model: nn.Module, taps: str = "*") -> Iterator[Recording]:
    """Records the taps whose address matches the pattern, for one call of the model (or one loop of steps)."""
    chosen = {tap: address for address, tap in taps_of(model).items() if fnmatch.fnmatchcase(address, taps)}
    if not chosen:
        known = ", ".join(taps_of(model)) or "none: it has no attention that Regard knows"
        raise RecordingError(f"No tap of {type(model).__name__} matches {taps!r}. Its taps: {known}.")
    recorder = _Recorder(Recording(), chosen)
    with listening(recorder):
        yield recorder.recording
    recorder.finish()
    if silent := recorder.silent():
        raise RecordingError(
            f"These taps of {type(model).__name__} stayed silent: {', '.join(silent)}. Either the model was not "
            f"called inside the block (or in another thread), or only a part of it was; then name that part, "
            f'such as `record(model, taps="encoder.*")`.'
        )


def _joined(address: str, relations: list[Relation]) -> Relation:
    first, *later = relations
    for number, (before, relation) in enumerate(pairwise(relations), start=2):
        same_batch = (relation.batch, relation.heads) == (before.batch, before.heads)
        if not same_batch or relation.num_keys < before.num_keys:
            raise RecordingError(
                f"Call {number} of {address} has {relation.batch} examples and {relation.num_keys} keys, the one "
                f"before {before.batch} and {before.num_keys}: these are not steps over one batch. Record one call of "
                f"the model at a time."
            )
    return first.joined(later) if later else first
