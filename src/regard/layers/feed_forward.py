"""The position-wise network of a Transformer block: activation(x W_1) W_2, the same for every position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.dropout import dropout
from regard.core.linear import Linear

Activation = Literal["relu", "gelu", "silu"]

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class FeedForward(nn.Module):
    def __init__(
        self,
        width: int,
        hidden_width: int,
        activation: Activation,
        dropout_rate: float,
        outputs_width: int | None = None,
    ) -> None:
        """`outputs_width` is the inputs' unless given."""
        super().__init__()
        self.expand = Linear(width, hidden_width)
        self.contract = Linear(hidden_width, outputs_width or width)
        self.activation = ACTIVATIONS[activation]
        self.dropout_rate = dropout_rate

    def forward(self, inputs: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch outputs"]:
        hidden = self.activation(self.expand(inputs))
        return self.contract(dropout(hidden, self.dropout_rate, self.training))
