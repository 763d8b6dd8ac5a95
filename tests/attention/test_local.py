"""Local attention against loops over positions and neighbours, forwards and backwards."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.local import attend_locally, local_neighbours
from regard.attention.stand_alone import SpatiallyAwareAttention, StandAloneSelfAttention
from regard.core.errors import ConfigError
from regard.core.tap import Tap
from regard.recording import record

SHAPES = [(7, 5, 3, 1), (5, 7, 5, 2), (3, 2, 7, 1), (7, 7, 4, 1), (11, 6, 3, 3), (1, 1, 3, 1)]


def slowly(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor, window: int, stride: int) -> Tensor:
    """Position after position, neighbour after neighbour."""
    height, width = keys.shape[-2:]
    before = window // 2
    context = torch.zeros(*queries.shape[:2], values.shape[2], *queries.shape[-2:], dtype=queries.dtype)
    rows = []
    for row in range(queries.shape[-2]):
        for column in range(queries.shape[-1]):
            scores, seen = [], []
            for place in range(window**2):
                y, x = row * stride + place // window - before, column * stride + place % window - before
                if 0 <= y < height and 0 <= x < width:
                    score = (queries[:, :, :, row, column] * keys[:, :, :, y, x]).sum(-1)
                    scores.append(score + bias[:, :, place, row, column])
                    seen.append(values[:, :, :, y, x])
            weights = torch.stack(scores, dim=-1).softmax(dim=-1)
            rows.append((torch.stack(seen, dim=-1) * weights[:, :, None]).sum(-1))
    return torch.stack(rows, dim=-1).view(context.shape)


def inputs(height: int, width: int, window: int, stride: int) -> list[Tensor]:
    rows, columns = -(-height // stride), -(-width // stride)
    shapes = [
        (2, 3, 5, rows, columns),
        (2, 3, 5, height, width),
        (2, 3, 2, height, width),
        (2, 3, window**2, rows, columns),
    ]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize(("height", "width", "window", "stride"), SHAPES)
def test_against_loops(height: int, width: int, window: int, stride: int) -> None:
    queries, keys, values, bias = given = inputs(height, width, window, stride)
    quick = attend_locally(queries, keys, values, window=window, stride=stride, bias=bias)
    slow = slowly(*given, window, stride)
    torch.testing.assert_close(quick, slow)
    direction = torch.randn_like(slow)
    for one, other in zip(
        torch.autograd.grad(quick, given, direction), torch.autograd.grad(slow, given, direction), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_gradients_by_differences() -> None:
    given = inputs(3, 4, 3, 2)
    assert torch.autograd.gradcheck(
        lambda q, k, v, b: attend_locally(q, k, v, window=3, stride=2, bias=b), given, fast_mode=True
    )


@pytest.mark.parametrize(("height", "width", "window", "stride"), SHAPES)
def test_neighbours(height: int, width: int, window: int, stride: int) -> None:
    rows, columns = -(-height // stride), -(-width // stride)
    expected = [
        [
            y * width + x if 0 <= y < height and 0 <= x < width else -1
            for y in range(row * stride - window // 2, row * stride - window // 2 + window)
            for x in range(column * stride - window // 2, column * stride - window // 2 + window)
        ]
        for row in range(rows)
        for column in range(columns)
    ]
    assert local_neighbours(height, width, window, stride).tolist() == expected


def test_what_is_recorded_gives_the_context() -> None:
    queries, keys, values, bias = (tensor.detach() for tensor in inputs(5, 7, 3, 2))
    layer = torch.nn.Module()
    layer.tap = Tap("few", "many")
    with record(layer) as recording:
        context = attend_locally(queries, keys, values, window=3, stride=2, bias=bias, tap=layer.tap)
    seen = recording["attention"]
    assert seen.shape == (2, 3, 3 * 4, 5 * 7)
    torch.testing.assert_close(seen.weights().double() @ values.flatten(3).mT, context.flatten(3).mT, rtol=0, atol=1e-6)


def test_half_precision_is_as_good_as_its_inputs() -> None:
    queries, keys, values, bias = (tensor.detach().bfloat16() for tensor in inputs(5, 7, 3, 1))
    half = attend_locally(queries, keys, values, window=3, bias=bias)
    full = attend_locally(queries.float(), keys.float(), values.float(), window=3, bias=bias.float())
    assert half.dtype == torch.bfloat16
    assert torch.equal(half, full.bfloat16())


@pytest.mark.parametrize("head_width", [4, 5])
def test_stand_alone_by_equation_3(head_width: int) -> None:
    """q . k + q . r with r the row's embedding beside the column's."""
    heads, window, height, width = 3, 3, 5, 4
    layer = StandAloneSelfAttention(heads * head_width, heads, window, axis="positions")
    features = torch.randn(2, heads * head_width, height, width)
    q, k, v = F.conv2d(features, layer.projection.weight).chunk(3, dim=1)
    expected = torch.zeros_like(q)
    for head in range(heads):
        part = slice(head * head_width, (head + 1) * head_width)
        for i in range(height):
            for j in range(width):
                scores, seen = [], []
                for a in range(max(0, i - 1), min(height, i + 2)):
                    for b in range(max(0, j - 1), min(width, j + 2)):
                        r = torch.cat([layer.row_offsets[head, :, a - i + 1], layer.column_offsets[head, :, b - j + 1]])
                        scores.append((q[:, part, i, j] * (k[:, part, a, b] + r)).sum(-1))
                        seen.append(v[:, part, a, b])
                weights = torch.stack(scores, dim=-1).softmax(-1)
                expected[:, part, i, j] = (torch.stack(seen, dim=-1) * weights[:, None]).sum(-1)
    torch.testing.assert_close(layer(features), expected, rtol=1e-5, atol=1e-5)


def test_a_stride_averages_what_is_there() -> None:
    layer = StandAloneSelfAttention(6, 1, 3, axis="positions")
    features = torch.randn(1, 6, 5, 4)
    whole = layer(features)
    layer.stride = 2
    torch.testing.assert_close(layer(features)[..., :2, :], F.avg_pool2d(whole[..., :4, :], 2))
    torch.testing.assert_close(layer(features)[..., 2, 1], whole[..., 4, 2:].mean(-1))


def test_spatially_aware_values() -> None:
    """Block by block, with a value matrix for each place in a block."""
    heads, head_width, size = 2, 3, 2
    layer = SpatiallyAwareAttention(3, heads * head_width, heads, size, 5, axis="pixels")
    images = torch.randn(2, 3, 5, 7)
    with record(layer) as recording:
        context = layer(images)
    place = torch.stack([layer.rows[a] + layer.columns[b] for a in range(size) for b in range(size)])
    shares = (place @ layer.mixtures.T).softmax(-1)
    expected = torch.zeros(2, heads * head_width, 5, 7)
    for i in range(5):
        for j in range(7):
            block = [(y, x) for y in range(i - i % 2, i - i % 2 + 2) for x in range(j - j % 2, j - j % 2 + 2)]
            block = [(y, x) for y, x in block if y < 5 and x < 7]
            for head in range(heads):
                part = slice(head * head_width, (head + 1) * head_width)
                query = layer.query_projection(images[:, :, i, j])[:, part]
                keys = torch.stack([layer.key_projection(images[:, :, y, x])[:, part] for y, x in block], dim=1)
                matrices = [(shares[(y % 2) * 2 + x % 2][:, None, None] * layer.value_weights).sum(0) for y, x in block]
                values = torch.stack(
                    [(images[:, :, y, x] @ matrix.T)[:, part] for (y, x), matrix in zip(block, matrices, strict=True)],
                    dim=1,
                )
                weights = torch.einsum("bd,bkd->bk", query, keys).softmax(-1)
                expected[:, part, i, j] = torch.einsum("bk,bkd->bd", weights, values)
                row = recording["attention"].weights(head=head, rows=i * 7 + j)
                torch.testing.assert_close(row[:, [y * 7 + x for y, x in block]], weights.detach())
                torch.testing.assert_close(row.sum(-1), torch.ones(2))
    torch.testing.assert_close(context, expected, rtol=1e-5, atol=1e-5)


def test_heads_need_rows_and_columns() -> None:
    with pytest.raises(ConfigError, match="Take fewer heads"):
        StandAloneSelfAttention(6, 6, 3, axis="positions")
