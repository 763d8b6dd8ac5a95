"""What the comparisons with other libraries' convolutional networks share."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.core.models import ModelConfig, models, sizes

CLASSES, CHANNELS = 11, 3
PICTURES = [(64, 64), (37, 53)]
"""A usual and an odd size."""


def randomised(peer: nn.Module, seed: int = 0) -> nn.Module:
    """Every weight and every running statistic random, such that what runs through stays of the same size."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in peer.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                parameter.copy_(noise * parameter[0].numel() ** -0.5)
            else:
                parameter.copy_(0.3 * noise + (0.0 if name.endswith("bias") else 0.8))
        for name, buffer in peer.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(0.3 * torch.randn(buffer.shape, generator=generator))
            elif name.endswith("running_var"):
                buffer.copy_(0.5 + torch.rand(buffer.shape, generator=generator))
    return peer.eval()


def filled(config: ModelConfig, state: Mapping[str, Tensor], channels: int = CHANNELS) -> nn.Module:
    """Our model with these weights."""
    model = models[config.kind].build(config, CLASSES, channels)
    model.load_state_dict(dict(state))
    return model.eval()


def assert_same_logits(ours: nn.Module, peer: nn.Module, pictures: list[tuple[int, int]] = PICTURES) -> None:
    """Equal at every size of picture, and different for different pictures."""
    for height, width in pictures:
        images = torch.randn(2, CHANNELS, height, width)
        with torch.no_grad():
            theirs = peer(images)
            theirs = getattr(theirs, "logits", theirs)
            torch.testing.assert_close(ours(images).logits, theirs, atol=1e-5, rtol=1e-5)
        assert (theirs[0] - theirs[1]).abs().max() > 1e-2, "the logits should depend on the picture"


def parameters_of(size: str, num_classes: int = 1000) -> int:
    """How many parameters a published size has; nothing is allocated."""
    config = sizes[size]()
    with torch.device("meta"):
        model = models[config.kind].build(config, num_classes, CHANNELS)
    return count_parameters(model)


def count_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
