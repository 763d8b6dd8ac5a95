from __future__ import annotations

import torch
from torch import nn

from regard.core.classifier import ClassifierOutput
from regard.tasks.classification.occlusion import covers, occlude


class LooksAtACorner(nn.Module):
    """Class 1 where the lower right corner of the picture is bright, else class 0."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, images: torch.Tensor) -> ClassifierOutput:
        bright = self.scale * images[:, 0, -3:, -5:].mean(dim=(1, 2))
        return ClassifierOutput(torch.stack([torch.zeros_like(bright), bright], dim=1), bright[:, None])


def test_only_what_matters_has_weight() -> None:
    relation, names, grid = occlude(LooksAtACorner(), torch.ones(1, 3, 28, 42), ("no", "yes"))
    assert names.tokens == ("yes", "no")
    assert (grid.rows, grid.columns, grid.image_height, grid.image_width) == (14, 14, 28, 42)
    weights = relation.weights()[0, 0].reshape(2, 14, 14)
    assert torch.isclose(weights[0].sum(), torch.tensor(1.0))
    assert weights[0, 13, 13] == weights.max()
    assert not weights[0, :11].any()
    assert not weights[0, :, :10].any()
    assert not weights[1].any(), "no cover makes the other class less likely"


def test_a_cover_is_a_place_with_its_neighbours() -> None:
    first, last = covers(torch.ones(1, 1, 7, 5), 7, 5, 0, 35)[[0, 34], 0]
    assert (first == 0).nonzero().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert (last == 0).nonzero().tolist() == [[5, 3], [5, 4], [6, 3], [6, 4]]
