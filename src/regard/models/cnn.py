"""The course's four networks for CIFAR-10 (deck A's notebook): what attention is worth to a small network.

    stages of [3x3 convolution, batch norm, relu] with 1, 2, 4 times `width` channels, halved in size between stages;
    then one of three readouts of the last feature map X:
    mean       the mean over its positions
    dense      X on 4 x 4 positions, all numbers through one hidden layer
    attention  the mean of X + MultiHead(LayerNorm(X)), where every position looks at all others

| size | readout | parameters | the course |
| --- | --- | --- | --- |
| `course_cnn` | dense | 2.54 M | about 2.5 M, 83 % |
| `course_cnn_small` | mean | 0.47 M | 0.5 M, 80 % |
| `course_cnn_attention` | attention, one head | 0.50 M | 0.5 M, 83 % |
| `course_cnn_multihead` | attention, eight heads | 0.50 M | less than 0.6 M, 83.5 % |

So three of the four have the same convolutions, and attention stands in the place of a hidden layer's 2.1 M parameters.

Departures: the deck gives sizes and results but not the layers, which are ours; the notebook adds attention without
norm. The pictures may have any size: the dense readout averages over 4 x 4 parts of X, which are its positions or, at
32 x 32 pixels, 2 x 2 of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.multihead import MultiHeadSelfAttention
from regard.core.axes import Axis
from regard.core.classifier import ClassifierOutput
from regard.core.dropout import dropout
from regard.core.models import ModelConfig, ModelEntry, models, sizes
from regard.layers.convolution import ConvNorm, grid_axis, initialise_convolutions
from regard.layers.residual import PreNorm

_PARTS = 4
"""Rows and columns that the dense readout sees."""


class CNNConfig(ModelConfig):
    """Sizes of a plain convolutional network, and how its last feature map is read."""

    kind: Literal["cnn"] = "cnn"
    width: int = 32
    """Channels of the first stage; each later stage has twice as many."""
    num_convolutions: tuple[int, ...] = (2, 2, 3)
    """Convolutions of each stage."""
    readout: Literal["mean", "dense", "attention"] = "attention"
    """How the last feature map becomes one vector."""
    num_heads: int = 8
    """Heads of the attention readout."""
    attention: str = "scaled_dot"
    """Its mechanism: any name of `regard list mechanisms`."""
    hidden_width: int = 1024
    """Hidden layer of the dense readout."""
    dropout_rate: float = 0.0
    """Dropout on the vector that the classes are read off, and on what attention adds."""


class CNN(nn.Module):
    """Plain convolutions, read by their mean, by a hidden layer or by attention"""

    def __init__(self, config: CNNConfig, num_classes: int, channels: int) -> None:
        super().__init__()
        self.stages = nn.ModuleList()
        inputs = channels
        for number, num_convolutions in enumerate(config.num_convolutions):
            outputs = config.width * 2**number
            layers = [ConvNorm(inputs if first else outputs, outputs, 3) for first in _first(num_convolutions)]
            self.stages.append(nn.ModuleList(layers))
            inputs = outputs
        self.stride = 2 ** (len(self.stages) - 1)
        self.readout: DenseReadout | AttentionReadout | MeanReadout
        if config.readout == "dense":
            self.readout = DenseReadout(inputs, config.hidden_width)
        elif config.readout == "attention":
            self.readout = AttentionReadout(inputs, config.num_heads, config.attention, config.dropout_rate)
        else:
            self.readout = MeanReadout(inputs)
        self.head = nn.Linear(self.readout.width, num_classes)
        self.dropout_rate = config.dropout_rate
        initialise_convolutions(self)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        features = images
        for number, layers in enumerate(self.stages):
            if number:
                features = F.max_pool2d(features, 2, ceil_mode=True)
            for layer in layers:  # type: ignore[attr-defined]
                features = F.relu(layer(features))
        vector = dropout(self.readout(features), self.dropout_rate, self.training)
        return ClassifierOutput(self.head(vector), vector)

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """`positions` of the last feature map, where they attend to each other."""
        if isinstance(self.readout, AttentionReadout):
            return {"positions": grid_axis(height, width, self.stride)}
        return {}


class MeanReadout(nn.Module):
    """The mean over all positions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, features: Float[Tensor, "batch channels rows columns"]) -> Float[Tensor, "batch channels"]:
        return features.mean(dim=(2, 3))


class DenseReadout(nn.Module):
    """4 x 4 parts of the picture, each with a place of its own in one hidden layer."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.hidden = nn.Linear(inputs * _PARTS**2, width)

    def forward(self, features: Float[Tensor, "batch channels rows columns"]) -> Float[Tensor, "batch width"]:
        return F.relu(self.hidden(F.adaptive_avg_pool2d(features, _PARTS).flatten(1)))


class AttentionReadout(nn.Module):
    """Every position adds what it sees at the others; then the mean over all positions."""

    def __init__(self, width: int, num_heads: int, mechanism: str, dropout_rate: float) -> None:
        super().__init__()
        self.width = width
        self.attention = MultiHeadSelfAttention(width, num_heads, axis="positions", mechanism=mechanism)
        self.residual = PreNorm(width, dropout_rate)

    def forward(self, features: Float[Tensor, "batch channels rows columns"]) -> Float[Tensor, "batch channels"]:
        return self.residual(features.flatten(2).transpose(1, 2), self.attention).mean(dim=1)


def _first(count: int) -> list[bool]:
    return [number == 0 for number in range(count)]


@sizes.register("course_cnn")
def course_cnn() -> CNNConfig:
    """The course's plain network with 2.5 M parameters, most of them in its hidden layer."""
    return CNNConfig(readout="dense", dropout_rate=0.3)


@sizes.register("course_cnn_small")
def course_cnn_small() -> CNNConfig:
    """The course's small network without attention: 0.5 M parameters."""
    return CNNConfig(num_convolutions=(2, 3, 3), readout="mean")


@sizes.register("course_cnn_attention")
def course_cnn_attention() -> CNNConfig:
    """The small network with one head of attention over its last feature map: 0.5 M parameters."""
    return CNNConfig(num_heads=1)


@sizes.register("course_cnn_multihead")
def course_cnn_multihead() -> CNNConfig:
    """The small network with eight heads of attention over its last feature map: less than 0.6 M parameters."""
    return CNNConfig(num_heads=8)


models.register("cnn")(ModelEntry(CNNConfig, CNN, "VanRullen's course 2022", "classifier"))
