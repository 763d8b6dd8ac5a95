"""The two orders of norm and residual in a Transformer.

Post-norm, the original: LayerNorm(x + f(x)).  Pre-norm, the modern one: x + f(LayerNorm(x)).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from regard.core.dropout import dropout


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

    def __init__(self, width: int, dropout_rate: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.dropout_rate = dropout_rate

    def forward(self, inputs: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return inputs + dropout(sublayer(self.norm(inputs)), self.dropout_rate, self.training)


RESIDUALS: dict[str, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
