"""What Swin and Swin V2 share (Liu et al. 2021, 2022): four stages of windowed blocks on ever coarser grids.

    patches of 4 x 4 pixels, norm;  for each stage: pairs of blocks (windows, shifted windows), then
    merging: 2 x 2 neighbours become one place of twice the width;  last norm, mean over the grid, head

A picture of any size is filled up with zeros at the bottom and on the right, to whole patches and before a merging to
pairs (as in `transformers` and the authors' code; torchvision leaves out pixels that fill no patch). The window of a
stage is as large as its grid at `image_size` at most, so that the last stages of large windows have smaller ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from regard.blocks.vision import initialise
from regard.blocks.windows import WindowAttention, Windows
from regard.core.axes import Axis
from regard.core.classifier import ClassifierOutput
from regard.core.dropout import dropout
from regard.core.errors import ConfigError
from regard.core.linear import Linear
from regard.core.models import ModelConfig
from regard.layers.feed_forward import FeedForward
from regard.layers.patches import PatchEmbedding, pad_grid
from regard.layers.residual import PreNorm, ResidualPostNorm
from regard.layers.stochastic_depth import depth_rates


class ShiftedWindowConfig(ModelConfig):
    """Sizes of a hierarchical transformer with windows; one entry a stage where there are several."""

    image_size: int = 224
    """Height and width in pixels that limit the windows of the last stages; pictures may have any other size."""
    patch_size: int = 4
    """Height and width of a patch in pixels."""
    window_size: int = 7
    """Height and width of a window in places."""
    width: int = 96
    """Size of a place's vector in the first stage; it doubles from stage to stage."""
    num_heads: tuple[int, ...] = (3, 6, 12, 24)
    """Attention heads of each stage."""
    num_blocks: tuple[int, ...] = (2, 2, 6, 2)
    """Blocks of each stage; every second one has shifted windows."""
    feed_forward_ratio: float = 4.0
    """Hidden size of the position-wise networks, as a multiple of the width."""
    norm_epsilon: float = 1e-5
    """What is added to the variance in every norm."""
    dropout_rate: float = 0.0
    """Dropout on embeddings, sublayer outputs and hidden feed-forward values."""
    attention_dropout_rate: float = 0.0
    """Dropout on attention weights."""
    shifts: Literal["each_way", "both_ways", "by_image_size"] = "each_way"
    """Which windows shift in every second block: in each direction in which the grid has several; in both or, where one
    direction has only one, in none; in both in the stages that have several on pictures of `image_size`."""
    stochastic_depth_rate: float = 0.2
    """How often the last block's branches are left out in training; the first one's never, those between in steps."""

    def stage_windows(self) -> list[int]:
        """The side of the windows of each stage."""
        side, sides = -(-self.image_size // self.patch_size), []
        for _ in self.num_blocks:
            sides.append(min(self.window_size, side))
            side = -(-side // 2)
        return sides

    def shifts_in(self, stage: int) -> bool:
        """Whether every second block of a stage has shifted windows at all."""
        side = -(-self.image_size // (self.patch_size * 2**stage))
        return self.shifts != "by_image_size" or side > self.window_size


class WindowBlock(nn.Module):
    """Attention in windows, then a position-wise network; the order of norm and sum is handed in."""

    def __init__(
        self,
        attention: WindowAttention,
        feed_forward: FeedForward,
        residuals: tuple[PreNorm | ResidualPostNorm, PreNorm | ResidualPostNorm],
        side: int,
        shift: int,
        both_ways: bool,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.attention_residual, self.feed_forward_residual = residuals
        self.side = side
        self.shift = shift
        self.both_ways = both_ways

    def forward(self, inputs: Float[Tensor, "batch rows columns width"]) -> Float[Tensor, "batch rows columns width"]:
        rows, columns = inputs.shape[1:3]
        one_only = self.both_ways and min(rows, columns) <= self.side
        windows = Windows(rows, columns, self.side, 0 if one_only else self.shift)
        attended = self.attention_residual(inputs, lambda x: self.attention(x, windows))
        return self.feed_forward_residual(attended, self.feed_forward)


class PatchMerging(nn.Module, ABC):
    """Four neighbours side by side, mapped to twice the width of one; the norm's place is the subclass's."""

    def __init__(self, width: int, normed_width: int, epsilon: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(normed_width, epsilon)
        self.reduction = Linear(4 * width, 2 * width, bias=False)

    @abstractmethod
    def reduce(
        self, neighbours: Float[Tensor, "batch rows columns four_widths"]
    ) -> Float[Tensor, "batch rows columns two_widths"]:
        """The linear map with its norm."""

    def forward(
        self, inputs: Float[Tensor, "batch rows columns width"]
    ) -> Float[Tensor, "batch half_rows half_columns two_widths"]:
        """Neighbours in the order of the paper's code: upper left, lower left, upper right, lower right."""
        pairs = pad_grid(inputs, 2).unflatten(2, (-1, 2)).unflatten(1, (-1, 2))
        return self.reduce(pairs.permute(0, 1, 3, 4, 2, 5).flatten(3))


class ShiftedWindowTransformer(nn.Module, ABC):
    """From a picture to its classes over four (or any number of) stages."""

    def __init__(self, config: ShiftedWindowConfig, num_classes: int, channels: int) -> None:
        super().__init__()
        if len(config.num_heads) != len(config.num_blocks) or not config.num_blocks:
            raise ConfigError(
                f"`num_heads` and `num_blocks` have one entry a stage, but there are {len(config.num_heads)} and "
                f"{len(config.num_blocks)}."
            )
        self.dropout_rate = config.dropout_rate
        self.patches = PatchEmbedding(channels, config.width, config.patch_size)
        self.patch_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        rates = iter(depth_rates(config.stochastic_depth_rate, sum(config.num_blocks)))
        self.stages = nn.ModuleList(
            nn.ModuleList(self.blocks(config, stage, side, rates)) for stage, side in enumerate(config.stage_windows())
        )
        self.mergings = nn.ModuleList(
            self.merging(config.width * 2**stage, config.norm_epsilon) for stage in range(len(self.stages) - 1)
        )
        width = config.width * 2 ** (len(self.stages) - 1)
        self.norm = nn.LayerNorm(width, config.norm_epsilon)
        self.head = Linear(width, num_classes)
        initialise(self)

    @abstractmethod
    def attention(
        self, config: ShiftedWindowConfig, width: int, num_heads: int, side: int, axis: str
    ) -> WindowAttention:
        """The attention of one block."""

    @abstractmethod
    def residual(self, config: ShiftedWindowConfig, width: int, depth_rate: float) -> PreNorm | ResidualPostNorm:
        """The order of norm and sum around a sublayer."""

    @abstractmethod
    def merging(self, width: int, epsilon: float) -> PatchMerging:
        """What stands between two stages."""

    def blocks(
        self, config: ShiftedWindowConfig, stage: int, side: int, rates: Iterator[float]
    ) -> Iterator[WindowBlock]:
        """The blocks of one stage, every second one shifted by half a window."""
        width, num_heads = config.width * 2**stage, config.num_heads[stage]
        hidden_width = int(config.feed_forward_ratio * width)
        for index in range(config.num_blocks[stage]):
            rate = next(rates)
            yield WindowBlock(
                self.attention(config, width, num_heads, side, f"stage{stage + 1}"),
                FeedForward(width, hidden_width, "gelu", config.dropout_rate),
                (self.residual(config, width, rate), self.residual(config, width, rate)),
                side,
                shift=side // 2 if index % 2 and config.shifts_in(stage) else 0,
                both_ways=config.shifts == "both_ways",
            )

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        filled = pad_grid(images.permute(0, 2, 3, 1), self.patches.patch_size).permute(0, 3, 1, 2)
        features = dropout(self.patch_norm(self.patches(filled)), self.dropout_rate, self.training)
        for number, stage in enumerate(self.stages):
            if number:
                features = self.mergings[number - 1](features)
            for block in stage:  # type: ignore[attr-defined]
                features = block(features)
        pooled = self.norm(features).mean(dim=(1, 2))
        return ClassifierOutput(self.head(pooled), pooled)

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """A grid for each stage, with a first place "padding" where windows are filled up."""
        cell = self.patches.patch_size
        rows, columns = -(-height // cell), -(-width // cell)
        axes = {}
        for number, stage in enumerate(self.stages, start=1):
            axes[f"stage{number}"] = Windows(rows, columns, stage[0].side, 0).axis(cell)  # type: ignore[index]
            rows, columns, cell = -(-rows // 2), -(-columns // 2), 2 * cell
        return axes
