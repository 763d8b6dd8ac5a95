"""What a model attended to: relations by address, axes by role, and views that are computed when asked for.

    with regard.record(model) as recording:
        model(source, target)
    recording["decoder.2.cross"].weights(example=0, head=3)

A view never needs more memory than a block of rows and its own result. Rows and columns beyond an example's axis
(padding) are cut off as soon as one example is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.axes import Axis
from regard.core.errors import RecordingError, nearest
from regard.core.relations import Relation
from regard.recording import file, statistics
from regard.recording.labels import text_axes


@dataclass(frozen=True, eq=False)
class RecordedMap:
    """One tap's relation for a batch of examples; `query_axes` and `key_axes` have one axis an example, or none."""

    address: str
    queries: str
    keys: str
    relation: Relation
    query_axes: Sequence[Axis] = ()
    key_axes: Sequence[Axis] = ()

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Examples, heads, queries, keys."""
        return self.relation.shape

    def __repr__(self) -> str:
        examples, heads, queries, keys = self.shape
        return (
            f"<{self.address}: {self.queries} -> {self.keys}, {examples} x {heads} heads x {queries} x {keys}, "
            f"{self.relation.form}, {self.relation.nbytes:,} bytes>"
        )

    def example(self, index: int) -> RecordedMap:
        """The map of one example, still with a batch axis."""
        if not 0 <= index < self.shape[0]:
            raise RecordingError(f"There is no example {index} in {self.address}; it holds {self.shape[0]}.")
        chosen = torch.tensor([index])
        axes = (self.query_axes[index : index + 1], self.key_axes[index : index + 1])
        return RecordedMap(self.address, self.queries, self.keys, self.relation.select(chosen), *axes)

    def weights(
        self, example: int | None = None, head: int | None = None, rows: slice | int | None = None
    ) -> Float[Tensor, "*view"]:
        """Attention weights in float32: (examples, heads, queries, keys), less an axis for each index given."""
        if example is not None:
            one = self.example(example)
            kept = one._rows(rows, one._length(one.query_axes))[0, :, :, : one._length(one.key_axes)]
            kept = kept if head is None else kept[self._head(head)]
            return kept.squeeze(-2) if isinstance(rows, int) else kept
        kept = self._rows(rows, None)
        kept = kept if head is None else kept[:, self._head(head)]
        return kept.squeeze(-2) if isinstance(rows, int) else kept

    def entropy(self) -> Float[Tensor, "examples heads queries"]:
        """How spread each query's weights are, in nats; 0 for one key only."""
        return statistics.entropy(self.relation)

    def received(self) -> Float[Tensor, "examples heads keys"]:
        """How much attention each key gets from all queries together."""
        lengths = [len(axis) for axis in self.query_axes] or None
        return statistics.received(self.relation, lengths)

    def top(self, k: int) -> tuple[Float[Tensor, "examples heads queries k"], Int[Tensor, "examples heads queries k"]]:
        """The k largest weights of each query, and their keys."""
        return statistics.top(self.relation, k)

    def _rows(self, rows: slice | int | None, length: int | None) -> Tensor:
        """Rows out of the first `length` queries; an index or a slice counts within these."""
        count = self.shape[2] if length is None else length
        if isinstance(rows, int):
            if not -count <= rows < count:
                raise RecordingError(f"There is no query {rows} in {self.address}; it has {count}.")
            return self.relation.rows(rows % count, rows % count + 1)
        start, stop, step = (rows or slice(None)).indices(count)
        if step < 1:
            raise RecordingError(f"Rows are asked for in their order; a step of {step} goes backwards.")
        return self.relation.rows(start, max(start, stop))[:, :, ::step]

    def _head(self, head: int) -> int:
        if not -self.shape[1] <= head < self.shape[1]:
            raise RecordingError(f"There is no head {head} in {self.address}; it has {self.shape[1]}.")
        return head

    @staticmethod
    def _length(axes: Sequence[Axis]) -> int | None:
        return len(axes[0]) if axes else None


@dataclass
class Recording:
    """Everything heard in one call of a model."""

    relations: dict[str, Relation] = field(default_factory=dict)
    roles: dict[str, tuple[str, str]] = field(default_factory=dict)
    axes: dict[str, list[Axis]] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    """What else belongs to the picture (translations, scores), as JSON."""

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
        return RecordedMap(address, queries, keys, self.relations[address], *axes)

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

    def save(self, path: str | Path) -> Path:
        """Writes one `.regard` file (see `regard.recording.file`)."""
        return file.save(path, self.relations, self.roles, self.axes, self.outputs)

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        relations, roles, axes, outputs = file.load(path)
        return cls(relations, roles, outputs=outputs).label(**axes)
