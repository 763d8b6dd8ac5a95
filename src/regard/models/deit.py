"""DeiT with its distillation token (Touvron et al. 2021): a ViT that learns from a teacher through a token of its own.

    Z_0 = [x_class; x_distillation; patches] + E_pos,  logits_c = y_class W_c,  logits_d = y_distillation W_d

In training, `logits` are those of the class token and `auxiliary["distillation"]` those of the other, which a loss
compares with a teacher. In evaluation `logits` is the mean of both, as the paper reads it (the late fusion of its
section 4), and `auxiliary` still holds the second. Features are the mean of the two tokens' vectors.

DeiT without the token is a ViT: `sizes["deit_tiny_patch16_224"]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from regard.blocks.vision import PatchTransformer, PatchTransformerConfig, initialise
from regard.core.classifier import ClassifierOutput
from regard.core.models import ModelEntry, models, sizes


class DeiTConfig(PatchTransformerConfig):
    """Sizes and variants of the distilled DeiT."""

    kind: Literal["deit"] = "deit"
    stochastic_depth_rate: float = 0.1
    """How often the last block's branches are left out in training; the first one's never, those between in steps."""


class DeiT(PatchTransformer):
    """A ViT with a second token and head that learn from a teacher."""

    def __init__(self, config: DeiTConfig, num_classes: int, channels: int) -> None:
        super().__init__(config, channels, ("class", "distillation"))
        self.head = nn.Linear(config.width, num_classes)
        self.distillation_head = nn.Linear(config.width, num_classes)
        initialise(self)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        tokens = self.encode(images)
        logits, distilled = self.head(tokens[:, 0]), self.distillation_head(tokens[:, 1])
        fused = logits if self.training else (logits + distilled) / 2
        return ClassifierOutput(fused, tokens[:, :2].mean(dim=1), {"distillation": distilled})


models.register("deit")(ModelEntry(DeiTConfig, DeiT, "Touvron et al. 2021", family="classifier"))


def _size(width: int, num_heads: int, image_size: int) -> Callable[[], DeiTConfig]:
    def size() -> DeiTConfig:
        """A published size of the distilled DeiT."""
        return DeiTConfig(image_size=image_size, width=width, num_heads=num_heads, feed_forward_width=4 * width)

    return size


for _name, _width, _num_heads, _image_size in (
    ("tiny", 192, 3, 224),
    ("small", 384, 6, 224),
    ("base", 768, 12, 224),
    ("base", 768, 12, 384),
):
    sizes.register(f"deit_{_name}_distilled_patch16_{_image_size}")(_size(_width, _num_heads, _image_size))
