"""Where a patch stands: on the grid a model is built for, and on others."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from regard.layers.grid_positions import grid_offsets, grid_positions, offset_bias
from regard.layers.positions import sinusoidal_positions

WIDTH, HEADS, ROWS, COLUMNS, EXTRAS = 11, 3, 5, 7, 2


def make(kind: str, extras: int = EXTRAS):
    return grid_positions[kind](WIDTH, HEADS, ROWS, COLUMNS, extras)


def added(kind_or_module, rows: int = ROWS, columns: int = COLUMNS, extras: int = EXTRAS) -> torch.Tensor:
    where = make(kind_or_module) if isinstance(kind_or_module, str) else kind_or_module
    return where(torch.zeros(1, extras + rows * columns, WIDTH), rows, columns)[0].detach()


@pytest.mark.parametrize("kind", grid_positions)
@pytest.mark.parametrize(("rows", "columns"), [(5, 7), (7, 5), (3, 11), (1, 1)])
def test_every_grid_has_positions(kind: str, rows: int, columns: int) -> None:
    for extras in (0, 1, 2):
        where = make(kind, extras)
        tokens = torch.randn(2, extras + rows * columns, WIDTH)
        placed = where(tokens, rows, columns)
        assert placed.shape == tokens.shape
        torch.testing.assert_close(placed - tokens, (placed - tokens)[:1].expand_as(tokens))
        bias = where.bias(rows, columns)
        assert bias is None or bias.shape == (1, HEADS, tokens.shape[1], tokens.shape[1])


@pytest.mark.parametrize("kind", ["learned", "learned_unfiltered"])
def test_a_learned_table_is_resized_as_a_picture(kind: str) -> None:
    where = make(kind)
    assert torch.equal(added(where), where.table)
    other = added(where, 7, 3)
    assert torch.equal(other[:EXTRAS], where.table[:EXTRAS]), "extras keep theirs"
    for channel in range(WIDTH):
        picture = where.table[EXTRAS:, channel].detach().reshape(1, 1, ROWS, COLUMNS)
        resized = F.interpolate(picture, size=(7, 3), mode="bicubic", antialias=kind == "learned")
        torch.testing.assert_close(other[EXTRAS:, channel], resized.flatten())


def test_a_resized_plane_stays_a_plane() -> None:
    """Rows and columns are not mixed up: what grows from row to row grows so in the middle of any grid."""
    where = make("learned", extras=0)
    with torch.no_grad():
        where.table[:] = (torch.arange(ROWS)[:, None] * 10.0).expand(ROWS, COLUMNS).reshape(-1, 1)
    resized = added(where, 10, 3, extras=0)[:, 0].reshape(10, 3)
    torch.testing.assert_close(resized[:, 0], resized[:, 2])
    steps = resized.diff(dim=0)[3:6, 0]
    torch.testing.assert_close(steps, torch.full_like(steps, 5.0), rtol=0, atol=0.2)


def test_sinusoids_of_row_and_column() -> None:
    table = added("sinusoidal", 4, 6)
    assert not table[:EXTRAS].any(), "extras have none"
    for row in range(4):
        for column in range(6):
            wanted = torch.cat([sinusoidal_positions(4, 6)[row], sinusoidal_positions(6, 5)[column]])
            torch.testing.assert_close(table[EXTRAS + row * 6 + column], wanted)


def test_a_relative_bias_place_by_place() -> None:
    where = make("relative")
    rows, columns = 7, 5
    bias = where.bias(rows, columns)[0]
    assert not bias[:, :EXTRAS].any()
    assert not bias[:, :, :EXTRAS].any()
    for query in range(rows * columns):
        for key in range(rows * columns):
            down = max(-4, min(4, query // columns - key // columns))
            right = max(-6, min(6, query % columns - key % columns))
            wanted = where.by_offset[:, down + 4, right + 6]
            assert torch.equal(bias[:, EXTRAS + query, EXTRAS + key], wanted)


def test_offsets_have_a_sign() -> None:
    down, right = grid_offsets(2, 3)
    assert down[4, 0] == 1
    assert right[4, 0] == 1
    assert down[0, 5] == -1
    assert right[0, 5] == -2
    table = torch.arange(15.0).reshape(1, 3, 5)
    bias = offset_bias(table, 2, 3)
    assert bias[0, 4, 0] == table[0, 1 + 1, 2 + 1]
    assert bias[0, 0, 5] == table[0, 1 - 1, 2 - 2]
