"""`record`: which taps are heard, steps that belong together, and sentences for what went wrong."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import regard
from regard.attention import build_mechanism
from regard.core.errors import RecordingError
from regard.recording import Recording, record


class Pair(nn.Module):
    """Two mechanisms, the second of which may be left out."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = build_mechanism("dot", 3, 3, 3, queries="source", keys="source")
        self.decoder = build_mechanism("additive", 3, 3, 3, queries="target", keys="source")

    def forward(self, source: torch.Tensor, target: torch.Tensor | None = None) -> torch.Tensor:
        memory = self.encoder(source, source, source)
        return memory if target is None else self.decoder(target, memory, memory)


@pytest.fixture
def model() -> Pair:
    return Pair()


def sequence(batch: int = 2, length: int = 5) -> torch.Tensor:
    return torch.randn(batch, length, 3)


def test_all_taps_with_their_roles(model: Pair) -> None:
    with regard.record(model) as recording:
        model(sequence(), sequence(length=7))
    assert isinstance(recording, Recording)
    assert recording.roles == {"encoder": ("source", "source"), "decoder": ("target", "source")}
    assert recording["decoder"].shape == (2, 1, 7, 5)
    assert [recording[address].relation.form for address in recording] == ["dot", "dense"]


def test_chosen_taps(model: Pair) -> None:
    with record(model, taps="enc*") as recording:
        model(sequence())
    assert recording.addresses == ["encoder"]


def test_what_is_recorded_holds_no_graph(model: Pair) -> None:
    source = sequence().requires_grad_()
    with record(model) as recording:
        model(source, source)
    for address in recording:
        assert not any(tensor.requires_grad for tensor in recording[address].relation.tensors().values())


def test_the_recording_is_filled_when_the_block_ends(model: Pair) -> None:
    with record(model, taps="encoder") as recording:
        model(sequence())
        assert len(recording) == 0
    assert len(recording) == 1


def test_no_tap_matches(model: Pair) -> None:
    with pytest.raises(RecordingError, match=r"No tap of Pair matches 'cross\*'. Its taps: encoder, decoder\."):
        record(model, taps="cross*").__enter__()
    with pytest.raises(RecordingError, match="none: it has no attention that Regard knows"):
        record(nn.Linear(3, 5)).__enter__()


def test_a_silent_tap_is_named(model: Pair) -> None:
    def speak(call: bool) -> None:
        with record(model):
            if call:
                model(sequence())

    with pytest.raises(RecordingError, match=r"taps of Pair stayed silent: decoder\."):
        speak(call=True)
    with pytest.raises(RecordingError, match=r"taps of Pair stayed silent: encoder, decoder\."):
        speak(call=False)


def test_an_error_of_the_model_goes_on_as_it_is(model: Pair) -> None:
    heard = []

    def fail() -> None:
        with record(model) as recording:
            heard.append(recording)
            model(sequence())
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert len(heard[0]) == 0, "nothing is kept"
    assert not model.encoder.tap.open


def test_only_this_model_is_heard(model: Pair) -> None:
    other = Pair()
    with record(model, taps="encoder") as recording:
        model(sequence(batch=2))
        other(sequence(batch=3))
    assert recording["encoder"].shape[0] == 2


def test_steps_over_growing_keys_are_one_map(model: Pair) -> None:
    queries, keys = sequence(length=4), sequence(length=4)
    attention = model.decoder
    with record(attention) as recording:
        for step in range(1, 5):
            attention(queries[:, step - 1 : step], keys[:, :step], keys[:, :step])
    weights = recording["attention"].weights(head=0)
    assert weights.shape == (2, 4, 4)
    assert torch.equal(weights.triu(1), torch.zeros(2, 4, 4)), "keys that came later are not looked at"
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4))


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ((3, 5), "Call 2 of encoder has 3 examples and 5 keys, the one before 2 and 5"),
        ((2, 4), "Call 2 of encoder has 2 examples and 4 keys, the one before 2 and 5"),
    ],
)
def test_calls_that_are_not_steps(model: Pair, second: tuple[int, int], message: str) -> None:
    def call_twice() -> None:
        with record(model, taps="encoder"):
            model(sequence(2, 5))
            model(sequence(*second))

    with pytest.raises(RecordingError, match=message):
        call_twice()


def test_a_third_call_is_compared_with_the_second(model: Pair) -> None:
    def call() -> None:
        with record(model, taps="encoder"):
            for length in (3, 7, 5):
                model(sequence(2, length))

    with pytest.raises(RecordingError, match="Call 3 of encoder has 2 examples and 5 keys, the one before 2 and 7"):
        call()
