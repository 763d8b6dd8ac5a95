"""Views of a recording: each against the same thing made from the whole map."""

from __future__ import annotations

import pytest
import torch

from regard.core.axes import Text
from regard.core.errors import RecordingError
from regard.recording import Recording

from .conftest import EXAMPLES, HEADS, SOURCES, TARGETS

SIZES = [(5, 7), (3, 4)]
"""Of the two sentences: queries and keys of cross attention without their padding."""


@pytest.fixture(params=["decoder.0.cross", "decoder.1.cross", "decoder.2.cross", "decoder.3.cross"])
def address(request: pytest.FixtureRequest) -> str:
    return request.param


def test_a_recording_is_a_mapping(recording: Recording) -> None:
    assert len(recording) == len(list(recording)) == len(recording.addresses) == 7
    assert "decoder.0.cross" in recording
    assert "decoder.9.cross" not in recording
    assert recording.nbytes == sum(recording[address].relation.nbytes for address in recording)


def test_an_unknown_address_is_answered_with_the_nearest(recording: Recording) -> None:
    with pytest.raises(RecordingError, match=r"'decoder.0.crss'\. Did you mean 'decoder.0.cross'\? Recorded: dec"):
        recording["decoder.0.crss"]


def test_what_a_map_says_of_itself(recording: Recording) -> None:
    shown = recording["decoder.1.cross"]
    assert shown.shape == (EXAMPLES, HEADS, TARGETS, SOURCES)
    assert repr(shown) == "<decoder.1.cross: target -> source, 2 x 3 heads x 5 x 7, dense, 840 bytes>"


def test_weights_of_all_examples(recording: Recording, address: str) -> None:
    shown = recording[address]
    whole = shown.relation.weights()
    assert torch.equal(shown.weights(), whole)
    torch.testing.assert_close(shown.weights(head=-1), whole[:, -1])
    torch.testing.assert_close(shown.weights(rows=slice(1, 4)), whole[:, :, 1:4])
    torch.testing.assert_close(shown.weights(rows=slice(None, None, 2), head=1), whole[:, 1, ::2])
    torch.testing.assert_close(shown.weights(rows=-2), whole[:, :, -2])
    assert shown.weights(rows=slice(4, 1)).shape == (EXAMPLES, HEADS, 0, SOURCES)


@pytest.mark.parametrize("example", [0, 1])
def test_an_example_is_cut_to_its_axes(recording: Recording, address: str, example: int) -> None:
    shown = recording[address]
    queries, keys = SIZES[example]
    whole = shown.relation.weights()[example, :, :queries, :keys]
    torch.testing.assert_close(shown.weights(example=example), whole)
    torch.testing.assert_close(shown.weights(example=example, head=2), whole[2])
    torch.testing.assert_close(shown.weights(example=example, rows=-1), whole[:, -1])
    torch.testing.assert_close(shown.weights(example=example, head=0, rows=1), whole[0, 1])
    torch.testing.assert_close(shown.weights(example=example, rows=slice(1, 99)), whole[:, 1:])
    torch.testing.assert_close(shown.weights(example=example, rows=slice(-2, None)), whole[:, -2:])


@pytest.mark.parametrize("address", ["decoder.0.attention", "decoder.1.attention", "decoder.2.attention"])
def test_empty_rows(recording: Recording, address: str) -> None:
    assert recording[address].weights(rows=slice(2, 2)).shape == (EXAMPLES, HEADS, 0, TARGETS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"example": 2}, "no example 2 in decoder.0.cross; it holds 2"),
        ({"example": -1}, "no example -1"),
        ({"head": 3}, "no head 3 in decoder.0.cross; it has 3"),
        ({"head": -4}, "no head -4"),
        ({"rows": 5}, "no query 5 in decoder.0.cross; it has 5"),
        ({"rows": -6}, "no query -6"),
        ({"example": 1, "rows": 3}, "no query 3 in decoder.0.cross; it has 3"),
        ({"rows": slice(None, None, -1)}, "a step of -1 goes backwards"),
    ],
)
def test_what_is_not_there(recording: Recording, options: dict, message: str) -> None:
    with pytest.raises(RecordingError, match=message):
        recording["decoder.0.cross"].weights(**options)


def test_entropy(recording: Recording, address: str) -> None:
    whole = recording[address].weights().double()
    logs = torch.where(whole > 0, whole.log(), 0.0)
    torch.testing.assert_close(recording[address].entropy().double(), -(whole * logs).sum(-1), rtol=0, atol=1e-5)


def test_entropy_is_zero_for_one_key(recording: Recording) -> None:
    assert not recording["decoder.2.cross"].entropy().any()


def test_received_does_not_count_padded_queries(recording: Recording, address: str) -> None:
    whole = recording[address].weights()
    received = recording[address].received()
    torch.testing.assert_close(received[0], whole[0].sum(dim=1))
    torch.testing.assert_close(received[1], whole[1, :, :3].sum(dim=1))
    recording.axes.clear()
    torch.testing.assert_close(recording[address].received(), whole.sum(dim=2))


def test_top(recording: Recording, address: str) -> None:
    whole = recording[address].weights()
    largest, where = recording[address].top(2)
    torch.testing.assert_close(largest, whole.sort(dim=-1, descending=True).values[..., :2])
    torch.testing.assert_close(whole.gather(-1, where), largest)
    assert recording[address].top(99)[0].shape[-1] == SOURCES


def test_views_are_the_same_in_blocks(recording: Recording, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = recording[address]
    whole = shown.entropy(), shown.received(), *shown.top(1)
    monkeypatch.setattr("regard.core.relations._BLOCK_WEIGHTS", 1)
    for view, wanted in zip((shown.entropy(), shown.received(), *shown.top(1)), whole, strict=True):
        torch.testing.assert_close(view, wanted)


@pytest.mark.parametrize(
    "source",
    [
        [Text(tuple("abc"))],
        [Text(tuple("abc"))] * 3,
        [Text(tuple("abcdefgh")), Text(("a",))],
    ],
    ids=["too few", "too many", "too long"],
)
def test_labels_that_do_not_fit(recording: Recording, source: list[Text]) -> None:
    before = dict(recording.axes)
    with pytest.raises(RecordingError, match=r"given for 'source' do not fit decoder\.0\.cross"):
        recording.label(target=[Text(("a",))] * 2, source=source)
    assert recording.axes == before, "labels are taken all or none"
