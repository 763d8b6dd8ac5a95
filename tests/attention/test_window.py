from __future__ import annotations

import numpy as np
import torch
from scipy import ndimage

from regard.attention.window import corners, cut_windows, window_relation, window_sources


def maps() -> torch.Tensor:
    torch.manual_seed(0)
    whole = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    return whole + 0.3 * torch.randn(2, 3, 2, 3)


def test_the_whole_picture_is_itself() -> None:
    images = torch.randn(2, 3, 7, 5)
    whole = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).expand(2, 1, 2, 3)
    cut = cut_windows(images, window_sources(whole, 7, 5))
    torch.testing.assert_close(cut[:, 0], images)
    assert corners(whole, 7, 5)[0, 0].tolist() == [[0.0, 0.0], [5.0, 0.0], [5.0, 7.0], [0.0, 7.0]]


def test_the_relation_is_what_was_computed() -> None:
    """Weights times pixels are the windows, and rows sum to one, outside of the picture too."""
    images = torch.randn(2, 1, 11, 13)
    sources = window_sources(maps(), 5, 7)
    relation = window_relation(sources, 11, 13)
    weights = relation.weights()
    assert relation.shape == (2, 3, 35, 143)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 35), rtol=0, atol=1e-5)
    assert (sources.abs() > 1).any(), "some sources should lie outside"
    expected = torch.einsum("bhqk,bk->bhq", weights, images.flatten(1))
    torch.testing.assert_close(cut_windows(images, sources).flatten(2), expected, rtol=1e-4, atol=1e-5)


def test_samples_are_scipys() -> None:
    images = torch.randn(2, 1, 11, 13)
    sources = window_sources(maps(), 5, 7)
    cut = cut_windows(images, sources)
    x, y = ((sources[..., axis] + 1) * side / 2 - 0.5 for axis, side in ((0, 13), (1, 11)))
    for example in range(2):
        for head in range(3):
            places = [y[example, head].numpy(), x[example, head].numpy()]
            expected = ndimage.map_coordinates(images[example, 0].numpy(), places, order=1, mode="nearest")
            np.testing.assert_allclose(cut[example, head, 0], expected, atol=1e-4)


def test_maps_get_gradients() -> None:
    chosen = maps().requires_grad_()
    cut_windows(torch.randn(2, 1, 11, 13), window_sources(chosen, 5, 7)).square().sum().backward()
    assert chosen.grad is not None
    assert chosen.grad.abs().min() > 0
