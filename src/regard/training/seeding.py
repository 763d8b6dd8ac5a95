"""Random numbers that can be taken up again anywhere.

Before each update the generators (python's, numpy's, torch's) are seeded from (seed, step, process). So what an
update draws depends on nothing that came before it: a resumed run draws the same dropout as one that was never
interrupted, validation may draw what it likes, and no generator state has to be saved.
"""

from __future__ import annotations

import random

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seeds all generators; call it before a model is built, so that its first weights are reproducible."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def seed_step(seed: int, step: int, process: int, device: torch.device) -> None:
    """Seeds the generators that one update of one process may draw from.

    `torch.manual_seed` also takes down where it was called from, once for every kind of device that is not
    there; at each step that is worth going round.
    """
    low, high = np.random.SeedSequence([seed, step, process]).generate_state(2, np.uint32).tolist()
    number = high << 32 | low
    random.seed(number)
    np.random.seed(low)
    torch.default_generator.manual_seed(number)
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(number)
