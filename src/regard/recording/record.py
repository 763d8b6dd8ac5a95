"""`record`: hears what a model attends to, without changing what it computes.

Only what happens in the same thread, while the context is open, is heard; contexts may be nested. When the block ends
well, a layer that should have spoken and did not is an error that names it: a map is never missing in silence. When it
raises, nothing is kept and the error goes on as it is.

Models of Regard speak through their taps. Of other models, torch's own, those of transformers, timm and torchvision or
yours, the attention calls themselves are heard (`regard.recording.foreign`).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.errors import RecordingError
from regard.core.relations import Relation
from regard.core.tap import Tap, listening
from regard.core.tap import taps as taps_of
from regard.recording.cost import parse_bytes
from regard.recording.foreign import Ear, listening_to_foreign
from regard.recording.recording import Recording
from regard.recording.spill import Store
from regard.recording.value_norms import with_value_norms


class _Recorder:
    """Collects relations; a tap that fires several times is a decoder that goes step by step."""

    def __init__(self, recording: Recording, addresses: dict[Tap, str]) -> None:
        self.recording = recording
        self.addresses = addresses
        self.heard: dict[str, list[Relation]] = {}
        self.store = Store(recording.budget)

    def hear(self, tap: Tap, relation: Relation) -> None:
        self.witness(tap, relation, None, None)

    @torch.no_grad()
    def witness(self, tap: Tap, relation: Relation, values: Tensor | None, context: Tensor | None) -> None:
        address = self.addresses.get(tap)
        if address is not None:
            whole = relation if values is None else with_value_norms(relation, values)
            heard = self.heard.setdefault(address, [])
            if torch.compiler.is_compiling():
                heard.append(whole)  # to look at it or to move it would cut the graph in two, and so change its numbers
                return
            if heard:
                heard[-1] = self.store.without_keys(heard[-1])
            heard.append(self.store.keep(whole))

    def finish(self) -> None:
        for tap, address in self.addresses.items():
            if address in self.heard:
                self.recording.relations[address] = _joined(address, self.heard[address])
                self.recording.roles[address] = (tap.queries, tap.keys)

    def silent(self) -> list[str]:
        return [address for address in self.addresses.values() if address not in self.heard]


@contextmanager
def record(
    model: nn.Module | Callable[..., Any], taps: str = "*", *, budget: int | str | None = None
) -> Iterator[Recording]:
    """Records the layers whose address matches the pattern, for one call of the model (or one loop of steps).

    `model` may also be a function: then every attention call while it runs is heard, by the name of its caller.
    Beyond a `budget` such as "2GB", what is recorded goes to a temporary file that views read from; views keep within
    it too. (`cost.recording_cost` says beforehand what a recording takes.)
    """
    limit = None if budget is None else parse_bytes(budget)
    model = getattr(model, "__self__", model) if not isinstance(model, nn.Module) else model
    known = taps_of(model) if isinstance(model, nn.Module) else {}
    chosen = {tap: address for address, tap in known.items() if fnmatch.fnmatchcase(address, taps)}
    ear = Ear(model, taps)
    foreign = ear.needed(has_taps=bool(known))
    if not chosen and not foreign:
        addresses = ", ".join([*known, *ear.known]) or "none: it has no attention that Regard knows"
        raise RecordingError(f"No tap of {ear.name} matches {taps!r}. Its taps: {addresses}.")
    recorder = _Recorder(Recording(budget=limit), chosen)
    with ExitStack() as stack:
        stack.enter_context(listening(recorder))
        if foreign:
            ear.keep = recorder.store.keep
            stack.enter_context(listening_to_foreign(ear))
        yield recorder.recording
    recorder.finish()
    silent = recorder.silent()
    if foreign:
        ear.check()
        ear.fill(recorder.recording)
        silent += ear.silent()
    if silent:
        raise RecordingError(
            f"These taps of {ear.name} stayed silent: {', '.join(silent)}. Either the model was not "
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
