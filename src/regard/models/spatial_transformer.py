"""The spatial transformer network (Jaderberg et al. 2015; deck A): a network that first moves the thing into its view.

    Theta = localise(X), one affine map a head;  V = windows of X (`attention.window`);  logits = classify(V)

| ours | paper |
| --- | --- |
| `localisation` | the localisation network |
| `attention.window` | grid generator and sampler |
| num_heads | several transformers in parallel, whose windows are seen together |
| `transformation` = "affine" / "attention" | any affine map / scale and place only |

Each head starts close to the whole picture, and each a little otherwise. Departures: batch norm in both networks, and
the mean of the last feature map in the place of the classifier's hidden layer. Pictures may have any size.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.window import Sources, corners, cut_windows, window_relation, window_sources
from regard.core.axes import Axis, Grid
from regard.core.classifier import ClassifierOutput
from regard.core.context import context_of
from regard.core.dropout import dropout
from regard.core.models import ModelConfig, ModelEntry, models, sizes
from regard.core.tap import Tap
from regard.layers.convolution import ConvNorm, initialise_convolutions

_PARTS = 6
"""Rows and columns of the feature map that places are read off."""


class SpatialTransformerConfig(ModelConfig):
    """Sizes of a spatial transformer network."""

    kind: Literal["spatial_transformer"] = "spatial_transformer"
    num_heads: int = 1
    """Windows that are cut out; the classifier sees all of them, one upon the other."""
    window_size: int = 28
    """Height and width of a window in pixels."""
    transformation: Literal["affine", "attention"] = "affine"
    """What a window may be: turned, stretched, slanted and moved, or scaled and moved only."""
    localisation_width: int = 20
    """Channels of the network that places the windows."""
    hidden_width: int = 64
    """Its hidden layer."""
    width: int = 32
    """Channels of the classifier's first stage; each of its three stages has twice as many as the one before."""
    dropout_rate: float = 0.0
    """Dropout on the vector that the classes are read off."""


class Localisation(nn.Module):
    """Reads off the picture where each head's window lies."""

    def __init__(self, config: SpatialTransformerConfig, channels: int) -> None:
        super().__init__()
        width = config.localisation_width
        self.num_heads = config.num_heads
        self.affine = config.transformation == "affine"
        self.convolutions = nn.ModuleList([ConvNorm(channels, width, 5), ConvNorm(width, width, 5)])
        self.hidden = nn.Linear(width * _PARTS**2, config.hidden_width)
        self.readout = nn.Linear(config.hidden_width, self.num_heads * (6 if self.affine else 3))

    def start(self) -> None:
        """Close to the whole picture, whatever is in it."""
        nn.init.normal_(self.readout.weight, std=1e-3)
        whole = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 0.0] if self.affine else [1.0, 0.0, 0.0])
        spread = 0.1 * torch.randn(self.num_heads, len(whole)) if self.num_heads > 1 else 0.0
        with torch.no_grad():
            self.readout.bias.copy_((whole + spread).flatten())

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch heads 2 3"]:
        features = images
        for convolution in self.convolutions:
            features = F.max_pool2d(F.relu(convolution(features)), 2, ceil_mode=True)
        parts = F.adaptive_avg_pool2d(features, _PARTS).flatten(1)
        numbers = self.readout(F.relu(self.hidden(parts))).unflatten(1, (self.num_heads, -1))
        if self.affine:
            return numbers.unflatten(2, (2, 3))
        scale, right, down = numbers.unbind(dim=2)
        none = torch.zeros_like(scale)
        return torch.stack([scale, none, right, none, scale, down], dim=2).unflatten(2, (2, 3))


class SpatialTransformer(nn.Module):
    """Cuts windows out of the picture, as they help to tell what is in it"""

    def __init__(self, config: SpatialTransformerConfig, num_classes: int, channels: int) -> None:
        super().__init__()
        self.window_size = config.window_size
        self.dropout_rate = config.dropout_rate
        self.localisation = Localisation(config, channels)
        widths = [config.num_heads * channels, *(config.width * 2**stage for stage in range(3))]
        self.stages = nn.ModuleList(
            nn.ModuleList([ConvNorm(inputs, outputs, 3), ConvNorm(outputs, outputs, 3)])
            for inputs, outputs in pairwise(widths)
        )
        self.head = nn.Linear(widths[-1], num_classes)
        self.window = Tap("window", "pixels")
        initialise_convolutions(self)
        self.localisation.start()

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        maps = self.localisation(images)
        sources = window_sources(maps, self.window_size, self.window_size)
        features = self._windows(images, sources).flatten(1, 2)
        for number, stage in enumerate(self.stages):
            features = F.max_pool2d(features, 2, ceil_mode=True) if number else features
            for convolution in stage:  # type: ignore[attr-defined]
                features = F.relu(convolution(features))
        pooled = dropout(features.mean(dim=(2, 3)), self.dropout_rate, self.training)
        return ClassifierOutput(self.head(pooled), pooled, drawn={"windows": corners(maps, *images.shape[2:])})

    def _windows(
        self, images: Float[Tensor, "batch channels height width"], sources: Sources
    ) -> Float[Tensor, "batch heads channels rows columns"]:
        """What each head's window shows, or what edits leave of it."""
        height, width = images.shape[2:]
        pixels = images.float().flatten(2).transpose(1, 2)[:, None]
        if self.window.edited:
            relation = self.window.change(window_relation(sources, height, width))
            windows = context_of(relation, pixels).transpose(2, 3).unflatten(3, sources.shape[2:4])
        else:
            windows = cut_windows(images, sources)
        if self.window.open:
            context = windows.flatten(3).transpose(2, 3)
            self.window.emit(lambda: window_relation(sources.detach(), height, width), pixels, context)
            return context.transpose(2, 3).unflatten(3, sources.shape[2:4])
        return windows

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """The places of a window, and the pixels of the picture. A window's own pixels are as large as they look."""
        side = self.window_size
        return {"window": Grid(side, side, height, width), "pixels": Grid(height, width, height, width)}


models.register("spatial_transformer")(
    ModelEntry(SpatialTransformerConfig, SpatialTransformer, "Jaderberg et al. 2015", family="classifier")
)


@sizes.register("stn_mnist")
def stn_mnist() -> SpatialTransformerConfig:
    """One window of 28 x 28 for digits on 42 x 42."""
    return SpatialTransformerConfig()


@sizes.register("stn_mnist_multihead")
def stn_mnist_multihead() -> SpatialTransformerConfig:
    """Two windows."""
    return SpatialTransformerConfig(num_heads=2)
