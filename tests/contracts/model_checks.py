"""Contracts of sequence-to-sequence models; a subject has `build(rate, seed)`, to make one with dropout `rate`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.core.errors import RecordingError
from regard.core.special import BOS
from regard.core.tap import taps
from regard.recording import Recording, record
from regard.training.weights import gather_model, scatter_model

from .subjects import SOURCE_LENGTHS, SOURCE_VOCABULARY, TARGET_LENGTHS, batch, features, loss

Record = Callable[[nn.Module], Any]


class Subject(Protocol):
    def build(self, rate: float = 0.0, seed: int = 0) -> nn.Module: ...


def check_ignores_the_future(subject: Subject) -> None:
    """A token whose vector would drown every other is planted in the target: what is before it stays as it was."""
    model = subject.build().eval()
    source, target = batch()
    planted, place = SOURCE_VOCABULARY - 1, 2
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Embedding):
                module.weight[planted] = 30 * torch.randn(module.embedding_dim)
        before = features(model, source, target)
        target[:, place] = planted
        after = features(model, source, target)
    torch.testing.assert_close(after[:, :place], before[:, :place], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(after[:, place:], before[:, place:], atol=1e-2), "what was planted changes nothing"


def check_alone_equals_batch(subject: Subject) -> None:
    model = subject.build().eval()
    source, target = batch()
    with torch.no_grad():
        together = features(model, source, target)
        for row, (sources, targets) in enumerate(zip(SOURCE_LENGTHS, TARGET_LENGTHS, strict=True)):
            alone = features(model, source[row : row + 1, :sources], target[row : row + 1, :targets])
            torch.testing.assert_close(together[row : row + 1, :targets], alone, rtol=1e-4, atol=1e-5)


def check_nothing_but_padding_is_finite(subject: Subject) -> None:
    """A source without any token gives numbers, forwards and backwards, and does not disturb its neighbours."""
    model = subject.build()
    source, target = batch()
    before = model(source, target).logits[:2]
    source[2] = 0
    value = model(source, target).logits
    value.square().sum().backward()
    assert value.isfinite().all(), "an empty source gives no numbers"
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters()), "an empty source spoils gradients"
    torch.testing.assert_close(value[:2], before, rtol=1e-4, atol=1e-5)


def check_every_parameter_gets_a_gradient(subject: Subject) -> None:
    model = subject.build()
    loss(model, *batch()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, f"{name} gets no gradient"
        assert parameter.grad.any(), f"{name} gets no gradient"


def check_the_source_is_read(subject: Subject) -> None:
    model = subject.build().eval()
    source, target = batch()
    other, _ = batch(seed=1)
    with torch.no_grad():
        assert not torch.allclose(features(model, source, target), features(model, other, target), atol=1e-4)


def check_nothing_is_left_behind(subject: Subject) -> None:
    """No tensor on a module, and a call does not depend on the one before."""
    model = subject.build().eval()
    known = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    with torch.no_grad():
        once = features(model, *batch())
        features(model, *batch(seed=1))
        model.step(torch.full((3, 1), BOS), model.start(model.encode(batch()[0]), 5))
        again = features(model, *batch())
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            assert not isinstance(value, Tensor) or id(value) in known, f"{path}.{name} is left behind"
    assert torch.equal(once, again), "a call depends on the one before"


def check_recording_changes_nothing(subject: Subject, record: Record = record) -> None:
    """Bit for bit: outputs, gradients and the random numbers that come after; evaluation, training, autocast."""
    for training, autocast in ((False, False), (True, False), (True, True)):
        results = []
        for recorded in (False, True):
            model = subject.build(rate=0.3).train(training)
            source, target = batch()
            torch.manual_seed(1)
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                if recorded and taps(model):
                    with record(model):
                        value = features(model, source, target)
                else:
                    value = features(model, source, target)
            value.float().square().sum().backward()
            results.append([value, *(parameter.grad for parameter in model.parameters()), torch.get_rng_state()])
        for without, with_recording in zip(*results, strict=True):
            same = without is None or torch.equal(without, with_recording)
            assert same, f"recording changes what is computed ({training=}, {autocast=})"


def check_every_tap_fires(subject: Subject) -> None:
    """And what it says fits the batch: its axes, rows that sum to one or zero, nothing on padding."""
    model = subject.build().eval()
    if not taps(model):
        return
    source, target = batch()
    try:
        with record(model) as recording, torch.no_grad():
            features(model, source, target)
    except RecordingError as error:
        raise AssertionError(str(error)) from error
    tokens = {"source": source, "target": target}
    for address in taps(model):
        seen = recording[address]
        assert {seen.queries, seen.keys} <= tokens.keys(), f"{address} relates unknown axes"
        assert seen.shape[0] == len(source)
        assert seen.shape[2:] == (tokens[seen.queries].shape[1], tokens[seen.keys].shape[1]), f"{address}: {seen}"
        sums = seen.weights().sum(dim=-1)
        torch.testing.assert_close(sums, (sums > 0.5).float(), rtol=0, atol=1e-5)
        if seen.keys == "source":
            padded = (source == 0)[:, None, None, :].expand(seen.shape)
            assert not seen.weights()[padded].any(), f"{address} looks at padding"


def check_threads_hear_only_themselves(subject: Subject, record: Record = record) -> None:
    """Two threads record one model at the same time, each with a batch of its own."""
    model = subject.build().eval()
    if not taps(model):
        return
    expected = [_recorded(model, seed) for seed in (0, 1)]
    heard: dict[int, Recording] = {}
    both_open, both_done = threading.Barrier(2, timeout=20), threading.Barrier(2, timeout=20)

    def run(seed: int) -> None:
        with record(model) as recording, torch.no_grad():
            both_open.wait()
            features(model, *batch(seed))
            both_done.wait()
        heard[seed] = recording

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (0, 1):
        assert seed in heard, "recording in a thread failed"
        _assert_same_recordings(heard[seed], expected[seed])


def check_recordings_nest(subject: Subject, record: Record = record) -> None:
    model = subject.build().eval()
    if not taps(model):
        return
    with record(model) as outer, record(model) as inner, torch.no_grad():
        features(model, *batch())
    _assert_same_recordings(outer, inner)
    _assert_same_recordings(outer, _recorded(model, 0))


def check_an_error_leaves_nothing_open(subject: Subject, record: Record = record) -> None:
    model = subject.build().eval()
    if not taps(model):
        return

    def stopped() -> None:
        with record(model):
            features(model, *batch(1))
            raise KeyboardInterrupt("in the middle")

    with pytest.raises(KeyboardInterrupt, match="in the middle"):
        stopped()
    assert not any(tap.open for tap in taps(model).values()), "somebody still listens"
    with record(model) as again, torch.no_grad():
        features(model, *batch())
    _assert_same_recordings(again, _recorded(model, 0))


def check_steps_equal_the_whole(subject: Subject) -> None:
    """Hypotheses that grow, fork, die and leave: their features are those of their whole prefix."""
    model = subject.build().eval()
    source, _ = batch()
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        state = model.start(model.encode(source), max_length=9)
        prefixes = torch.full((len(source), 1, 1), BOS)
        for kept, width in (([0, 1, 2], 1), ([0, 1, 2], 3), ([2, 0], 3), ([0, 1], 2), ([1], 5), ([0], 1)):
            value, state = model.step(prefixes[:, :, -1], state)
            _assert_features_of(model, source, prefixes, value)
            sentences = torch.tensor(kept)
            beams = torch.randint(prefixes.shape[1], (len(kept), width), generator=generator)
            following = torch.randint(4, SOURCE_VOCABULARY, (len(kept), width, 1), generator=generator)
            source, state = source[sentences], state.keep(sentences).reorder(beams)
            prefixes = torch.cat([prefixes[sentences[:, None], beams], following], dim=2)


def check_a_state_is_a_value(subject: Subject) -> None:
    """Reading the same tokens twice from one state gives the same twice."""
    model = subject.build().eval()
    with torch.no_grad():
        state = model.start(model.encode(batch()[0]), max_length=9)
        _, state = model.step(torch.full((3, 1), BOS), state)
        one, _ = model.step(torch.full((3, 1), 5), state)
        again, _ = model.step(torch.full((3, 1), 5), state)
    assert torch.equal(one, again), "a step depends on one that was not asked for"


def check_checkpoints_keep_everything(subject: Subject) -> None:
    """Through a file and back: equal outputs, tied tensors stay tied."""
    one, other = subject.build(seed=1).eval(), subject.build(seed=2).eval()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        tensors, aliases = gather_model(one)
        save_file(tensors, path)
        loaded = load_file(path)
        scatter_model(other, loaded | {name: loaded[first] for name, first in aliases.items()}, "the file")
    assert len(list(one.parameters())) == len(list(other.parameters()))
    assert _tied(one) == _tied(other), "what was tied is not tied any more"
    with torch.no_grad():
        expected, got = one(*batch()).logits, other(*batch()).logits
    assert torch.equal(got, expected), "something learned is not in the checkpoint"


def check_one_batch_can_be_learned(subject: Subject) -> None:
    model = subject.build()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    first = last = loss(model, *batch()).detach()
    for _ in range(60):
        optimizer.zero_grad()
        last = loss(model, *batch())
        last.backward()
        optimizer.step()
        if last < 0.1 * first:
            return
    raise AssertionError(f"the loss of one batch went from {first:.2f} to {last:.2f} only")


def _recorded(model: nn.Module, seed: int) -> Recording:
    with record(model) as recording, torch.no_grad():
        features(model, *batch(seed))
    return recording


def _assert_same_recordings(one: Recording, other: Recording) -> None:
    assert one.addresses == other.addresses
    for address in one.addresses:
        same = one[address].shape == other[address].shape and torch.equal(
            one[address].weights(), other[address].weights()
        )
        assert same, f"{address} was heard differently"


def _assert_features_of(model: nn.Module, source: Tensor, prefixes: Tensor, value: Tensor) -> None:
    """`value` are the features of every hypothesis' last token."""
    whole = features(model, source.repeat_interleave(prefixes.shape[1], dim=0), prefixes.flatten(0, 1))
    torch.testing.assert_close(value.flatten(0, 1), whole[:, -1], rtol=1e-4, atol=1e-5)


def _tied(model: nn.Module) -> set[frozenset[str]]:
    places: dict[int, set[str]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        places.setdefault(tensor.data_ptr(), set()).add(name)
    return {frozenset(names) for names in places.values() if len(names) > 1}


def checks() -> Iterator[tuple[str, Callable[[Subject], None]]]:
    for name, value in globals().items():
        if name.startswith("check_"):
            yield name.removeprefix("check_"), value


CHECKS = dict(checks())
