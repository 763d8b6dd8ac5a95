"""All heads of a tap, and all layers by all heads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.image import AxesImage
from matplotlib.text import Text

from regard.core.errors import ConfigError, RecordingError
from regard.core.relations import DenseRelation
from regard.plots import draw_heads, draw_layers, save
from regard.plots.layers import MAX_THUMBNAILS
from regard.recording import Recording

from .conftest import WEIRD

SOURCE, TARGET = ("the", "black", "dog", "runs", "</s>"), ("le", "chien", "noir")


def shown(figure):
    return [text.get_text() for text in figure.findobj(Text)]


def unlabelled(weights: torch.Tensor) -> Recording:
    recording = Recording()
    recording.relations["attention"] = DenseRelation(weights)
    recording.roles["attention"] = ("target", "source")
    return recording


@pytest.mark.parametrize("heads", [1, 7, 8])
def test_every_head_is_drawn_with_its_own_weights(make_recording, heads):
    recording = make_recording([SOURCE], [TARGET], heads=heads)
    figure = draw_heads(recording, "decoder.0.cross")
    weights = recording["decoder.0.cross"].weights(example=0).numpy()
    drawn = [np.asarray(mesh.get_array()) for mesh in figure.axes[0].collections]
    assert len(drawn) == heads
    for one, expected in zip(drawn, weights, strict=True):
        assert np.array_equal(one, expected)
    names = shown(figure)
    assert [name for name in names if name.startswith("head ")] == [f"head {n}" for n in range(heads) if heads > 1]


def test_heads_share_one_scale_and_the_words_stand_at_the_edges_only(make_recording):
    figure = draw_heads(make_recording([SOURCE], [TARGET], heads=6), "decoder.0.cross")
    assert len({mesh.norm.vmax for mesh in figure.axes[0].collections}) == 1
    names = shown(figure)
    down = names.count("chien")
    assert 1 <= down <= 6
    assert down * names.count("dog") == 6  # rows of maps by columns of maps


def test_padding_is_cut_off(make_recording):
    recording = make_recording([SOURCE, SOURCE[:2]], [TARGET, TARGET[:1]])
    figure = draw_heads(recording, "decoder.0.cross", example=1)
    assert figure.axes[0].collections[0].get_array().shape == (1, 2)
    assert "runs" not in shown(figure)


def test_without_axes_positions_are_numbered():
    assert {"0", "4"} <= set(shown(draw_heads(unlabelled(torch.rand(1, 2, 3, 5)), "attention")))


def test_many_positions_are_drawn_without_words_and_lose_no_cell(tmp_path):
    weights = torch.zeros(1, 16, 499, 509)
    weights[0, 1, 300, 400] = 1.0
    figure = draw_heads(unlabelled(weights), "attention")
    second = figure.findobj(AxesImage)[1]
    assert max(second.get_array().shape) < 499
    assert second.get_array().max() == 1.0
    save(figure, tmp_path / "heads.png")


@pytest.mark.parametrize("dark", [False, True])
def test_weird_tokens(make_recording, tmp_path, dark):
    recording = make_recording([WEIRD], [WEIRD])
    save(draw_heads(recording, "encoder.0.self", title="你好 $", dark=dark), tmp_path / "a.png")
    save(draw_layers(recording, taps="*", title="你好 $", dark=dark), tmp_path / "b.svg")


def test_an_empty_translation(make_recording, tmp_path):
    recording = make_recording([SOURCE], [()])
    save(draw_heads(recording, "decoder.0.cross"), tmp_path / "a.png")
    save(draw_layers(recording), tmp_path / "b.png")


def test_wrong_address_example_or_size(make_recording):
    recording = make_recording([SOURCE], [TARGET])
    with pytest.raises(RecordingError, match=r"Did you mean 'decoder.0.cross'"):
        draw_heads(recording, "decoder.cross")
    with pytest.raises(RecordingError, match="no example 1"):
        draw_heads(recording, "decoder.0.cross", example=1)
    with pytest.raises(ConfigError, match="at most 512 a side"):
        draw_heads(unlabelled(torch.rand(1, 1, 1, 10_000)), "attention")
    with pytest.raises(RecordingError, match="finite"):
        draw_heads(unlabelled(torch.full((1, 1, 2, 3), torch.nan)), "attention")


def test_layers_draw_a_row_for_each_tap_that_matches(make_recording):
    recording = make_recording([SOURCE], [TARGET], layers=5, heads=3)
    cross = draw_layers(recording)
    assert len(cross.findobj(AxesImage)) == 15
    names = shown(cross)
    assert "decoder.4.cross" in names
    assert "encoder.0.self" not in names
    assert len(draw_layers(recording, taps="*").findobj(AxesImage)) == 30


def test_layers_say_what_there_is_when_nothing_matches(make_recording):
    with pytest.raises(ConfigError, match=r"'\*cross\*'.*Recorded: attention"):
        draw_layers(unlabelled(torch.rand(1, 2, 3, 5)))


def test_too_many_thumbnails():
    recording = unlabelled(torch.rand(1, MAX_THUMBNAILS + 1, 1, 1))
    with pytest.raises(ConfigError, match=str(MAX_THUMBNAILS)):
        draw_layers(recording, taps="*")
