"""The orders of norm and residual in a Transformer.

Post-norm, the original: LayerNorm(x + f(x)).  Pre-norm, the modern one: x + f(LayerNorm(x)).  Residual post-norm, that
of Swin V2: x + LayerNorm(f(x)). The last two may leave out f(x) for some examples in training (stochastic depth).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from regard.core.dropout import dropout
from regard.layers.stochastic_depth import drop_branch


class PostNorm(nn.Module):
    final_norm = False  # the last block's output is normalised already

    def __init__(self, width: int, dropout_rate: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.dropout_rate = dropout_rate

    def forward(self, inputs: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(inputs + dropout(sublayer(inputs), self.dropout_rate, self.training))


class PreNorm(nn.Module):
    final_norm = True

    def __init__(self, width: int, dropout_rate: float, *, epsilon: float = 1e-5, depth_rate: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, epsilon)
        self.dropout_rate = dropout_rate
        self.depth_rate = depth_rate

    def forward(self, inputs: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        branch = dropout(sublayer(self.norm(inputs)), self.dropout_rate, self.training)
        return inputs + drop_branch(branch, self.depth_rate, self.training)


class ResidualPostNorm(nn.Module):
    def __init__(self, width: int, dropout_rate: float, *, epsilon: float = 1e-5, depth_rate: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, epsilon)
        self.dropout_rate = dropout_rate
        self.depth_rate = depth_rate

    def forward(self, inputs: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        branch = self.norm(dropout(sublayer(inputs), self.dropout_rate, self.training))
        return inputs + drop_branch(branch, self.depth_rate, self.training)


RESIDUALS: dict[str, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
