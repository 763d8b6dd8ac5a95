"""Models that are broken in one way each, and the contract that has to notice it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from regard.core import tap as tap_module
from regard.core.masks import Allow
from regard.core.tap import Tap, taps
from regard.recording import Recording
from regard.recording.record import _Recorder, record

from . import model_checks as contracts
from .subjects import Subject


@dataclass(frozen=True)
class Mutant:
    """A registered model, altered after it was built; or a recorder that is broken."""

    contract: Callable[..., None]
    alter: Callable[[nn.Module], Any] = lambda model: None
    kind: str = "transformer"
    record: Callable[[nn.Module], Any] | None = None

    @property
    def name(self) -> str:
        what = self.record.__name__ if self.record else self.alter.__name__
        return f"{what}-{self.kind}-{self.contract.__name__}"

    @property
    def check(self) -> Callable[[Any], None]:
        return partial(self.contract, record=self.record) if self.record else self.contract

    def build(self, rate: float = 0.0, seed: int = 0) -> nn.Module:
        model = Subject(self.kind).build(rate, seed)
        self.alter(model)
        return model


def sees_the_future(model: nn.Module) -> None:
    for block in model.decoder:
        attend = block.attention.attend
        block.attention.attend = lambda *given, allow, bias, attend=attend: attend(*given, allow=Allow(), bias=bias)


def is_deaf(model: nn.Module) -> None:
    forward = model.forward

    def deaf(source, target):
        output = forward(source, target)
        return replace(output, features=0 * output.features)

    model.forward = deaf


def does_not_read_the_source(model: nn.Module) -> None:
    forward = model.forward
    model.forward = lambda source, target: forward(torch.where(source == 0, 0, 5), target)


def looks_at_padding(model: nn.Module) -> None:
    encode = model.encode

    def encode_all(source):
        return tuple(replace(memory, allow=Allow()) for memory in encode(source))

    model.encode = encode_all


def nan_for_nobody(model: nn.Module) -> None:
    forward = model.forward

    def spoiled(source, target):
        output = forward(source, target)
        empty = (source == 0).all(dim=1)[:, None, None]
        return replace(output, features=output.features.masked_fill(empty, torch.nan))

    model.forward = spoiled


def has_a_dead_parameter(model: nn.Module) -> None:
    model.unused = nn.Parameter(torch.ones(3))


def freezes_a_part(model: nn.Module) -> None:
    contract = model.encoder[1].feed_forward.contract
    contract.forward = lambda inputs: nn.functional.linear(inputs, contract.weight.detach(), contract.bias)


def keeps_its_memory(model: nn.Module) -> None:
    encode = model.encode

    def keep(source):
        model.last_source = source
        return encode(source)

    model.encode = keep


def averages_over_calls(model: nn.Module) -> None:
    forward, model.sums = model.forward, []

    def averaged(source, target):
        output = forward(source, target)
        model.sums.append(output.features.sum())
        return replace(output, features=output.features + sum(model.sums) * 1e-3)

    model.forward = averaged


def listens_and_changes(model: nn.Module) -> None:
    forward, tap = model.forward, next(iter(taps(model).values()))

    def changed(source, target):
        output = forward(source, target)
        return replace(output, features=output.features * (1 + 1e-6 * tap.open))

    model.forward = changed


def draws_when_heard(model: nn.Module) -> None:
    forward, tap = model.forward, next(iter(taps(model).values()))

    def drawing(source, target):
        if tap.open:
            torch.rand(1)
        return forward(source, target)

    model.forward = drawing


def has_a_silent_tap(model: nn.Module) -> None:
    model.decoder[1].extra = Tap("target", "source")


def looks_at_padding_in_the_record(model: nn.Module) -> None:
    for block in model.decoder:
        mechanism = block.cross.mechanism
        mechanism.tap.emit = lambda make, *_, tap=mechanism.tap: Tap.emit(tap, lambda: replace(make(), allow=Allow()))


def mixes_up_its_axes(model: nn.Module) -> None:
    for tap in taps(model).values():
        tap.queries, tap.keys = tap.keys, tap.queries


def forgets_the_position(model: nn.Module) -> None:
    step = model.step

    def at_the_start(tokens, state):
        value, following = step(tokens, replace(state, position=0))
        return value, replace(following, position=state.position + 1)

    model.step = at_the_start


def does_not_reorder(model: nn.Module) -> None:
    """The beams are forked, but always from the first ones."""
    start = model.start

    def fixed(memory, max_length):
        return Stubborn(start(memory, max_length))

    model.start, step = fixed, model.step

    def stubborn_step(tokens, state):
        value, following = step(tokens, state.state)
        return value, Stubborn(following)

    model.step = stubborn_step


@dataclass(frozen=True)
class Stubborn:
    state: Any

    def keep(self, sentences):
        return Stubborn(self.state.keep(sentences))

    def reorder(self, beams):
        return Stubborn(self.state.reorder(torch.zeros_like(beams)))


def keeps_the_first_sentences(model: nn.Module) -> None:
    does_not_reorder(model)
    start = model.start
    model.start = lambda memory, max_length: Careless(start(memory, max_length).state)
    step = Subject("transformer").build().__class__.step

    def careless_step(tokens, state):
        value, following = step(model, tokens, state.state)
        return value, Careless(following)

    model.step = careless_step


@dataclass(frozen=True)
class Careless:
    state: Any

    def keep(self, sentences):
        return Careless(self.state.keep(torch.arange(len(sentences))))

    def reorder(self, beams):
        return Careless(self.state.reorder(beams))


def grows_its_state_in_place(model: nn.Module) -> None:
    """The same list is handed on: a second step from one state sees the first."""
    start, step, whole = model.start, model.step, []

    def first(memory, max_length):
        whole[:] = [start(memory, max_length)]
        return whole

    def following(tokens, state):
        value, state[0] = step(tokens, state[0])
        return value, state

    model.start, model.step = first, following


def hides_a_tensor(model: nn.Module) -> None:
    hidden = [torch.randn(())]
    forward = model.forward

    def moved(source, target):
        output = forward(source, target)
        return replace(output, features=output.features + hidden[0])

    model.forward = moved


def unties_when_loaded(model: nn.Module) -> None:
    state = model.readout.weight
    if torch.initial_seed() == 2:  # the one that is loaded into
        model.readout.weight = nn.Parameter(state.detach().clone())


def learns_nothing(model: nn.Module) -> None:
    forward = model.forward

    def constant(source, target):
        output = forward(source, target)
        return replace(output, features=output.features.detach() * 0 + model.readout.weight.mean())

    model.forward = constant


_everybody: list[Any] = []
_emit = Tap.emit


@contextmanager
def one_list_for_all_threads(model: nn.Module) -> Iterator[Recording]:
    """What a recorder with a global list of listeners would hear."""
    recorder = _Recorder(Recording(), {tap: address for address, tap in taps(model).items()})
    _everybody.append(recorder)
    Tap.emit = lambda tap, make, *_: [listener.hear(tap, make()) for listener in _everybody]
    try:
        yield recorder.recording
    finally:
        Tap.emit = _emit
        _everybody.remove(recorder)
        recorder.finish()


@contextmanager
def the_inner_one_only(model: nn.Module) -> Iterator[Recording]:
    """A recorder that takes the place of the one around it."""
    recorder = _Recorder(Recording(), {tap: address for address, tap in taps(model).items()})
    token = tap_module._listeners.set((recorder,))
    try:
        yield recorder.recording
    finally:
        tap_module._listeners.reset(token)
        recorder.finish()


@contextmanager
def never_stops(model: nn.Module) -> Iterator[Recording]:
    """A recorder that closes only when all went well."""
    recorder = _Recorder(Recording(), {tap: address for address, tap in taps(model).items()})
    token = tap_module._listeners.set((recorder,))
    yield recorder.recording
    tap_module._listeners.reset(token)
    recorder.finish()


@contextmanager
def rounds_what_it_hears(model: nn.Module) -> Iterator[Recording]:
    """A recorder that computes the map itself, in the place of the model, from lower precision."""
    forwards = {module: module.forward for module in model.modules() if isinstance(module, nn.Linear)}
    for module, forward in forwards.items():
        module.forward = lambda inputs, forward=forward: forward(inputs.bfloat16().to(inputs.dtype))
    try:
        with record(model) as recording:
            yield recording
    finally:
        for module, forward in forwards.items():
            module.forward = forward


MUTANTS = [
    Mutant(contracts.check_ignores_the_future, sees_the_future),
    Mutant(contracts.check_ignores_the_future, is_deaf, "rnnsearch"),
    Mutant(contracts.check_alone_equals_batch, looks_at_padding),
    Mutant(contracts.check_alone_equals_batch, sees_the_future),
    Mutant(contracts.check_nothing_but_padding_is_finite, nan_for_nobody, "luong"),
    Mutant(contracts.check_every_parameter_gets_a_gradient, has_a_dead_parameter, "sutskever"),
    Mutant(contracts.check_every_parameter_gets_a_gradient, freezes_a_part),
    Mutant(contracts.check_the_source_is_read, does_not_read_the_source, "cho"),
    Mutant(contracts.check_nothing_is_left_behind, keeps_its_memory),
    Mutant(contracts.check_nothing_is_left_behind, averages_over_calls, "luong"),
    Mutant(contracts.check_recording_changes_nothing, listens_and_changes),
    Mutant(contracts.check_recording_changes_nothing, draws_when_heard, "rnnsearch"),
    Mutant(contracts.check_recording_changes_nothing, record=rounds_what_it_hears),
    Mutant(contracts.check_every_tap_fires, has_a_silent_tap),
    Mutant(contracts.check_every_tap_fires, looks_at_padding_in_the_record),
    Mutant(contracts.check_every_tap_fires, mixes_up_its_axes, "luong"),
    Mutant(contracts.check_threads_hear_only_themselves, record=one_list_for_all_threads, kind="luong"),
    Mutant(contracts.check_recordings_nest, record=the_inner_one_only),
    Mutant(contracts.check_an_error_leaves_nothing_open, record=never_stops),
    Mutant(contracts.check_steps_equal_the_whole, forgets_the_position),
    Mutant(contracts.check_steps_equal_the_whole, does_not_reorder),
    Mutant(contracts.check_steps_equal_the_whole, does_not_reorder, "luong"),
    Mutant(contracts.check_steps_equal_the_whole, keeps_the_first_sentences),
    Mutant(contracts.check_a_state_is_a_value, grows_its_state_in_place, "rnnsearch"),
    Mutant(contracts.check_checkpoints_keep_everything, hides_a_tensor, "cho"),
    Mutant(contracts.check_checkpoints_keep_everything, unties_when_loaded),
    Mutant(contracts.check_one_batch_can_be_learned, learns_nothing, "sutskever"),
]
