"""Attention between all positions of a feature map, added to it (Wang et al. 2018; SAGAN: Zhang et al. 2019).

    q, k, v = W_q x, W_k x, W_v x           1x1 convolutions
    y = x + gate * W_o (softmax(q k^T / sqrt(d)) v),  gate = 0 at the start

So a trained or untrained network stays what it is when the block is put in, and learns how much to look around (deck C,
"Idea #1": add attention to an existing CNN).

Departures: scores are divided by sqrt(d), which neither paper does; there may be several heads (both have one). The
paper's non-local block has batch norm on W_o with a scale of zero where SAGAN has the gate; SAGAN has q and k of C / 8
channels and v of C / 8 (C / 2 in its code), Wang et al. C / 2 for all three: here all have `hidden_width`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.mechanism import build_mechanism
from regard.attention.multihead import head_size, merge_heads, split_heads
from regard.layers.convolution import convolution


class NonLocalBlock(nn.Module):
    def __init__(
        self, width: int, hidden_width: int, num_heads: int, *, axis: str, attention: str = "scaled_dot"
    ) -> None:
        super().__init__()
        head_width = head_size(hidden_width, num_heads)
        self.num_heads = num_heads
        self.projection = convolution(width, 3 * hidden_width, 1)
        self.mechanism = build_mechanism(attention, head_width, head_width, head_width, queries=axis, keys=axis)
        self.output = convolution(hidden_width, width, 1)
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(
        self, features: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels height width"]:
        projected = self.projection(features).flatten(2).transpose(1, 2).chunk(3, dim=-1)
        queries, keys, values = (split_heads(part, self.num_heads) for part in projected)
        context = merge_heads(self.mechanism(queries, keys, values))
        return features + self.gate * self.output(context.transpose(1, 2).unflatten(2, features.shape[2:]))
