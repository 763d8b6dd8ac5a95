"""Recurrent cells: their equations spelled out, and sequences with padding in them."""

from __future__ import annotations

import pytest
import torch

from regard.layers.recurrent import RecurrentCell, cells, run

BATCH, LENGTH, INPUTS, WIDTH = 3, 5, 7, 11
KINDS = ["rnn", "lstm", "gru"]


def make(kind: str) -> RecurrentCell:
    return cells[kind](INPUTS, WIDTH)


def spelled_out(kind: str, cell: RecurrentCell, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    """One step in the words of a textbook, one matrix a gate."""
    hidden = state[..., :WIDTH]
    ours = cell.input_gates(x).split(WIDTH, dim=-1)
    own = cell.hidden_gates(hidden).split(WIDTH, dim=-1)
    if kind == "rnn":
        return torch.tanh(ours[0] + own[0])
    if kind == "gru":
        reset = torch.sigmoid(ours[0] + own[0])
        keep = torch.sigmoid(ours[1] + own[1])
        return (1 - keep) * torch.tanh(ours[2] + reset * own[2]) + keep * hidden
    admit, forget, release = (torch.sigmoid(ours[i] + own[i]) for i in (0, 1, 3))
    memory = forget * state[..., WIDTH:] + admit * torch.tanh(ours[2] + own[2])
    return torch.cat([release * torch.tanh(memory), memory], dim=-1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("leading", [(BATCH,), (2, 3)])
def test_a_step_by_hand(kind: str, leading: tuple[int, ...]) -> None:
    cell = make(kind)
    x, state = torch.randn(*leading, INPUTS), torch.randn(*leading, cell.state_width)
    following = cell.step(cell.project(x), state)
    torch.testing.assert_close(following, spelled_out(kind, cell, x, state))
    assert torch.equal(cell.output(following), following[..., :WIDTH])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_sequence_is_its_steps(kind: str, reverse: bool) -> None:
    cell = make(kind)
    inputs, state = torch.randn(BATCH, LENGTH, INPUTS), torch.randn(BATCH, cell.state_width)
    outputs, last = run(cell, inputs, state, reverse=reverse)
    for place in reversed(range(LENGTH)) if reverse else range(LENGTH):
        state = cell.step(cell.project(inputs[:, place]), state)
        torch.testing.assert_close(outputs[:, place], cell.output(state))
    torch.testing.assert_close(last, state)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_changes_nothing(kind: str, reverse: bool, side: str) -> None:
    cell = make(kind)
    inputs, state = torch.randn(1, 3, INPUTS), torch.randn(1, cell.state_width)
    alone, last_alone = run(cell, inputs, state, reverse=reverse)
    padding = torch.full((1, 2, INPUTS), 99.0)
    parts = [padding, inputs] if side == "left" else [inputs, padding]
    present = torch.tensor([[False] * 2 + [True] * 3 if side == "left" else [True] * 3 + [False] * 2])
    outputs, last = run(cell, torch.cat(parts, dim=1), state, present, reverse=reverse)
    torch.testing.assert_close(outputs[present][None], alone)
    torch.testing.assert_close(last, last_alone)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_example_keeps_its_state(kind: str) -> None:
    cell = make(kind)
    state = torch.randn(1, cell.state_width)
    _, last = run(cell, torch.randn(1, 3, INPUTS), state, torch.zeros(1, 3, dtype=torch.bool))
    assert torch.equal(last, state)


@pytest.mark.parametrize("kind", KINDS)
def test_under_autocast_the_state_has_one_dtype(kind: str) -> None:
    cell = make(kind)
    inputs, state = torch.randn(BATCH, LENGTH, INPUTS), torch.zeros(BATCH, cell.state_width)
    exact, _ = run(cell, inputs, state)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs, last = run(cell, inputs, state, torch.ones(BATCH, LENGTH, dtype=torch.bool))
    assert outputs.dtype == last.dtype
    torch.testing.assert_close(outputs.float(), exact, rtol=0, atol=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_initial_states(kind: str) -> None:
    cell = make(kind)
    hidden = torch.randn(BATCH, WIDTH)
    state = cell.initial(hidden)
    assert state.shape == (BATCH, cell.state_width)
    assert torch.equal(cell.output(state), hidden)
    assert not state[:, WIDTH:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_matrices_start_orthogonal(kind: str) -> None:
    cell = make(kind)
    for matrix in cell.hidden_gates.weight.detach().chunk(cell.num_gates):
        torch.testing.assert_close(matrix @ matrix.T, torch.eye(WIDTH), rtol=0, atol=1e-5)
