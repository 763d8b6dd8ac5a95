"""Attention whose queries, keys and values are pooled on the grid first (Fan et al. 2021; Li et al. 2022; deck B).

    Q = P_Q(X W_Q),  K = P_K(X W_K),  V = P_V(X W_V),   P: depthwise 3 x 3 convolution with a stride, then a norm
    Z = softmax(Q K^T / sqrt(d) + E) V  (+ Q in the second version)
    E_ij = Q_i . R_h[row of i - row of j] + Q_i . R_w[column of i - column of j]     (the second version)

A stride on queries makes the grid coarser from there on; a stride on keys and values makes attention cheaper only, so
that a query looks at patches larger than its own. Heads share the convolutions. Class tokens are not pooled.

E is never written out for all pairs: the products of a query with the rows R_h are appended to the query, and the row
of a key as a one to the key, likewise for columns. Then Q K^T + E is one product, of vectors a little longer.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.kernels import attend
from regard.attention.multihead import Heads, head_size, merge_heads, split_heads
from regard.core.tap import Tap

Sides = tuple[int, int]
Queries = Float[Tensor, "batch heads queries head_width"]
Keys = Float[Tensor, "batch heads keys head_width"]


class HeadPooling(nn.Module):
    """Pools each head's vectors on the grid, all heads alike."""

    def __init__(self, head_width: int, stride: int, epsilon: float) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(head_width, head_width, 3, stride, padding=1, groups=head_width, bias=False)
        self.norm = nn.LayerNorm(head_width, epsilon)

    def forward(
        self, heads: Heads, sides: Sides, num_extras: int
    ) -> tuple[Float[Tensor, "batch heads fewer head_width"], Sides]:
        extras, grid = heads[:, :, :num_extras], heads[:, :, num_extras:]
        batch, num_heads, _, width = grid.shape
        grid = grid.transpose(2, 3).reshape(batch * num_heads, width, *sides)
        pooled = self.convolution(grid)
        places = pooled.flatten(2).transpose(1, 2).unflatten(0, (batch, num_heads))
        return self.norm(torch.cat([extras, places], dim=2)), (pooled.shape[2], pooled.shape[3])


class OffsetProducts(nn.Module):
    """A query's products with a vector for each offset in rows, and one for each in columns."""

    def __init__(self, head_width: int, side: int) -> None:
        """`side` of the finer of the two grids of queries and keys that the tables are made for."""
        super().__init__()
        self.rows = nn.Parameter(torch.empty(2 * side - 1, head_width))
        self.columns = nn.Parameter(torch.empty(2 * side - 1, head_width))
        nn.init.trunc_normal_(self.rows, std=0.02)
        nn.init.trunc_normal_(self.columns, std=0.02)

    def appended(
        self, queries: Queries, keys: Keys, scale: float, sides: Sides, key_sides: Sides, num_extras: int
    ) -> tuple[Float[Tensor, "batch heads queries longer"], Float[Tensor, "batch heads keys longer"]]:
        """Queries, scaled, and keys whose products are the scores with E."""
        grid = queries[:, :, num_extras:].unflatten(2, sides)
        by_row = offset_vectors(self.rows, sides[0], key_sides[0])
        by_column = offset_vectors(self.columns, sides[1], key_sides[1])
        of_rows = torch.einsum("bhrcd,rkd->bhrck", grid, by_row)
        of_columns = torch.einsum("bhrcd,ckd->bhrck", grid, by_column)
        products = torch.cat([of_rows, of_columns], dim=-1).flatten(2, 3)
        places = key_places(key_sides, keys)
        if num_extras:
            products, places = F.pad(products, (0, 0, num_extras, 0)), F.pad(places, (0, 0, num_extras, 0))
        places = places.expand(*keys.shape[:2], -1, -1)
        return torch.cat([scale * queries, products.to(queries.dtype)], dim=-1), torch.cat([keys, places], dim=-1)


class PoolingAttention(nn.Module):
    """Multi-head attention between pooled queries and pooled keys of one grid."""

    def __init__(
        self,
        inputs_width: int,
        width: int,
        num_heads: int,
        *,
        query_pooling: int | None,
        key_stride: int,
        offset_side: int | None,
        adds_queries: bool,
        num_extras: int,
        epsilon: float,
        axes: tuple[str, str],
        dropout_rate: float,
    ) -> None:
        """`query_pooling` is the stride of the queries, None without pooling; `offset_side` None is without E."""
        super().__init__()
        head_width = head_size(width, num_heads)
        self.num_heads = num_heads
        self.num_extras = num_extras
        self.adds_queries = adds_queries
        self.dropout_rate = dropout_rate
        self.scale = head_width**-0.5
        self.projection = nn.Linear(inputs_width, 3 * width)
        self.query_pooling = None if query_pooling is None else HeadPooling(head_width, query_pooling, epsilon)
        self.key_pooling = HeadPooling(head_width, key_stride, epsilon)
        self.value_pooling = HeadPooling(head_width, key_stride, epsilon)
        self.offsets = None if offset_side is None else OffsetProducts(head_width, offset_side)
        self.output = nn.Linear(width, width)
        self.tap = Tap(*axes)

    def forward(
        self, inputs: Float[Tensor, "batch tokens inputs_width"], sides: Sides
    ) -> tuple[Float[Tensor, "batch queries width"], Sides]:
        """The context of every pooled query, and the sides of the grid that they make."""
        parts = (split_heads(part, self.num_heads) for part in self.projection(inputs).chunk(3, dim=-1))
        queries, keys, values = parts
        keys, key_sides = self.key_pooling(keys, sides, self.num_extras)
        values, _ = self.value_pooling(values, sides, self.num_extras)
        if self.query_pooling is not None:
            queries, sides = self.query_pooling(queries, sides, self.num_extras)
        asking, scale = queries, self.scale
        if self.offsets is not None:
            asking, keys = self.offsets.appended(queries, keys, scale, sides, key_sides, self.num_extras)
            scale = 1.0
        rate = self.dropout_rate if self.training else 0.0
        context = attend(asking, keys, values, scale=scale, dropout_rate=rate, tap=self.tap)
        if self.adds_queries:
            context = context + queries
        return self.output(merge_heads(context)), sides


def offset_vectors(
    table: Float[Tensor, "offsets width"], num_queries: int, num_keys: int
) -> Float[Tensor, "queries keys width"]:
    """The vector of each pair along one side; a table for grids of another size is stretched in a straight line.

    Offsets are counted in steps of the finer grid: of 14 queries and 7 keys each key stands at every second query.
    """
    length = 2 * max(num_queries, num_keys) - 1
    if len(table) != length:
        table = F.interpolate(table.T[None], size=length, mode="linear")[0].T
    return table[offsets_between(num_queries, num_keys).to(table.device)]


def offsets_between(num_queries: int, num_keys: int) -> Int[Tensor, "queries keys"]:
    """Rows of the table: the offset of each pair, counted from the least one."""
    query_step, key_step = max(num_keys / num_queries, 1.0), max(num_queries / num_keys, 1.0)
    queries = torch.arange(num_queries, dtype=torch.float32) * query_step
    keys = torch.arange(num_keys, dtype=torch.float32) * key_step
    return (queries[:, None] - keys + (num_keys - 1) * key_step).long()


def key_places(sides: Sides, like: Tensor) -> Float[Tensor, "places rows_and_columns"]:
    """For each key a one at its row, and one at its column."""
    rows, columns = (torch.eye(side, dtype=like.dtype, device=like.device) for side in sides)
    return torch.cat([rows.repeat_interleave(sides[1], dim=0), columns.repeat(sides[0], 1)], dim=1)
