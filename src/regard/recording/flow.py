"""Attention flow (Abnar and Zuidema 2020): the most that can flow from an output position down to each input position.

Layers are a graph: a node for each position after each layer, and an edge for each entry of the rollout's A', whose
weight is how much it lets through. Unlike in a rollout, paths share the capacity of what they have in common. All maps
stand in memory at once here, and each input position is a maximum flow of its own: it is for tens of positions, or a
hundred, not for thousands.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.errors import RecordingError
from regard.core.relations import Relation
from regard.recording.composing import Attends, Begins, Streams, streams
from regard.recording.cost import require
from regard.recording.recorded_map import RecordedMap
from regard.recording.rollout import Composed, Heads, normaliser

WHOLE = 1 << 28
"""Capacities are whole numbers for the solver: this many parts of one."""
BYTES_OF_EDGE = 48


def flow(
    maps: Mapping[str, RecordedMap],
    *,
    example: int = 0,
    rows: int | slice | None = None,
    start: str | None = None,
    onto: str | None = None,
    heads: Heads = "mean",
    residual: float = 0.5,
    taps: str = "*",
    budget: int | None = None,
) -> Composed:
    """The flow from rows of the stream `start` (the last one) to every position of the input `onto`."""
    from scipy.sparse.csgraph import maximum_flow

    found = streams(maps, example, taps)
    start = found.checked(start or found.last, tuple(found.sizes), "start")
    onto = found.onto(onto, start)
    graph, first, last = _graph(found, heads, residual, budget)
    chosen = found.rows(rows, start)
    flows = torch.zeros(len(chosen), found.length(onto))
    for place, row in enumerate(chosen):
        for position in range(found.length(onto)):
            source, sink = last[start] + row, first[onto] + position
            # A stream that no map writes to is its own input.
            carried = WHOLE if source == sink else maximum_flow(graph, source, sink).flow_value
            flows[place, position] = carried / WHOLE
    weights = flows[0] if isinstance(rows, int) else flows
    return Composed(weights, start, onto, found.axes.get(start), found.axes.get(onto))


def _graph(
    found: Streams, heads: Heads, residual: float, budget: int | None
) -> tuple[object, dict[str, int], dict[str, int]]:
    """Capacities as a sparse matrix; the number of the first node of each input, and of each stream at the end."""
    from scipy.sparse import csr_array

    if heads not in ("mean", "max", "min") or not 0 <= residual <= 1:
        raise RecordingError(
            f"`heads` is 'mean', 'max' or 'min' and `residual` from 0 to 1, not {heads!r}, {residual}."
        )
    maps = [step.relation for step in found.steps if isinstance(step, Attends)]
    edges = sum(relation.num_queries * relation.num_keys for relation in maps)
    require(edges * BYTES_OF_EDGE, budget, "A flow", "Choose fewer maps with `taps=`, or take a rollout instead.")
    count = 0
    newest: dict[str, int] = {}
    for role in found.inputs:
        newest[role] = count
        count += found.sizes[role]
    first = dict(newest)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(upper: int, lower: int, capacities: Float[Tensor, "from to"]) -> None:
        whole = (capacities.double() * WHOLE).round().int().numpy()
        rows, columns = whole.nonzero()
        parts.append((rows + upper, columns + lower, whole[rows, columns]))

    for step in found.steps:
        role = step.role if isinstance(step, Begins) else step.queries
        upper = count
        count += found.sizes[role]
        if isinstance(step, Begins):
            add(upper, newest[step.parent], step.resampling.matrix())
        else:
            fused = _fused(step.relation, heads)
            normal = normaliser(fused.sum(dim=-1), residual)[:, None]
            own = torch.eye(len(fused)) * residual / normal
            taken = (1 - residual) * fused / normal
            if step.keys == step.queries:
                add(upper, newest[role], own + taken)
            else:
                add(upper, newest[role], own)
                add(upper, newest[step.keys], taken)
        newest[role] = upper
    rows, columns, capacities = (np.concatenate([part[axis] for part in parts]) for axis in range(3))
    return csr_array((capacities.astype(np.int32), (rows, columns)), shape=(count, count)), first, newest


def _fused(relation: Relation, heads: Heads) -> Float[Tensor, "queries keys"]:
    fused = []
    for _, weights in relation.blocks():
        of_heads = {"mean": torch.mean, "max": torch.amax, "min": torch.amin}[heads]
        fused.append(of_heads(weights, dim=1)[0].cpu())  # type: ignore[operator]
    return torch.cat(fused)
