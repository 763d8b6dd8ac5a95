"""Where a classifier's answer comes from, when it has no attention: what happens as parts are covered.

    weight[c, place] ~ max(0, p_c(picture) - p_c(picture with the place and its neighbours covered by the mean colour))

(Zeiler and Fergus 2014, section 4.2; deck A.) For each class the falls are divided by their sum; a class whose
probability no cover lowers has a row of zeros. It is a relation from classes to places like any other, but found by
asking many times and not by listening once: `rows x columns` further pictures are shown to the model.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.axes import Grid, Text
from regard.core.relations import DenseRelation

MOST_PLACES = 14
"""Rows, and columns, that a picture is divided into at most."""
REACH = 1
"""So many neighbours of a place are covered with it, in each direction."""
CHUNK = 32

ADDRESS = "occlusion"


@torch.inference_mode()
def occlude(
    model: nn.Module, image: Float[Tensor, "1 channels height width"], class_names: tuple[str, ...], top: int = 5
) -> tuple[DenseRelation, Text, Grid]:
    """The relation for the `top` likeliest classes of one normalised picture, and its two axes."""
    height, width = image.shape[-2:]
    rows, columns = min(MOST_PLACES, height), min(MOST_PLACES, width)
    before = _probabilities(model, image)
    chosen = before[0].topk(min(top, len(class_names))).indices
    covered = torch.cat(
        [
            _probabilities(model, covers(image, rows, columns, start, min(start + CHUNK, rows * columns)))
            for start in range(0, rows * columns, CHUNK)
        ]
    )
    falls = (before - covered).clamp(min=0)[:, chosen].T
    weights = falls / falls.sum(dim=1, keepdim=True).clamp(min=torch.finfo(falls.dtype).tiny)
    names = Text(tuple(class_names[place] for place in chosen.tolist()))
    return DenseRelation(weights[None, None].cpu()), names, Grid(rows, columns, height, width)


def covers(
    image: Float[Tensor, "1 channels height width"], rows: int, columns: int, start: int, stop: int
) -> Float[Tensor, "places channels height width"]:
    """The picture with place `start`, ..., `stop` - 1 covered; 0 is the mean colour."""
    height, width = image.shape[-2:]
    pictures = image.repeat(stop - start, 1, 1, 1)
    for picture, place in zip(pictures, range(start, stop), strict=True):
        row, column = divmod(place, columns)
        top, bottom = (max(0, row - REACH) * height // rows, min(rows, row + REACH + 1) * height // rows)
        left, right = (max(0, column - REACH) * width // columns, min(columns, column + REACH + 1) * width // columns)
        picture[:, top:bottom, left:right] = 0
    return pictures


def _probabilities(model: nn.Module, images: Tensor) -> Float[Tensor, "pictures classes"]:
    output: Any = model(images.to(next(model.parameters()).device))
    return output.logits.float().softmax(dim=1)
