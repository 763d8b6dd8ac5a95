"""The local relation layer (Hu et al. 2019; deck C, "Idea #2"): who is like me around here, and where does it stand.

    weights_p(p') = softmax over the window of ( -(q_p - k_p')^2 + g(p' - p) ),   y_p = W sum of weights_p(p') x_p'

m channels share one map of weights: for each group q and k are one number a position, and g is one number an offset,
the geometric prior, which a small network with one hidden layer reads off the two coordinates of the offset. What is
summed is the input itself; q, k and W are 1x1 convolutions.

The square is expanded: -(q - k)^2 = 2 q k - k^2 - q^2, where the last term is the same for all keys of a query and so
leaves the softmax as it is. Scores are then dot products of (2 q, 1) and (k, -k^2).

W is read off deck C's table: only with one more 1x1 convolution in each layer, at the layer's own resolution, does
LR-Net-50 have the parameters and operations that the table prints (`models.lrnet`).

What the paper leaves open, and what is done here: the similarity (it has three that are about as good; this is the
first), the hidden width of the geometric network (as many as there are groups), the unit of its offsets (the window
reaches from -1 to 1), a bias of q, k and W (none), windows that reach beyond the picture (those places are not attended
to), a width that m does not divide (the last group is smaller).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.local import attend_locally
from regard.core.tap import Tap


class LocalRelation(nn.Module):
    """From `width` to `width` channels; with a stride, every stride-th position looks around itself."""

    def __init__(
        self, width: int, channels_per_group: int, window: int, *, stride: int = 1, queries: str, keys: str
    ) -> None:
        super().__init__()
        self.num_groups = -(-width // channels_per_group)
        self.channels_per_group = channels_per_group
        self.window = window
        self.stride = stride
        self.query_projection = nn.Conv2d(width, self.num_groups, 1, bias=False)
        self.key_projection = nn.Conv2d(width, self.num_groups, 1, bias=False)
        self.output = nn.Conv2d(width, width, 1, bias=False)
        self.prior = GeometricPrior(self.num_groups, window)
        self.tap = Tap(queries, keys)

    def forward(self, features: Float[Tensor, "batch width height wide"]) -> Float[Tensor, "batch width rows columns"]:
        queries = self.query_projection(features[:, :, :: self.stride, :: self.stride])[:, :, None]
        keys = self.key_projection(features)[:, :, None]
        context = attend_locally(
            torch.cat([2 * queries, torch.ones_like(queries)], dim=2),
            torch.cat([keys, -keys.square()], dim=2),
            self._grouped(features),
            window=self.window,
            stride=self.stride,
            bias=self.prior()[None, :, :, None, None],
            tap=self.tap,
        )
        return self.output(context.flatten(1, 2)[:, : features.shape[1]])

    def _grouped(
        self, features: Float[Tensor, "batch width height wide"]
    ) -> Float[Tensor, "batch groups channels height wide"]:
        """Channels by group; a last group that is smaller is filled up with zeros."""
        lacking = self.num_groups * self.channels_per_group - features.shape[1]
        return F.pad(features, (0, 0, 0, 0, 0, lacking)).unflatten(1, (self.num_groups, -1))


class GeometricPrior(nn.Module):
    """One number for each group and offset, from the offset's coordinates."""

    offsets: Tensor

    def __init__(self, num_groups: int, window: int) -> None:
        super().__init__()
        # A bias of the last layer would be the same for all places of a window, which the softmax does not see.
        self.expand = nn.Linear(2, num_groups)
        self.contract = nn.Linear(num_groups, num_groups, bias=False)
        steps = (torch.arange(window) - window // 2) / max(1, window // 2)
        self.register_buffer("offsets", torch.cartesian_prod(steps, steps), persistent=False)

    def forward(self) -> Float[Tensor, "groups places"]:
        return self.contract(F.relu(self.expand(self.offsets))).T
