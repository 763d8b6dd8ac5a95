"""What MViT and MViTv2 share: stages of pooling attention on ever coarser grids, ever wider (Fan et al. 2021).

    U = Skip(X) + Attention(Norm(X)),   Z = Widen(U) + MLP(Norm(U))

Each stage but the first begins with a block whose queries are pooled by 2 in both directions; its skip path is pooled
likewise, by the maximum of 3 x 3. Keys and values are pooled by `key_stride` in the first stage and by half as much in
each later one, so that about as many keys are left everywhere. The width doubles from stage to stage, either in the
attention of a stage's first block or in the position-wise network of the last block before it; there the skip path goes
through a linear map from the normed inputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.blocks.pooling_attention import PoolingAttention, Sides
from regard.blocks.vision import initialise
from regard.core.axes import Axis, Grid
from regard.core.classifier import ClassifierOutput
from regard.core.dropout import dropout
from regard.core.models import ModelConfig
from regard.layers.feed_forward import FeedForward
from regard.layers.patches import OverlappingPatches
from regard.layers.stochastic_depth import depth_rates, drop_branch


class MultiscaleConfig(ModelConfig):
    """Sizes of a multiscale vision transformer."""

    image_size: int = 224
    """Height and width in pixels that positions are made for; pictures may have any other size."""
    patch_size: int = 4
    """Pixels from one patch to the next; a patch itself is almost twice as large."""
    width: int = 96
    """Size of a token's vector in the first stage; it doubles from stage to stage."""
    num_heads: int = 1
    """Attention heads of the first stage; they double as well."""
    num_blocks: tuple[int, ...] = (1, 2, 11, 2)
    """Blocks of each stage."""
    key_stride: int = 4
    """By how much keys and values are pooled in the first stage; half as much in each later one, at least 1."""
    feed_forward_ratio: float = 4.0
    """Hidden size of the position-wise networks, as a multiple of the width."""
    norm_epsilon: float = 1e-6
    """What is added to the variance in every norm."""
    dropout_rate: float = 0.0
    """Dropout on embeddings and hidden feed-forward values."""
    attention_dropout_rate: float = 0.0
    """Dropout on attention weights."""
    stochastic_depth_rate: float = 0.1
    """How often the last block's branches are left out in training; the first one's never, those between in steps."""

    def side(self, stage: int) -> int:
        """Rows, and columns, of a stage's grid on pictures of `image_size`."""
        side = -(-self.image_size // self.patch_size)
        for _ in range(stage):
            side = -(-side // 2)
        return side

    def stride_of_keys(self, stage: int) -> int:
        return max(1, self.key_stride // 2**stage)


@dataclass(frozen=True)
class Place:
    """Where a block stands: its stage, whether it is that stage's first, and the widths around it."""

    stage: int
    first: bool
    inputs_width: int
    attention_width: int
    outputs_width: int

    @property
    def pools(self) -> bool:
        """Whether the grid is coarser behind this block."""
        return self.first and self.stage > 0

    @property
    def axes(self) -> tuple[str, str]:
        """A first block's keys are pooled from the finer grid of the stage before."""
        name = f"stage{self.stage + 1}"
        return name, f"{name}_first_keys" if self.pools else f"{name}_keys"


def places(config: MultiscaleConfig, widen: Literal["attention", "feed_forward"]) -> list[Place]:
    """All blocks in order."""
    found, width, last = [], config.width, len(config.num_blocks) - 1
    for stage, count in enumerate(config.num_blocks):
        own = config.width * 2**stage
        for index in range(count):
            attended = own if widen == "attention" else width
            grows = widen == "feed_forward" and index == count - 1 and stage < last
            outputs = 2 * own if grows else own
            found.append(Place(stage, index == 0, width, attended, outputs))
            width = outputs
    return found


class MultiscaleBlock(nn.Module):
    """Pooling attention, then a position-wise network; the skip paths follow in grid and width."""

    def __init__(self, config: MultiscaleConfig, place: Place, attention: PoolingAttention, depth_rate: float) -> None:
        super().__init__()
        hidden_width = int(config.feed_forward_ratio * place.attention_width)
        self.pools = place.pools
        self.depth_rate = depth_rate
        self.attention = attention
        self.attention_norm = nn.LayerNorm(place.inputs_width, config.norm_epsilon)
        self.feed_forward_norm = nn.LayerNorm(place.attention_width, config.norm_epsilon)
        self.feed_forward = FeedForward(
            place.attention_width, hidden_width, "gelu", config.dropout_rate, place.outputs_width
        )
        self.attention_skip = _widening(place.inputs_width, place.attention_width)
        self.feed_forward_skip = _widening(place.attention_width, place.outputs_width)

    def forward(
        self, inputs: Float[Tensor, "batch tokens width"], sides: Sides
    ) -> tuple[Float[Tensor, "batch fewer outputs_width"], Sides]:
        normed = self.attention_norm(inputs)
        skipped = inputs if self.attention_skip is None else self.attention_skip(normed)
        if self.pools:
            skipped = pooled_maximum(skipped, sides, self.attention.num_extras)
        attended, sides = self.attention(normed, sides)
        between = skipped + drop_branch(attended, self.depth_rate, self.training)
        normed = self.feed_forward_norm(between)
        skipped = between if self.feed_forward_skip is None else self.feed_forward_skip(normed)
        return skipped + drop_branch(self.feed_forward(normed), self.depth_rate, self.training), sides


class MultiscaleTransformer(nn.Module, ABC):
    """From a picture to its classes; attention, positions and class token are the subclass's."""

    def __init__(
        self,
        config: MultiscaleConfig,
        num_classes: int,
        channels: int,
        *,
        widen: Literal["attention", "feed_forward"],
        class_token: bool,
    ) -> None:
        super().__init__()
        self.extra_names = ("class",) if class_token else ()
        self.key_strides = [config.stride_of_keys(stage) for stage in range(len(config.num_blocks))]
        self.dropout_rate = config.dropout_rate
        self.patches = OverlappingPatches(channels, config.width, config.patch_size)
        if class_token:
            self.extras = nn.Parameter(torch.empty(1, config.width))
            nn.init.trunc_normal_(self.extras, std=0.02)
        order = places(config, widen)
        rates = depth_rates(config.stochastic_depth_rate, len(order))
        blocks: list[list[MultiscaleBlock]] = [[] for _ in config.num_blocks]
        for place, rate in zip(order, rates, strict=True):
            blocks[place.stage].append(MultiscaleBlock(config, place, self.attention(config, place), rate))
        self.stages = nn.ModuleList(map(nn.ModuleList, blocks))
        width = order[-1].outputs_width
        self.norm = nn.LayerNorm(width, config.norm_epsilon)
        self.head = nn.Linear(width, num_classes)
        initialise(self)

    @abstractmethod
    def attention(self, config: MultiscaleConfig, place: Place) -> PoolingAttention:
        """The attention of one block."""

    def positioned(
        self, tokens: Float[Tensor, "batch tokens width"], rows: int, columns: int
    ) -> Float[Tensor, "batch tokens width"]:
        """Tokens with what is added to them for where they stand."""
        return tokens

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        grid = self.patches(images)
        sides: Sides = (grid.shape[1], grid.shape[2])
        tokens = grid.flatten(1, 2)
        if self.extra_names:
            tokens = torch.cat([self.extras.to(tokens.dtype).expand(len(tokens), -1, -1), tokens], dim=1)
        features = dropout(self.positioned(tokens, *sides), self.dropout_rate, self.training)
        for stage in self.stages:
            for block in stage:  # type: ignore[attr-defined]
                features, sides = block(features, sides)
        features = self.norm(features)
        pooled = features[:, 0] if self.extra_names else features.mean(dim=1)
        return ClassifierOutput(self.head(pooled), pooled)

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """Each stage's grid of queries, and the coarser ones of its keys; the last cells may lie beyond the edge."""
        found: dict[str, Axis] = {}
        sides, cell = self.patches.grid(height, width), self.patches.stride
        for stage, stride in enumerate(self.key_strides):
            name = f"stage{stage + 1}"
            if stage:
                found[f"{name}_first_keys"] = self._axis(sides, cell, stride)
                sides, cell = (-(-sides[0] // 2), -(-sides[1] // 2)), 2 * cell
            found[name] = self._axis(sides, cell, 1)
            found[f"{name}_keys"] = self._axis(sides, cell, stride)
        return found

    def _axis(self, sides: Sides, cell: int, stride: int) -> Grid:
        rows, columns = (-(-side // stride) for side in sides)
        cell = cell * stride
        return Grid(rows, columns, rows * cell, columns * cell, self.extra_names)


def pooled_maximum(
    tokens: Float[Tensor, "batch tokens width"], sides: Sides, num_extras: int
) -> Float[Tensor, "batch fewer width"]:
    """Every second place in both directions, with the maximum of the 3 x 3 around it."""
    extras, grid = tokens[:, :num_extras], tokens[:, num_extras:]
    pooled = F.max_pool2d(grid.transpose(1, 2).unflatten(2, sides), 3, 2, padding=1)
    return torch.cat([extras, pooled.flatten(2).transpose(1, 2)], dim=1)


def _widening(inputs_width: int, outputs_width: int) -> nn.Linear | None:
    return None if inputs_width == outputs_width else nn.Linear(inputs_width, outputs_width)
