"""The Vision Transformer, ViT (Dosovitskiy et al. 2021; decks D and E): a picture is worth 16 x 16 words.

    Z_0 = [x_class; x_1 E; ...; x_N E] + E_pos,  L pre-norm blocks,  y = LayerNorm(Z_L)[0],  logits y W

| ours | paper |
| --- | --- |
| width, feed_forward_width, num_heads, num_blocks | D, MLP size, heads, L |
| patches, extras, positions | E, x_class, E_pos |
| pooling = "token" / "mean" | the class token's vector / the mean of all patches (its appendix D.3: GAP) |

Departures: positions may be sinusoidal, relative or absent, any registered mechanism may stand in for the scaled dot
product, and the head starts small instead of at zero. Pictures of another size than `image_size` get the learned
positions resized (`layers.grid_positions`). With `pooling="mean"` there is no class token; the mean is taken behind
the norm. Registers (Darcet et al. 2024) are tokens more, with positions of their own. A transformer on pixels is a ViT
with patches of one pixel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from regard.blocks.vision import PatchTransformer, PatchTransformerConfig, initialise
from regard.core.classifier import ClassifierOutput
from regard.core.models import ModelEntry, models, sizes


class ViTConfig(PatchTransformerConfig):
    """Sizes and variants of the Vision Transformer."""

    kind: Literal["vit"] = "vit"
    pooling: Literal["token", "mean"] = "token"
    """What the classes are read off: the class token, or the mean of all patches."""
    registers: tuple[str, ...] = ()
    """Names of further learned tokens, which take part in attention and which nothing is read off."""


class ViT(PatchTransformer):
    """Says what is in a picture by attention between its patches."""

    def __init__(self, config: ViTConfig, num_classes: int, channels: int) -> None:
        own = ("class",) if config.pooling == "token" else ()
        super().__init__(config, channels, (*own, *config.registers))
        self.pooling = config.pooling
        self.head = nn.Linear(config.width, num_classes)
        initialise(self)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        tokens = self.encode(images)
        features = tokens[:, 0] if self.pooling == "token" else tokens[:, len(self.extra_names) :].mean(dim=1)
        return ClassifierOutput(self.head(features), features)


models.register("vit")(ModelEntry(ViTConfig, ViT, "Dosovitskiy et al. 2021", family="classifier"))

_SHAPES = {"tiny": (192, 3, 12), "small": (384, 6, 12), "base": (768, 12, 12), "large": (1024, 16, 24)}
_SHAPES["huge"] = (1280, 16, 32)
_PUBLISHED = {
    "tiny": ((16, 224), (16, 384)),
    "small": ((8, 224), (16, 224), (16, 384), (32, 224), (32, 384)),
    "base": ((8, 224), (16, 224), (16, 384), (32, 224), (32, 384)),
    "large": ((14, 224), (16, 224), (16, 384), (32, 224), (32, 384)),
    "huge": ((14, 224),),
}


def _size(shape: str, patch_size: int, image_size: int, depth_rate: float = 0.0) -> Callable[[], ViTConfig]:
    width, num_heads, num_blocks = _SHAPES[shape]

    def size() -> ViTConfig:
        """A published size of ViT."""
        return ViTConfig(
            image_size=image_size,
            patch_size=patch_size,
            width=width,
            num_heads=num_heads,
            num_blocks=num_blocks,
            feed_forward_width=4 * width,
            stochastic_depth_rate=depth_rate,
        )

    return size


for _shape, _made in _PUBLISHED.items():
    for _patch_size, _image_size in _made:
        sizes.register(f"vit_{_shape}_patch{_patch_size}_{_image_size}")(_size(_shape, _patch_size, _image_size))

# DeiT without its distillation token (Touvron et al. 2021) is a ViT that is trained otherwise.
for _shape in ("tiny", "small", "base"):
    sizes.register(f"deit_{_shape}_patch16_224")(_size(_shape, 16, 224, depth_rate=0.1))


@sizes.register("vit_pixels_16")
def vit_pixels_16() -> ViTConfig:
    """Every pixel a token, for small pictures (CIFAR) that are reduced to 16 x 16."""
    return ViTConfig(image_size=16, patch_size=1, width=128, num_heads=4, num_blocks=6, feed_forward_width=512)
