"""Axes: how many positions, what they are called, and that a file gives back what was written."""

from __future__ import annotations

import json

import pytest

from regard.core.axes import Axis, Boxes, Frames, Grid, Series, Slots, Text, Volume, axis_kinds
from regard.core.errors import RecordingError

AXES = [
    Text(("the", "cat", "été")),
    Grid(2, 3, 32, 60, extras=("[class]",)),
    Volume(2, 3, 5),
    Frames(7, 0.02),
    Series(("2024-01-01", "2024-02-01")),
    Boxes(("query 0", "query 1"), ((1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0))),
    Boxes(("query 0",)),
    Slots(("an old fact",)),
]


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.kind)
def test_round_trip_through_json(axis: Axis) -> None:
    again = Axis.from_json(json.loads(json.dumps(axis.to_json())))
    assert again == axis
    assert hash(again) == hash(axis)
    assert len(again.labels()) == len(axis)


def test_every_kind_is_tried_here() -> None:
    assert {axis.kind for axis in AXES} == {
        name for name, kind in axis_kinds.items() if kind.__module__ == Axis.__module__
    }


@pytest.mark.parametrize(
    ("axis", "length", "last"),
    [
        (AXES[0], 3, "été"),
        (AXES[1], 7, "1,2"),
        (AXES[2], 30, "1,2,4"),
        (AXES[3], 7, "0.12 s"),
        (AXES[4], 2, "2024-02-01"),
        (AXES[5], 2, "query 1"),
        (AXES[7], 1, "an old fact"),
    ],
)
def test_lengths_and_labels(axis: Axis, length: int, last: str) -> None:
    assert len(axis) == length
    assert axis.labels()[-1] == last


def test_boxes_of_patches() -> None:
    grid = Grid(2, 3, 32, 60, extras=("[class]",))
    assert grid.label(0) == "[class]"
    assert grid.box(0) == (0.0, 0.0, 60.0, 32.0)
    assert grid.box(1) == (0.0, 0.0, 20.0, 16.0)
    assert grid.box(6) == (40.0, 16.0, 60.0, 32.0)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"kind": "hexagons", "count": 3}, "'hexagons' is not known here; known: text, grid"),
        ({"count": 3}, "kind None is not known"),
        ({"kind": "frames", "count": 3}, "The fields of a 'frames' axis do not fit: .*seconds"),
        ({"kind": "text", "tokens": ["a"], "colour": "red"}, "'text' axis do not fit: .*colour"),
        ({"kind": "boxes", "names": ["a"], "corners": [3]}, "'boxes' axis do not fit"),
    ],
)
def test_what_is_no_axis_is_refused(value: dict, message: str) -> None:
    with pytest.raises(RecordingError, match=message):
        Axis.from_json(value)
