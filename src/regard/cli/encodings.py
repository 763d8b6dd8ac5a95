"""The positional encodings of a run's model, read off by giving it nothing else: what is added to zeros."""

from __future__ import annotations

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor, nn

from regard.core.errors import ConfigError
from regard.layers.grid_positions import GridPositions
from regard.layers.positions import Positions
from regard.plots import draw_positions
from regard.recipes.checkpoints import PretrainedClassifier
from regard.recipes.run import Run

SHOWN = 100
"""Positions of a text that are drawn."""


def positions_figure(opened: Run | PretrainedClassifier, *, dark: bool) -> Figure:
    """Matrix, dot products and variance, as in deck D."""
    name, encodings = encodings_of(opened.model, getattr(opened.config.model, "width", 1))
    return draw_positions(encodings, title=f"{opened.name}: {name}", dark=dark)


@torch.inference_mode()
def encodings_of(model: nn.Module, width: int) -> tuple[str, Float[Tensor, "positions width"]]:
    """The address of the first module that adds positions, and what it adds to embeddings of that width."""
    found = [(name, module) for name, module in model.named_modules() if isinstance(module, Positions | GridPositions)]
    for name, module in found:
        encodings = _of_grid(module, width) if isinstance(module, GridPositions) else _of_text(module)
        if encodings.any():
            return name, encodings
    if found:
        kinds = ", ".join(sorted({type(module).__name__ for _, module in found}))
        raise ConfigError(f"This model adds nothing to its embeddings for their positions ({kinds}).")
    raise ConfigError(f"A {type(model).__name__} has no positional encodings to draw.")


def _of_text(module: Positions) -> Float[Tensor, "positions width"]:
    return module(torch.zeros(1, min(SHOWN, module.max_length), module.width, device=_device(module)))[0]


def _of_grid(module: GridPositions, width: int) -> Float[Tensor, "positions width"]:
    places = module.num_extras + module.rows * module.columns
    return module(torch.zeros(1, places, width, device=_device(module)), module.rows, module.columns)[0]


def _device(module: nn.Module) -> torch.device:
    tensors = [*module.parameters(), *module.buffers()]
    return tensors[0].device if tensors else torch.device("cpu")
