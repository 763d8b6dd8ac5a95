"""Numbers by layer: distances and entropies against hand-worked ones, panels by kind, what is left out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from regard.core.axes import Frames, Grid, Text
from regard.core.errors import ConfigError, RecordingError
from regard.core.masks import Allow
from regard.core.relations import DenseRelation, DotRelation
from regard.plots import draw_depth, draw_distance, draw_entropy
from regard.recording import Recording

from .conftest import soft
from .looking import words


def dots(figure) -> list[np.ndarray]:
    """For each layer, from left to right, the heights of its dots; the key comes with the sheet and is no layer."""
    return [np.asarray(points.get_offsets())[:, 1] for axes in figure.axes[1:] for points in axes.collections]


def dashes(figure) -> list[float]:
    return [float(line.get_ydata()[0]) for axes in figure.axes[1:] for line in axes.lines]


def text_recording(*layers: torch.Tensor, lengths: tuple[int, ...] = (5,)) -> Recording:
    recording = Recording()
    for number, weights in enumerate(layers):
        recording.relations[f"encoder.{number}.attention"] = DenseRelation(weights)
        recording.roles[f"encoder.{number}.attention"] = ("source", "source")
    return recording.label(source=[Text(("word",) * length) for length in lengths])


def test_distances_by_hand():
    here, next_door = torch.eye(5), torch.eye(5).roll(1, dims=1)
    # Next door is one token away, but from the last to the first it is four: (1 + 1 + 1 + 1 + 4) / 5.
    figure = draw_distance(text_recording(torch.stack([here, next_door])[None], soft(1, 3, 5, 5)))
    first, second = dots(figure)
    assert first == pytest.approx([0.0, 1.6])
    places = np.arange(5)
    expected = (soft(1, 3, 5, 5)[0].numpy() * abs(places[:, None] - places)).sum(-1).mean(-1)
    assert second == pytest.approx(expected, rel=1e-5)
    assert "mean distance, tokens" in words(figure)


def test_entropy_by_hand_with_its_dashed_line():
    weights = torch.zeros(1, 2, 5, 5)
    weights[0, 0, :, 0] = 1.0
    weights[0, 1] = 0.2
    figure = draw_entropy(text_recording(weights))
    (heights,) = dots(figure)
    assert heights == pytest.approx([0.0, math.log(5)], abs=1e-6)


def test_padding_does_not_count():
    weights = soft(2, 1, 5, 5)
    weights[1, :, :, 2:] = 0.0
    weights[1] /= weights[1].sum(-1, keepdim=True)
    (heights,) = dots(draw_distance(text_recording(weights, lengths=(5, 2))))
    places = np.arange(5)
    away = (weights.numpy() * abs(places[:, None] - places)).sum(-1)
    assert heights == pytest.approx([np.concatenate([away[0, 0], away[1, 0, :2]]).mean()], rel=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_the_dashed_line_is_what_looking_everywhere_alike_would_give(causal):
    recording = Recording()
    vectors = torch.randn(2, 1, 3, 7, 5, generator=torch.Generator().manual_seed(2))
    recording.relations["0.attention"] = DotRelation(vectors[0], vectors[1], 0.5, Allow(causal=causal))
    recording.roles["0.attention"] = ("source", "source")
    recording.label(source=[Text(tuple("abcdefg"))])
    keys = [number + 1 if causal else 7 for number in range(7)]
    assert dashes(draw_entropy(recording)) == pytest.approx([np.mean(np.log(keys))], rel=1e-5)
    away = [np.mean([abs(query - key) for key in range(keys[query])]) for query in range(7)]
    assert dashes(draw_distance(recording)) == pytest.approx([np.mean(away)], rel=1e-5)


def test_a_class_token_is_nowhere_and_pixels_are_the_unit_of_pictures():
    recording = Recording({"0.attention": DenseRelation(torch.eye(5).roll(1, 1)[None, None])})
    recording.roles["0.attention"] = ("image", "image")
    figure = draw_distance(recording.label(image=[Grid(1, 4, 7, 28, ("[CLS]",))]))
    # Patches of 7 pixels: three look at their neighbour, the last one at the class token, which has no distance.
    assert dots(figure)[0] == pytest.approx([7.0])
    assert "mean distance, pixels" in words(figure)


def test_kinds_have_panels_and_layers_their_numbers():
    values = {f"{part}.{n}.x": [1.0] for part, layers in (("encoder", 3), ("decoder", 2)) for n in range(layers)}
    figure = draw_depth(values, "height")
    assert {"encoder.*.x", "decoder.*.x"} <= set(words(figure))
    assert [text.get_text() for text in figure.axes[1].get_xticklabels()] == ["0", "1", "2"]
    assert figure.axes[1].get_ylim() == figure.axes[2].get_ylim()
    assert figure.axes[1].get_ylim()[0] == 0.0


def test_maps_between_axes_without_a_common_measure_are_left_out():
    recording = text_recording(soft(1, 2, 5, 5))
    recording.relations["cross"] = DenseRelation(soft(1, 2, 5, 3))
    recording.roles["cross"] = ("source", "image")
    recording.label(image=[Grid(1, 3, 4, 12)])
    assert len(dots(draw_distance(recording))) == 1
    assert len(dots(draw_entropy(recording))) == 2
    with pytest.raises(ConfigError, match="no distances to draw"):
        draw_distance(recording, taps="cross")


def test_two_units_are_not_put_into_one_picture():
    recording = text_recording(soft(1, 2, 5, 5))
    recording.relations["sound"] = DenseRelation(soft(1, 2, 5, 5))
    recording.roles["sound"] = ("frames", "frames")
    recording.label(frames=[Frames(5, 0.1)])
    with pytest.raises(ConfigError, match="seconds and in tokens"):
        draw_distance(recording)


def test_weights_that_are_no_numbers_and_values_that_do_not_fit():
    recording = text_recording(torch.full((1, 1, 5, 5), torch.nan))
    with pytest.raises(RecordingError, match="not all finite"):
        draw_entropy(recording)
    with pytest.raises(RecordingError, match="not all finite"):
        draw_distance(recording)
    for values in ([], [math.nan]):
        with pytest.raises(ConfigError, match="one finite number"):
            draw_depth({"a": np.array(values)}, "height")
    with pytest.raises(ConfigError, match="nothing to draw"):
        draw_depth({}, "height")
