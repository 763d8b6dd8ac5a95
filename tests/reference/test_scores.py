"""Every score against a slow loop over its formula, one pair at a time."""

import math

import pytest
import torch

from regard.attention import mechanisms
from regard.core.errors import ConfigError

BATCH, QUERIES, KEYS, QUERY_WIDTH, KEY_WIDTH, WIDTH = 2, 3, 5, 7, 11, 13


@torch.no_grad()
def slow_context(score, queries, keys, values):
    """softmax over score(q, k), then the weighted sum, with plain numbers."""
    rows = []
    for example in range(len(queries)):
        for query in queries[example]:
            scores = [float(score(query, key)) for key in keys[example]]
            exponentials = [math.exp(one - max(scores)) for one in scores]
            weights = [one / sum(exponentials) for one in exponentials]
            rows.append(sum(weight * value for weight, value in zip(weights, values[example], strict=True)))
    return torch.stack(rows).view(len(queries), queries.shape[1], -1)


def inputs(query_width: int = QUERY_WIDTH, key_width: int = KEY_WIDTH):
    torch.manual_seed(4)
    shapes = ((QUERIES, query_width), (KEYS, key_width), (KEYS, 17))
    return [torch.randn(BATCH, *shape, dtype=torch.float64) for shape in shapes]


def test_additive() -> None:
    queries, keys, values = inputs()
    additive = mechanisms["additive"](QUERY_WIDTH, KEY_WIDTH, WIDTH).double()
    w, w_q, w_k = additive.energy.weight[0], additive.query_projection.weight, additive.key_projection.weight
    expected = slow_context(lambda q, k: w @ torch.tanh(w_q @ q + w_k @ k), queries, keys, values)
    torch.testing.assert_close(additive(queries, keys, values), expected)


def test_additive_concatenated() -> None:
    queries, keys, values = inputs()
    additive = mechanisms["additive_concatenated"](QUERY_WIDTH, KEY_WIDTH, WIDTH).double()
    w, matrix = additive.energy.weight[0], additive.projection.weight
    expected = slow_context(lambda q, k: w @ torch.tanh(matrix @ torch.cat([q, k])), queries, keys, values)
    torch.testing.assert_close(additive(queries, keys, values), expected)


def test_both_spellings_are_one_function() -> None:
    queries, keys, values = inputs()
    split = mechanisms["additive"](QUERY_WIDTH, KEY_WIDTH, WIDTH).double()
    joined = mechanisms["additive_concatenated"](QUERY_WIDTH, KEY_WIDTH, WIDTH).double()
    with torch.no_grad():
        joined.projection.weight.copy_(torch.cat([split.query_projection.weight, split.key_projection.weight], dim=1))
        joined.energy.weight.copy_(split.energy.weight)
    torch.testing.assert_close(split(queries, keys, values), joined(queries, keys, values))


def test_bilinear() -> None:
    queries, keys, values = inputs()
    bilinear = mechanisms["bilinear"](QUERY_WIDTH, KEY_WIDTH, WIDTH).double()
    expected = slow_context(lambda q, k: (bilinear.between.weight @ q) @ k, queries, keys, values)
    torch.testing.assert_close(bilinear(queries, keys, values), expected)


@pytest.mark.parametrize(("name", "scale"), [("dot", 1.0), ("scaled_dot", QUERY_WIDTH**-0.5)])
def test_dot_products(name: str, scale: float) -> None:
    queries, keys, values = inputs(key_width=QUERY_WIDTH)
    dot = mechanisms[name](QUERY_WIDTH, QUERY_WIDTH, WIDTH)
    expected = slow_context(lambda q, k: scale * (q @ k), queries, keys, values)
    torch.testing.assert_close(dot(queries, keys, values), expected)


@pytest.mark.parametrize("name", ["dot", "scaled_dot"])
def test_dot_products_refuse_unequal_widths(name: str) -> None:
    with pytest.raises(ConfigError, match=r"7 numbers and the keys 11.*bilinear"):
        mechanisms[name](QUERY_WIDTH, KEY_WIDTH, WIDTH)
