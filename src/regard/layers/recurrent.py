"""Recurrent cells as one step each: plain (Elman), LSTM and GRU, with torch's own equations and weight layout.

A cell's input part is a matrix product for all steps at once (`project`); only the hidden part runs step by step.
The state is one tensor, hidden part first, so that a decoder can select and reorder it without knowing the cell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.core.linear import Linear
from regard.core.registry import Registry

cells: Registry[type[RecurrentCell]] = Registry("recurrent cell")

State = Float[Tensor, "*batch state_width"]


class RecurrentCell(nn.Module, ABC):
    """state = step(project(input), state); `output(state)` is the hidden vector."""

    num_gates: int
    num_vectors = 1  # vectors of `width` numbers that make up the state

    def __init__(self, inputs_width: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.input_gates = Linear(inputs_width, self.num_gates * width)
        self.hidden_gates = Linear(width, self.num_gates * width)
        for matrix in self.hidden_gates.weight.data.chunk(self.num_gates):
            nn.init.orthogonal_(matrix)

    @property
    def state_width(self) -> int:
        return self.num_vectors * self.width

    def project(self, inputs: Float[Tensor, "*batch inputs_width"]) -> Float[Tensor, "*batch gates"]:
        return self.input_gates(inputs)

    @abstractmethod
    def step(self, gates: Float[Tensor, "*batch gates"], state: State) -> State:
        """The next state from projected inputs."""

    def output(self, state: State) -> Float[Tensor, "*batch width"]:
        return state[..., : self.width]

    def initial(self, hidden: Float[Tensor, "*batch width"]) -> State:
        """A state whose hidden part is given and whose other vectors are zero."""
        return torch.cat([hidden, *[torch.zeros_like(hidden)] * (self.num_vectors - 1)], dim=-1)


@cells.register("rnn")
class PlainCell(RecurrentCell):
    """h' = tanh(W x + U h)"""

    num_gates = 1

    def step(self, gates: Float[Tensor, "*batch gates"], state: State) -> State:
        return torch.tanh(gates + self.hidden_gates(state))


@cells.register("lstm")
class LSTMCell(RecurrentCell):
    """c' = f c + i g, h' = o tanh(c'): gates in torch's order i, f, g, o; the state is [h, c]"""

    num_gates = 4
    num_vectors = 2

    def step(self, gates: Float[Tensor, "*batch gates"], state: State) -> State:
        hidden, memory = state.chunk(2, dim=-1)
        admit, keep, update, release = (gates + self.hidden_gates(hidden)).chunk(4, dim=-1)
        memory = torch.sigmoid(keep) * memory + torch.sigmoid(admit) * torch.tanh(update)
        return torch.cat([torch.sigmoid(release) * torch.tanh(memory), memory], dim=-1)


@cells.register("gru")
class GRUCell(RecurrentCell):
    """h' = (1 - z) n + z h, n = tanh(W x + r (U h)): gates in torch's order r, z, n"""

    num_gates = 3

    def step(self, gates: Float[Tensor, "*batch gates"], state: State) -> State:
        split = (2 * self.width, self.width)
        input_gates, input_update = gates.split(split, dim=-1)
        hidden_gates, hidden_update = self.hidden_gates(state).split(split, dim=-1)
        reset, keep = torch.sigmoid(input_gates + hidden_gates).chunk(2, dim=-1)
        update = torch.tanh(torch.addcmul(input_update, reset, hidden_update))
        return torch.lerp(update, state.to(update.dtype), keep)


def run(
    cell: RecurrentCell,
    inputs: Float[Tensor, "batch length inputs_width"],
    state: Float[Tensor, "batch state_width"],
    present: Bool[Tensor, "batch length"] | None = None,
    *,
    reverse: bool = False,
) -> tuple[Float[Tensor, "batch length width"], Float[Tensor, "batch state_width"]]:
    """All steps of a sequence and the last state. Where nothing is present the state stays as it is."""
    gates = cell.project(inputs).unbind(1)
    state = state.to(gates[0].dtype)  # one dtype for all steps, whatever autocast made of the gates
    keep = None if present is None else present.unsqueeze(-1).unbind(1)
    order = range(len(gates))
    outputs: list[Tensor] = [state] * len(gates)
    for step in reversed(order) if reverse else order:
        following = cell.step(gates[step], state)
        state = following if keep is None else torch.where(keep[step], following, state)
        outputs[step] = cell.output(state)
    return torch.stack(outputs, dim=1), state
