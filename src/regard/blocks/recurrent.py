"""Recurrent encoders and the decoder whose state reads a context: everything around attention in RNN translators.

    annotations  h_j = [forward RNN; backward RNN] (Bahdanau), or the top of a stack of forward RNNs (Luong)
    decoder      s_i = cell([y_{i-1}; c_i], s_{i-1}),  c_i = read(s_{i-1}, annotations)

What `read` does is a part that is handed in: attention over the annotations, or one fixed summary of them.
Keys are projected once a sentence; the inputs of all steps are projected in one product.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.mechanism import build_mechanism
from regard.core.dropout import dropout
from regard.core.linear import Linear
from regard.core.masks import Allow, allow_present
from regard.core.steps import Step, at_step
from regard.layers.recurrent import RecurrentCell, cells, run


class BidirectionalEncoder(nn.Module):
    """Two cells, one reading forwards and one backwards; `width` numbers a token, half from each."""

    def __init__(self, cell: str, inputs_width: int, width: int) -> None:
        super().__init__()
        assert width % 2 == 0, f"a bidirectional encoder shares its width evenly, {width} is odd"
        self.forwards: RecurrentCell = cells[cell](inputs_width, width // 2)
        self.backwards: RecurrentCell = cells[cell](inputs_width, width // 2)

    def forward(
        self, inputs: Float[Tensor, "batch length inputs_width"], present: Bool[Tensor, "batch length"]
    ) -> tuple[Float[Tensor, "batch length width"], Float[Tensor, "batch width"]]:
        """Annotations, and the two last hidden vectors side by side (forward's at the end, backward's at the start)."""
        start = inputs.new_zeros(len(inputs), self.forwards.state_width)
        ahead, last = run(self.forwards, inputs, start, present)
        behind, first = run(self.backwards, inputs, start, present, reverse=True)
        summary = torch.cat([self.forwards.output(last), self.backwards.output(first)], dim=-1)
        return torch.cat([ahead, behind], dim=-1), summary


class ForwardEncoder(nn.Module):
    """One cell reading forwards."""

    def __init__(self, cell: str, inputs_width: int, width: int) -> None:
        super().__init__()
        self.forwards: RecurrentCell = cells[cell](inputs_width, width)

    def forward(
        self, inputs: Float[Tensor, "batch length inputs_width"], present: Bool[Tensor, "batch length"]
    ) -> tuple[Float[Tensor, "batch length width"], Float[Tensor, "batch width"]]:
        """Annotations, and the last hidden vector."""
        start = inputs.new_zeros(len(inputs), self.forwards.state_width)
        annotations, last = run(self.forwards, inputs, start, present)
        return annotations, self.forwards.output(last)


class RecurrentStack(nn.Module):
    """Cells on top of each other; the state of all is one tensor, lowest first."""

    def __init__(self, cell: str, inputs_width: int, width: int, num_layers: int, dropout_rate: float) -> None:
        super().__init__()
        self.cells = nn.ModuleList(
            cells[cell](inputs_width if layer == 0 else width, width) for layer in range(num_layers)
        )
        self.dropout_rate = dropout_rate

    @property
    def state_width(self) -> int:
        return sum(cell.state_width for cell in self.cells)  # type: ignore[misc]

    def initial(self, inputs: Tensor) -> Float[Tensor, "batch state_width"]:
        return inputs.new_zeros(len(inputs), self.state_width)

    def forward(
        self,
        inputs: Float[Tensor, "batch length inputs_width"],
        state: Float[Tensor, "batch state_width"],
        present: Bool[Tensor, "batch length"] | None = None,
    ) -> tuple[Float[Tensor, "batch length width"], Float[Tensor, "batch state_width"]]:
        """The top layer's outputs at every step, and the last state of all layers."""
        outputs, following = inputs, []
        for layer, (cell, part) in enumerate(zip(self.cells, self._parts(state), strict=True)):
            if layer > 0:
                outputs = dropout(outputs, self.dropout_rate, self.training)
            outputs, last = run(cell, outputs, part, present)  # type: ignore[arg-type]
            following.append(last)
        return outputs, torch.cat(following, dim=-1)

    def step(
        self, inputs: Float[Tensor, "batch width inputs_width"], state: Float[Tensor, "batch width state_width"]
    ) -> tuple[Float[Tensor, "batch width features"], Float[Tensor, "batch width state_width"]]:
        """One step for every hypothesis."""
        outputs, following = inputs, []
        for layer, (cell, part) in enumerate(zip(self.cells, self._parts(state), strict=True)):
            if layer > 0:
                outputs = dropout(outputs, self.dropout_rate, self.training)
            part = cell.step(cell.project(outputs), part)  # type: ignore[operator]
            outputs = cell.output(part)  # type: ignore[operator]
            following.append(part)
        return outputs, torch.cat(following, dim=-1)

    def _parts(self, state: Tensor) -> tuple[Tensor, ...]:
        return state.split([cell.state_width for cell in self.cells], dim=-1)


@dataclass(frozen=True)
class RecurrentMemory:
    """An encoded source: what a reader reads, and the decoder's first state."""

    keys: Float[Tensor, "batch sources key_width"]
    values: Float[Tensor, "batch sources value_width"]
    allow: Allow
    state: Float[Tensor, "batch state_width"]

    def keep(self, sentences: Int[Tensor, "kept"]) -> RecurrentMemory:
        return RecurrentMemory(
            self.keys[sentences], self.values[sentences], self.allow.select(sentences), self.state[sentences]
        )


@dataclass(frozen=True)
class RecurrentState:
    """Between two decoding steps: the memory, and a recurrent state for each hypothesis."""

    memory: RecurrentMemory
    hidden: Float[Tensor, "batch width state_width"]
    place: Step = field(default_factory=Step)

    @classmethod
    def first(cls, memory: RecurrentMemory) -> RecurrentState:
        return cls(memory, memory.state[:, None])

    def keep(self, sentences: Int[Tensor, "kept"]) -> RecurrentState:
        return RecurrentState(self.memory.keep(sentences), self.hidden[sentences], self.place.keep(sentences))

    def reorder(self, beams: Int[Tensor, "batch width"]) -> RecurrentState:
        return replace(self, hidden=torch.take_along_dim(self.hidden, beams[:, :, None], dim=1))

    def following(self, hidden: Float[Tensor, "batch width state_width"]) -> RecurrentState:
        """One step later."""
        return replace(self, hidden=hidden, place=self.place.following())


class Reader(nn.Module, ABC):
    """How a decoder looks at the source."""

    @abstractmethod
    def remember(
        self,
        annotations: Float[Tensor, "batch sources width"],
        summary: Float[Tensor, "batch width"],
        present: Bool[Tensor, "batch sources"],
        state: Float[Tensor, "batch state_width"],
    ) -> RecurrentMemory:
        """What is kept of an encoded source."""

    @abstractmethod
    def read(
        self, queries: Float[Tensor, "batch queries queries_width"], memory: RecurrentMemory, step: Step | None = None
    ) -> Float[Tensor, "batch queries width"]:
        """The context of each query; they are the queries of one step, or those of all positions."""


class AttentionReader(Reader):
    """Looks at all annotations, through any registered mechanism."""

    def __init__(self, attention: str, queries_width: int, keys_width: int, width: int, dropout_rate: float) -> None:
        super().__init__()
        self.mechanism = build_mechanism(
            attention,
            queries_width,
            keys_width,
            width,
            queries="target",
            keys="source",
            dropout_rate=dropout_rate,
        )

    def remember(
        self,
        annotations: Float[Tensor, "batch sources width"],
        summary: Float[Tensor, "batch width"],
        present: Bool[Tensor, "batch sources"],
        state: Float[Tensor, "batch state_width"],
    ) -> RecurrentMemory:
        return RecurrentMemory(self.mechanism.prepare(annotations), annotations, allow_present(present), state)

    def read(
        self, queries: Float[Tensor, "batch queries queries_width"], memory: RecurrentMemory, step: Step | None = None
    ) -> Float[Tensor, "batch queries width"]:
        with nullcontext() if step is None else at_step(step, self.mechanism.tap):
            return self.mechanism.attend(queries, memory.keys, memory.values, allow=memory.allow)


class SummaryReader(Reader):
    """Sees one fixed vector, whatever the query: the bottleneck that attention removes."""

    def remember(
        self,
        annotations: Float[Tensor, "batch sources width"],
        summary: Float[Tensor, "batch width"],
        present: Bool[Tensor, "batch sources"],
        state: Float[Tensor, "batch state_width"],
    ) -> RecurrentMemory:
        return RecurrentMemory(summary[:, None], summary[:, None], Allow(), state)

    def read(
        self, queries: Float[Tensor, "batch queries queries_width"], memory: RecurrentMemory, step: Step | None = None
    ) -> Float[Tensor, "batch queries width"]:
        return memory.values.expand(-1, queries.shape[1], -1)


class ContextDecoder(nn.Module):
    """s_i = cell([y_{i-1}; c_i], s_{i-1}) with c_i = read(s_{i-1}), and features maxout([s_i; y_{i-1}; c_i])."""

    def __init__(
        self, reader: Reader, cell: str, inputs_width: int, context_width: int, width: int, features_width: int
    ) -> None:
        super().__init__()
        self.reader = reader
        self.cell: RecurrentCell = cells[cell](inputs_width, width)
        self.context_gates = Linear(context_width, self.cell.num_gates * width, bias=False)
        self.combine = Linear(width + inputs_width + context_width, 2 * features_width)

    def forward(
        self, inputs: Float[Tensor, "batch targets inputs_width"], memory: RecurrentMemory
    ) -> Float[Tensor, "batch targets features_width"]:
        """All steps under teacher forcing, one after another because each query is the state before it."""
        gates = self.cell.project(inputs).unbind(1)
        state, hidden, contexts = memory.state, [], []
        for position, step_gates in enumerate(gates):
            context = self.reader.read(self.cell.output(state)[:, None], memory, Step(position))[:, 0]
            state = self.cell.step(step_gates + self.context_gates(context), state)
            hidden.append(self.cell.output(state))
            contexts.append(context)
        return self._features(torch.stack(hidden, dim=1), inputs, torch.stack(contexts, dim=1))

    def step(
        self, inputs: Float[Tensor, "batch width inputs_width"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch width features_width"], RecurrentState]:
        """One step for every hypothesis: hypotheses are queries beside each other."""
        context = self.reader.read(self.cell.output(state.hidden), state.memory, state.place)
        hidden = self.cell.step(self.cell.project(inputs) + self.context_gates(context), state.hidden)
        features = self._features(self.cell.output(hidden), inputs, context)
        return features, state.following(hidden)

    def _features(self, hidden: Tensor, inputs: Tensor, context: Tensor) -> Tensor:
        combined = self.combine(torch.cat([hidden, inputs.to(hidden.dtype), context.to(hidden.dtype)], dim=-1))
        return combined.unflatten(-1, (-1, 2)).amax(dim=-1)
