"""RAM, the recurrent model of visual attention (Mnih et al. 2014; deck C): hard attention, one glimpse at a time.

    g_t = relu(W_1 relu(W_rho rho(x, l_t)) + W_2 relu(W_l l_t)),   h_t = relu(W_h h_{t-1} + W_g g_t)
    l_{t+1} ~ Normal(tanh(W_f h_t), sigma^2),   logits = W_a h_T

| ours | paper |
| --- | --- |
| `layers.glimpse` | the glimpse sensor rho |
| `GlimpseNetwork` | f_g |
| `core_input`, `core_state` | f_h |
| `location`, `baseline` | f_l, b_t |
| location_deviation | sigma |

In training locations are drawn, the first one anywhere, and `choices` of the output says with which probability; the
loss is `tasks.classification.reinforce`. Nothing flows back through a location, nor from locations and baselines into
the core: the rest learns from the classes alone. In evaluation the first glimpse is in the middle, the next ones where
the mean is. What a glimpse costs does not depend on the size of the picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.axes import Axis, Grid, Series
from regard.core.classifier import Choices, ClassifierOutput
from regard.core.errors import RecordingError
from regard.core.models import ModelConfig, ModelEntry, models, sizes
from regard.core.tap import Tap
from regard.layers.glimpse import Locations, glimpse, glimpse_relation, in_pixels


class GlimpsesConfig(ModelConfig):
    """Sizes of the recurrent attention model."""

    kind: Literal["glimpses"] = "glimpses"
    num_glimpses: int = 6
    """How often it looks before it answers."""
    glimpse_size: int = 8
    """Rows and columns of cells of one scale."""
    num_scales: int = 1
    """Patches of one glimpse, each twice as large as the one before."""
    glimpse_width: int = 128
    """Hidden sizes of the glimpse network, for what is seen and for where."""
    width: int = 256
    """Size of a glimpse's vector and of the state."""
    location_deviation: float = 0.1
    """Standard deviation of a location around its mean in training; 2 is the width of the picture."""


class GlimpseNetwork(nn.Module):
    """One vector from what is seen and where."""

    def __init__(self, config: GlimpsesConfig, channels: int) -> None:
        super().__init__()
        seen = config.num_scales * channels * config.glimpse_size**2
        self.what = nn.Linear(seen, config.glimpse_width)
        self.where = nn.Linear(2, config.glimpse_width)
        self.what_out = nn.Linear(config.glimpse_width, config.width)
        self.where_out = nn.Linear(config.glimpse_width, config.width)

    def forward(self, patches: Float[Tensor, "batch *seen"], locations: Locations) -> Float[Tensor, "batch width"]:
        what, where = F.relu(self.what(patches.flatten(1))), F.relu(self.where(locations))
        return F.relu(self.what_out(what) + self.where_out(where))


class Glimpses(nn.Module):
    """Looks here and there, remembers, and says what it was"""

    def __init__(self, config: GlimpsesConfig, num_classes: int, channels: int) -> None:
        super().__init__()
        self.num_glimpses = config.num_glimpses
        self.size = config.glimpse_size
        self.num_scales = config.num_scales
        self.width = config.width
        self.deviation = config.location_deviation
        self.glimpse = GlimpseNetwork(config, channels)
        self.core_input = nn.Linear(config.width, config.width)
        self.core_state = nn.Linear(config.width, config.width)
        self.location = nn.Linear(config.width, 2)
        self.baseline = nn.Linear(config.width, 1)
        self.head = nn.Linear(config.width, num_classes)
        self.sensor = Tap("glimpses", "pixels")

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        state = images.new_zeros(len(images), self.width)
        locations = self._first(images)
        path, log_probabilities, baselines = [locations], [], []
        for step in range(self.num_glimpses):
            state = self._look(images, locations, state)
            if step == self.num_glimpses - 1:
                break
            known = state.detach()
            mean = torch.tanh(self.location(known).float())
            locations = self._drawn(mean)
            path.append(locations)
            log_probabilities.append(self._log_probability(locations, mean))
            baselines.append(self.baseline(known)[:, 0].float())
        choices = None
        if self.training and baselines:
            choices = Choices(torch.stack(log_probabilities, dim=1), torch.stack(baselines, dim=1))
        scan_path = in_pixels(torch.stack(path, dim=1), *images.shape[2:])
        return ClassifierOutput(self.head(state), state, choices=choices, drawn={"scan_path": scan_path})

    def _look(
        self, images: Float[Tensor, "batch channels height width"], locations: Locations, state: Tensor
    ) -> Float[Tensor, "batch state"]:
        """The state after one more glimpse."""
        if self.sensor.edited:
            raise RecordingError("A glimpse is chosen and not weighed, so there is nothing in this model to edit.")
        height, width = images.shape[2:]
        self.sensor.emit(lambda: glimpse_relation(locations, height, width, self.size, self.num_scales))
        seen = self.glimpse(glimpse(images, locations, self.size, self.num_scales), locations)
        return F.relu(self.core_state(state) + self.core_input(seen))

    def _first(self, images: Tensor) -> Locations:
        first = torch.zeros(len(images), 2, device=images.device)
        return first.uniform_(-1, 1) if self.training else first

    def _drawn(self, mean: Locations) -> Locations:
        mean = mean.detach()
        return mean + self.deviation * torch.randn_like(mean) if self.training else mean

    def _log_probability(self, locations: Locations, mean: Locations) -> Float[Tensor, "batch"]:
        """Of the normal density, x and y together."""
        normed = (locations - mean) / self.deviation
        return (-0.5 * normed.square() - math.log(self.deviation * math.sqrt(2 * math.pi))).sum(dim=1)

    def axes(self, height: int, width: int) -> Mapping[str, Axis]:
        """Steps, and the pixels of the picture."""
        steps = Series(tuple(f"glimpse {number}" for number in range(1, self.num_glimpses + 1)))
        return {"glimpses": steps, "pixels": Grid(height, width, height, width)}


models.register("glimpses")(ModelEntry(GlimpsesConfig, Glimpses, "Mnih et al. 2014", family="glimpser"))


@sizes.register("ram_mnist")
def ram_mnist() -> GlimpsesConfig:
    """The paper's six glimpses of 8 x 8 on digits of 28 x 28."""
    return GlimpsesConfig()


@sizes.register("ram_mnist_cluttered")
def ram_mnist_cluttered() -> GlimpsesConfig:
    """The paper's eight glimpses of 12 x 12 at three scales on 60 x 60."""
    return GlimpsesConfig(num_glimpses=8, glimpse_size=12, num_scales=3)
