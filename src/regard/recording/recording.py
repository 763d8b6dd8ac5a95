"""What a model attended to: relations by address, axes by role, and views that are computed when asked for::

    with regard.record(model) as recording:
        model(source, target)
    recording["decoder.2.cross"].weights(example=0, head=3)

A view never needs more memory than a block of rows and its own result (`recorded_map`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.core.axes import Axis
from regard.core.errors import RecordingError, nearest
from regard.core.relations import Relation
from regard.recording import file
from regard.recording.cost import Cost, cost_of
from regard.recording.flow import flow
from regard.recording.labels import text_axes
from regard.recording.recorded_map import RecordedMap
from regard.recording.rollout import Composed, Heads, overview, rollout
from regard.recording.survey import Survey

__all__ = ["RecordedMap", "Recording"]


@dataclass
class Recording:
    """Everything heard in one call of a model."""

    relations: dict[str, Relation] = field(default_factory=dict)
    roles: dict[str, tuple[str, str]] = field(default_factory=dict)
    axes: dict[str, list[Axis]] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    """What else belongs to the picture (translations, scores), as JSON."""
    budget: int | None = None
    """Bytes of memory that a view may take; None: what is free."""

    @property
    def addresses(self) -> list[str]:
        return list(self.relations)

    def __iter__(self) -> Iterator[str]:
        return iter(self.relations)

    def __len__(self) -> int:
        return len(self.relations)

    def __contains__(self, address: object) -> bool:
        return address in self.relations

    def __getitem__(self, address: str) -> RecordedMap:
        if address not in self.relations:
            close = nearest(address, self.relations)
            meant = f" Did you mean {close!r}?" if close else ""
            raise RecordingError(f"Nothing was recorded at {address!r}.{meant} Recorded: {', '.join(self.relations)}.")
        queries, keys = self.roles[address]
        axes = (self.axes.get(queries, []), self.axes.get(keys, []))
        return RecordedMap(address, queries, keys, self.relations[address], *axes, self.budget)

    def label(self, **axes: Sequence[Axis]) -> Recording:
        """Says what the positions are: `recording.label(source=[Text(...)], target=[Text(...)])`; returns itself."""
        for role, given in axes.items():
            for address, (queries, keys) in self.roles.items():
                examples, _, num_queries, num_keys = self.relations[address].shape
                for name, size in ((queries, num_queries), (keys, num_keys)):
                    if name == role and (len(given) != examples or any(len(axis) > size for axis in given)):
                        raise RecordingError(
                            f"The axes given for {role!r} do not fit {address}: it holds {examples} examples of up to "
                            f"{size} positions, the axes are {[len(axis) for axis in given]} positions long."
                        )
        self.axes.update({role: list(given) for role, given in axes.items()})
        return self

    def label_text(
        self, role: str, ids: Tensor | Sequence[Sequence[int]], tokenizer: Any, present: Tensor | None = None
    ) -> Recording:
        """Says which tokens the positions of a role are: `recording.label_text("tokens", input_ids, tokenizer)`."""
        return self.label(**{role: text_axes(ids, tokenizer, present)})

    @property
    def nbytes(self) -> int:
        """Memory of all that is kept."""
        return sum(relation.nbytes for relation in self.relations.values())

    @property
    def cost(self) -> Cost:
        """What is kept, beside what the attention matrices would take."""
        return cost_of(self.relations)

    @property
    def maps(self) -> dict[str, RecordedMap]:
        """All maps by address."""
        return {address: self[address] for address in self}

    def rollout(
        self,
        *,
        example: int = 0,
        rows: int | slice | None = None,
        start: str | None = None,
        onto: str | None = None,
        heads: Heads = "mean",
        residual: float = 0.5,
        taps: str = "*",
    ) -> Composed:
        """How much each position after the last layer comes from each input position (Abnar and Zuidema's rollout).

        `rows` are positions of the stream `start`, the one that the last map writes to; the result lands on the input
        `onto`. Its `weights` have a row for each of them. See `regard.recording.rollout`.
        """
        options = {"example": example, "rows": rows, "start": start, "onto": onto}
        return rollout(self.maps, **options, heads=heads, residual=residual, taps=taps)  # type: ignore[arg-type]

    def overview(
        self, *, row: int = 0, example: int = 0, onto: str | None = None, residual: float = 0.5
    ) -> tuple[dict[str, Survey], Composed]:
        """All statistics of every map of one example, and one row of the rollout, in a single pass over each map."""
        return overview(self.maps, row=row, example=example, onto=onto, residual=residual)

    def flow(
        self,
        *,
        example: int = 0,
        rows: int | slice | None = None,
        start: str | None = None,
        onto: str | None = None,
        heads: Heads = "mean",
        residual: float = 0.5,
        taps: str = "*",
    ) -> Composed:
        """The most that can flow from positions after the last layer to each input position; options as in `rollout`.

        For tens of positions: each input position is a maximum flow of its own. See `regard.recording.flow`.
        """
        options = {"example": example, "rows": rows, "start": start, "onto": onto, "budget": self.budget}
        return flow(self.maps, **options, heads=heads, residual=residual, taps=taps)  # type: ignore[arg-type]

    def save(self, path: str | Path) -> Path:
        """Writes one `.regard` file (see `regard.recording.file`)."""
        return file.save(path, self.relations, self.roles, self.axes, self.outputs)

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        relations, roles, axes, outputs = file.load(path)
        return cls(relations, roles, outputs=outputs).label(**axes)
