"""Recordings made of random numbers: no model is needed to draw."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from PIL import Image

from regard.core.axes import Text
from regard.core.relations import DenseRelation, DotRelation
from regard.recording import Recording

MakeRecording = Callable[..., Recording]

# Right to left, Chinese, too long, nothing, emoji with a joiner, mathematics, markup, control characters, a lone
# surrogate, a mark that turns the line around.
WEIRD = (
    "مرحبا",
    "שלום",
    "你好",
    "Donaudampfschifffahrtsgesellschaft",
    "",
    "🧑‍🚀",
    "$x_1$",
    "$",
    "%",
    "</script><b>",
    "\n\x00\x7f",
    "  ",
    "\ud83d",
    "\u202eabc",
)


def soft(*shape: int) -> torch.Tensor:
    """Weights that sum to one over the last axis, always the same for a shape."""
    return (3 * torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))).softmax(dim=-1)


def kept_picture(height: int, width: int) -> str:
    """A picture as a recording holds it."""
    pixels = np.random.default_rng(5).integers(0, 256, (height, width, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.fixture
def make_recording() -> MakeRecording:
    def make(
        sources: Sequence[Sequence[str]],
        targets: Sequence[Sequence[str]],
        *,
        layers: int = 1,
        heads: int = 3,
    ) -> Recording:
        generator = torch.Generator().manual_seed(7)
        batch, keys = len(sources), max(map(len, sources))
        queries = max(1, *map(len, targets))
        recording = Recording()
        for layer in range(layers):
            scores = torch.randn(batch, heads, queries, keys, generator=generator)
            vectors = torch.randn(2, batch, heads, keys, 5, generator=generator)
            recording.relations[f"encoder.{layer}.self"] = DotRelation(vectors[0], vectors[1], 0.5)
            recording.roles[f"encoder.{layer}.self"] = ("source", "source")
            recording.relations[f"decoder.{layer}.cross"] = DenseRelation((3 * scores).softmax(dim=-1))
            recording.roles[f"decoder.{layer}.cross"] = ("target", "source")
        return recording.label(
            source=[Text(tuple(tokens)) for tokens in sources], target=[Text(tuple(tokens)) for tokens in targets]
        )

    return make
