"""Pictures under attention: which weights lie where, who looks, and what cannot be drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.core.axes import Grid, Text
from regard.core.errors import ConfigError, RecordingError
from regard.core.relations import DenseRelation
from regard.plots import draw_overlay, draw_panels, draw_rollout, draw_strip
from regard.plots.panels import MAX_PANELS
from regard.recording import Recording

from .conftest import kept_picture, soft
from .looking import words

GRID = Grid(2, 3, 20, 30, ("[CLS]",))
CAPTION = ("a", "dog", "a")


def recording(weights: torch.Tensor, queries: str = "caption", grid: Grid = GRID) -> Recording:
    found = Recording(outputs={"pictures": [kept_picture(grid.image_height, grid.image_width)]})
    found.relations["cross"] = DenseRelation(weights[None])
    found.roles["cross"] = (queries, "image")
    return found.label(image=[grid], **({"caption": [Text(CAPTION)]} if queries == "caption" else {}))


def painted(figure, panel: int) -> np.ndarray:
    """The colour in the middle of each patch of a panel: rows, columns, rgb."""
    pixels = np.asarray(figure.axes[0].images[panel].get_array())
    rows, columns = (np.arange(2) + 0.5) / 2, (np.arange(3) + 0.5) / 3
    return pixels[(rows * pixels.shape[0]).astype(int)][:, (columns * pixels.shape[1]).astype(int)]


def blueness(figure, panel: int) -> np.ndarray:
    colours = painted(figure, panel)
    return colours[..., 2] - colours[..., 0]


def test_a_patch_is_the_bluer_the_more_it_is_looked_at_and_the_others_are_grey():
    weights = torch.zeros(1, 3, 7)
    weights[0, 1] = torch.tensor([0.1, 0.0, 0.0, 0.6, 0.0, 0.3, 0.0])  # the class token, then two rows of three
    figure = draw_overlay(recording(weights), "cross", query="dog")
    blue = blueness(figure, 1)
    assert blue.ravel().argsort()[::-1][:2].tolist() == [2, 4]
    assert np.allclose(blue.ravel()[[0, 1, 3, 5]], 0.0, atol=1 / 255)


def test_each_head_and_their_mean_have_a_panel():
    weights = torch.zeros(2, 3, 7)
    weights[0, :, 1], weights[1, :, 6] = 1.0, 1.0
    figure = draw_overlay(recording(weights), "cross", query=0)
    assert words(figure)[1:5] == ["picture", "mean of heads", "head 0", "head 1"]
    assert blueness(figure, 2).argmax() == 0
    assert blueness(figure, 3).argmax() == 5
    mean = blueness(figure, 1).ravel()
    assert mean[[0, 5]].min() > 0.1
    assert np.allclose(mean[1:5], 0.0, atol=1 / 255)


def test_who_looks_without_a_name():
    assert "the mean of all caption" in words(draw_overlay(recording(soft(1, 3, 7)), "cross"))[0]
    assert "[CLS]" in words(draw_overlay(recording(soft(1, 7, 7), "image"), "cross"))[0]
    assert "patch 1,2" in words(draw_overlay(recording(soft(1, 7, 7), "image"), "cross", query="1,2"))[0]


def test_the_patch_that_looks_is_outlined_and_the_class_token_is_not():
    own = recording(soft(1, 7, 7), "image")
    figure = draw_overlay(own, "cross", query="1,2")
    (frame,) = figure.axes[0].patches
    left, right, bottom, top = figure.axes[0].images[0].get_extent()
    assert frame.get_x() == pytest.approx(left + (right - left) * 2 / 3)
    assert frame.get_y() == pytest.approx(top + (bottom - top) / 2)
    assert not draw_overlay(own, "cross").axes[0].patches


@pytest.mark.parametrize(
    ("query", "said"),
    [("a", "positions 0, 2"), ("dgo", "Did you mean 'dog'"), ("3", "it has 3"), (-4, "it has 3"), (3, "it has 3")],
)
def test_a_query_that_is_not_one_position(query, said):
    with pytest.raises((ConfigError, RecordingError), match=said):
        draw_overlay(recording(soft(1, 3, 7)), "cross", query=query)


def test_a_query_from_the_end():
    assert "where dog looks" in words(draw_overlay(recording(soft(1, 3, 7)), "cross", query=-2))[0]


def test_a_strip_has_a_panel_for_each_word_in_order_and_of_one_head():
    weights = torch.zeros(2, 3, 7)
    for word, patch in enumerate((1, 4, 6)):
        weights[1, word, patch] = 1.0
    figure = draw_strip(recording(weights), "cross", head=1)
    assert words(figure)[1:5] == ["picture", "a (0)", "dog", "a (2)"]
    assert [int(blueness(figure, panel).argmax()) for panel in (1, 2, 3)] == [0, 3, 5]


def test_pictures_of_another_size_than_the_grid_says():
    own = recording(soft(1, 7, 7), "image")
    own.outputs["pictures"] = [kept_picture(5, 200)]
    (frame,) = draw_overlay(own, "cross", query="0,0").axes[0].patches
    left, right, *_ = draw_overlay(own, "cross").axes[0].images[0].get_extent()
    assert frame.get_width() == pytest.approx((right - left) / 3)


def test_what_cannot_be_drawn():
    own = recording(soft(1, 3, 7))
    with pytest.raises(RecordingError, match="no picture 0"):
        draw_overlay(Recording(own.relations, own.roles, own.axes), "cross")
    own.outputs["pictures"] = ["no base64 of a picture"]
    with pytest.raises(RecordingError, match="cannot be read"):
        draw_overlay(own, "cross")
    text = Recording({"cross": DenseRelation(soft(1, 1, 3, 3))}, {"cross": ("caption", "caption")})
    with pytest.raises(ConfigError, match="not at a picture"):
        draw_strip(text.label(caption=[Text(CAPTION)]), "cross")
    with pytest.raises(RecordingError, match="finite"):
        draw_strip(recording(torch.full((1, 3, 7), torch.nan)), "cross")
    pixels = np.zeros((3, 5, 3), np.uint8)
    with pytest.raises(ConfigError, match="shape"):
        draw_panels(pixels, {"none": np.zeros((0, 3))})
    with pytest.raises(ConfigError, match=f"{MAX_PANELS - 1}"):
        draw_panels(pixels, {str(number): np.zeros((1, 1)) for number in range(MAX_PANELS)})


def test_a_rollout_lies_on_the_picture():
    relation = torch.zeros(1, 7, 7)
    relation[:, :, 4] = 1.0
    figure = draw_rollout(recording(relation, "image"))
    # Half of the class token comes from where it looks, the other half is itself, which is nowhere.
    assert blueness(figure, 1).argmax() == 3
    assert np.allclose(np.delete(blueness(figure, 1).ravel(), 3), 0.0, atol=1 / 255)
    assert "[CLS]" in words(figure)[0]


def test_a_rollout_of_words_is_a_matrix_and_of_one_word_a_row():
    own = Recording({"0.attention": DenseRelation(soft(1, 2, 3, 3))}, {"0.attention": ("caption", "caption")})
    own.label(caption=[Text(("one", "two", "three"))])
    expected = own.rollout().weights.numpy()
    assert np.allclose(draw_rollout(own).axes[0].collections[0].get_array(), expected)
    row = draw_rollout(own, query="two").axes[0].collections[0].get_array()
    assert np.allclose(row, expected[1:2])
