"""Windows: cutting and joining, who is whose neighbour, and that what is recorded is what was computed."""

from __future__ import annotations

import pytest
import torch

from regard.attention.multihead import merge_heads, split_heads
from regard.blocks.windows import WindowAttention, Windows
from regard.models.swin import BiasedWindowAttention
from regard.models.swinv2 import CosineWindowAttention
from regard.recording import record

BATCH, WIDTH, HEADS = 2, 22, 2
GRIDS = [(6, 9, 3, 1), (5, 7, 3, 1), (7, 5, 3, 0), (4, 11, 4, 2), (2, 3, 5, 2), (3, 3, 3, 1), (1, 1, 3, 1)]
"""Rows, columns, side and shift: whole windows, filled up, a single window in one or both directions."""


@pytest.mark.parametrize("grid", GRIDS)
def test_cut_and_joined(grid: tuple[int, int, int, int]) -> None:
    windows = Windows(*grid)
    inputs = torch.randn(BATCH, windows.rows, windows.columns, WIDTH)
    pieces = windows.cut(inputs)
    assert pieces.shape[1:] == (windows.side**2, WIDTH)
    assert torch.equal(windows.join(pieces), inputs)
    places = windows.places()
    for example in range(BATCH):
        own = pieces.unflatten(0, (BATCH, -1))[example]
        there = places >= 0
        assert torch.equal(own[there], inputs[example].flatten(0, 1)[places[there]])
        assert not own[~there].any(), "the filling is zero"
    assert sorted(places[places >= 0].tolist()) == list(range(windows.rows * windows.columns))


@pytest.mark.parametrize("grid", GRIDS)
def test_neighbours_pair_by_pair(grid: tuple[int, int, int, int]) -> None:
    """Two places see each other when the roll has put them in one window and did not carry only one of them around."""
    rows, columns, side, shift = grid
    windows = Windows(*grid)
    padded = (-(-rows // side) * side, -(-columns // side) * side)
    down, right = (shift if size > side else 0 for size in padded)

    def window(row: int, column: int) -> tuple[int, ...]:
        rolled = (row - down) % padded[0], (column - right) % padded[1]
        return rolled[0] // side, rolled[1] // side, int(row < down), int(column < right)

    places, allow = windows.places(), windows.allow(1).pairs
    for number, inside in enumerate(places.tolist()):
        for query, one in enumerate(inside):
            for key, other in enumerate(inside):
                if one >= 0 and other >= 0:
                    together = window(*divmod(one, columns)) == window(*divmod(other, columns))
                    assert together == (True if allow is None else bool(allow[number, 0, query, key]))


def make(kind: str, side: int) -> WindowAttention:
    if kind == "biased":
        module: WindowAttention = BiasedWindowAttention(WIDTH, HEADS, side, axis="stage1", dropout_rate=0.0)
    else:
        module = CosineWindowAttention(WIDTH, HEADS, side, side, axis="stage1", dropout_rate=0.0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module


@pytest.mark.parametrize("kind", ["biased", "cosine"])
@pytest.mark.parametrize("grid", GRIDS)
def test_what_is_recorded_makes_the_output(kind: str, grid: tuple[int, int, int, int]) -> None:
    windows = Windows(*grid)
    module = make(kind, windows.side)
    inputs = torch.randn(BATCH, windows.rows, windows.columns, WIDTH)
    with record(module) as recording:
        output = module(inputs, windows)
    seen = recording["attention"]
    axis = windows.axis(4)
    assert seen.shape == (BATCH, HEADS, len(axis), len(axis))
    tokens = inputs.flatten(1, 2)
    if windows.has_padding:
        assert axis.extras == ("padding",)
        tokens = torch.cat([torch.zeros(BATCH, 1, WIDTH), tokens], dim=1)
    _, _, values = module.project(tokens)
    context = seen.weights()[:, :, len(axis.extras) :] @ values
    torch.testing.assert_close(module.output(merge_heads(context)), output.flatten(1, 2), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["biased", "cosine"])
def test_a_whole_grid_in_one_window_is_plain_attention(kind: str) -> None:
    windows = Windows(3, 3, 3, 1)
    module, inputs = make(kind, 3), torch.randn(BATCH, 3, 3, WIDTH)
    queries, keys, values = module.project(inputs.flatten(1, 2))
    weights = (module.scale * queries @ keys.transpose(-1, -2) + module.bias()).softmax(dim=-1)
    wanted = module.output(merge_heads(weights @ values)).unflatten(1, (3, 3))
    torch.testing.assert_close(module(inputs, windows), wanted, rtol=1e-4, atol=1e-5)


def test_cosines_have_a_largest_scale() -> None:
    module = make("cosine", 3)
    with torch.no_grad():
        module.log_scale.fill_(50.0)
    queries, keys, values = module.project(torch.randn(1, 9, WIDTH))
    torch.testing.assert_close(queries.norm(dim=-1), torch.full((1, HEADS, 9), 100.0))
    torch.testing.assert_close(keys.norm(dim=-1), torch.ones(1, HEADS, 9))
    assert torch.equal(values, split_heads(merge_heads(values), HEADS))


def test_a_recording_grows_with_the_grid_and_not_with_its_square() -> None:
    module = make("biased", 3)
    sizes = []
    for rows in (12, 24):
        with record(module) as recording, torch.no_grad():
            module(torch.randn(1, rows, rows, WIDTH), Windows(rows, rows, 3, 1))
        sizes.append(recording.nbytes)
    assert sizes[1] < 4.1 * sizes[0]
