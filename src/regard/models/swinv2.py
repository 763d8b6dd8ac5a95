"""Swin Transformer V2 (Liu et al. 2022): Swin with scores and norms that stay tame at size, and windows that may grow.

    U = Z + Norm((S)W-MSA(Z)),  Z' = U + Norm(MLP(U))                 the norm stands behind each sublayer
    scores = min(exp(t), 100) cos(q, k) + 16 sigmoid(MLP(d))          t is learned, one a head
    d = sign(o) log2(1 + |o|) / log2(8),  o = 8 offset / (window - 1)  the offsets of a pair, in logarithmic steps

| ours | paper |
| --- | --- |
| `log_scale` = t | -log(tau); tau is learned and at least 0.01 |
| `offset_network` | the meta network G of the continuous relative position bias |

Because the bias is a function of the offset, windows may grow when a trained model gets larger pictures; then
`pretrained_window_size` says by which windows offsets are still measured. Keys have no bias, as in the authors' code.

Departure: the norms behind the sublayers start as the identity; the authors' code starts their scales at zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.multihead import Heads, head_size, split_heads
from regard.blocks.shifted_windows import PatchMerging, ShiftedWindowConfig, ShiftedWindowTransformer
from regard.blocks.windows import WindowAttention
from regard.core.models import ModelEntry, models, sizes
from regard.layers.grid_positions import offset_bias
from regard.layers.residual import ResidualPostNorm

MAX_SCALE = 100.0
HIDDEN_WIDTH = 512


class SwinV2Config(ShiftedWindowConfig):
    """Sizes of the Swin Transformer V2."""

    kind: Literal["swinv2"] = "swinv2"
    image_size: int = 256
    """Height and width in pixels that limit the windows of the last stages; pictures may have any other size."""
    window_size: int = 8
    """Height and width of a window in places."""
    pretrained_window_size: tuple[int, ...] = ()
    """Windows of each stage in which offsets are measured, where the model was trained with others than it has now."""


class CosineWindowAttention(WindowAttention):
    """Cosines with a learned scale, and a small network that gives the bias of an offset."""

    offsets: Tensor

    def __init__(self, width: int, num_heads: int, side: int, measure: int, *, axis: str, dropout_rate: float) -> None:
        head_size(width, num_heads)
        super().__init__(width, num_heads, 1.0, axis=axis, dropout_rate=dropout_rate)
        self.side = side
        self.projection = nn.Linear(width, 3 * width, bias=False)
        self.query_bias = nn.Parameter(torch.zeros(width))
        self.value_bias = nn.Parameter(torch.zeros(width))
        self.log_scale = nn.Parameter(torch.full((num_heads,), math.log(10.0)))
        self.offset_network = nn.Sequential(
            nn.Linear(2, HIDDEN_WIDTH), nn.ReLU(), nn.Linear(HIDDEN_WIDTH, num_heads, bias=False)
        )
        self.register_buffer("offsets", log_offsets(side, measure), persistent=False)

    def project(self, inputs: Float[Tensor, "windows places width"]) -> tuple[Heads, Heads, Heads]:
        bias = torch.cat([self.query_bias, torch.zeros_like(self.query_bias), self.value_bias])
        projected = F.linear(inputs, self.projection.weight, bias)
        queries, keys, values = (split_heads(part, self.num_heads) for part in projected.chunk(3, dim=-1))
        scale = self.log_scale.clamp(max=math.log(MAX_SCALE)).exp()[:, None, None]
        queries, keys = F.normalize(queries, dim=-1) * scale, F.normalize(keys, dim=-1)
        return queries.to(values.dtype), keys.to(values.dtype), values

    def bias(self) -> Float[Tensor, "1 heads places places"]:
        by_offset = 16 * self.offset_network(self.offsets).sigmoid()
        return offset_bias(by_offset.permute(2, 0, 1), self.side, self.side)[None]


def log_offsets(side: int, measure: int) -> Float[Tensor, "offsets offsets 2"]:
    """Rows and columns from -(side - 1) to side - 1, as multiples of the measure's, in logarithmic steps."""
    offsets = 8 * torch.arange(1.0 - side, side) / max(measure - 1, 1)
    steps = offsets.sign() * torch.log2(1 + offsets.abs()) / math.log2(8)
    return torch.stack(torch.meshgrid(steps, steps, indexing="ij"), dim=-1)


class MergingNormed(PatchMerging):
    """The linear map of the four neighbours, then the norm."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__(width, 2 * width, epsilon)

    def reduce(
        self, neighbours: Float[Tensor, "batch rows columns four_widths"]
    ) -> Float[Tensor, "batch rows columns two_widths"]:
        return self.norm(self.reduction(neighbours))


class SwinV2(ShiftedWindowTransformer):
    """Swin with cosine attention, a continuous position bias and norms behind the sublayers."""

    def attention(
        self, config: ShiftedWindowConfig, width: int, num_heads: int, side: int, axis: str
    ) -> CosineWindowAttention:
        assert isinstance(config, SwinV2Config)
        stage = int(axis.removeprefix("stage")) - 1
        measure = config.pretrained_window_size[stage] if config.pretrained_window_size else side
        return CosineWindowAttention(
            width, num_heads, side, measure, axis=axis, dropout_rate=config.attention_dropout_rate
        )

    def residual(self, config: ShiftedWindowConfig, width: int, depth_rate: float) -> ResidualPostNorm:
        return ResidualPostNorm(width, config.dropout_rate, epsilon=config.norm_epsilon, depth_rate=depth_rate)

    def merging(self, width: int, epsilon: float) -> MergingNormed:
        return MergingNormed(width, epsilon)


models.register("swinv2")(ModelEntry(SwinV2Config, SwinV2, "Liu et al. 2022", family="classifier"))

_SHAPES = {
    "tiny": (96, (2, 2, 6, 2), (3, 6, 12, 24), 0.2),
    "small": (96, (2, 2, 18, 2), (3, 6, 12, 24), 0.3),
    "base": (128, (2, 2, 18, 2), (4, 8, 16, 32), 0.5),
    "large": (192, (2, 2, 18, 2), (6, 12, 24, 48), 0.2),
}


def _size(shape: str, window_size: int, image_size: int, measures: tuple[int, ...] = ()) -> Callable[[], SwinV2Config]:
    width, num_blocks, num_heads, rate = _SHAPES[shape]

    def size() -> SwinV2Config:
        """A published size of Swin V2."""
        return SwinV2Config(
            image_size=image_size,
            window_size=window_size,
            width=width,
            num_blocks=num_blocks,
            num_heads=num_heads,
            pretrained_window_size=measures,
            stochastic_depth_rate=rate,
        )

    return size


for _shape in ("tiny", "small", "base"):
    for _window_size in (8, 16):
        sizes.register(f"swinv2_{_shape}_window{_window_size}_256")(_size(_shape, _window_size, 256))
for _shape in ("base", "large"):
    sizes.register(f"swinv2_{_shape}_window12_192")(_size(_shape, 12, 192))
    for _window_size, _image_size in ((16, 256), (24, 384)):
        sizes.register(f"swinv2_{_shape}_window12to{_window_size}_192to{_image_size}")(
            _size(_shape, _window_size, _image_size, (12, 12, 12, 6))
        )
