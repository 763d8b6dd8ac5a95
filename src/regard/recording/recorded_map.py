"""One tap's relation, and the views of it that are computed when asked for, a block of rows at a time.

| view | for each query | |
| --- | --- | --- |
| `weights`, `norm_weighted` | the weights of all keys, or those times the norm of the keys' values | chosen rows |
| `entropy`, `largest`, `distance` | nats; the largest weight; how far it looks on average, in the axis's unit | |
| `top` | the keys it looks at most | |
| `received` | | for each key: from all queries together |
| `agreement` | | for each pair of heads: how alike they look |

With `example=` a view has the queries and keys of that example only, without padding. Without, it has all rows that
were computed; padded queries then count in nothing that sums or averages over queries (`received`, `agreement`,
`means`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.axes import Axis
from regard.core.errors import RecordingError
from regard.core.relations import Relation
from regard.recording import statistics
from regard.recording.cost import BYTES_OF_FLOAT32, require
from regard.recording.distances import Distances, distances
from regard.recording.survey import Survey, survey

Chosen = int | slice | Sequence[int] | None


@dataclass(frozen=True, eq=False)
class RecordedMap:
    """One tap's relation for a batch of examples; `query_axes` and `key_axes` have one axis an example, or none."""

    address: str
    queries: str
    keys: str
    relation: Relation
    query_axes: Sequence[Axis] = ()
    key_axes: Sequence[Axis] = ()
    budget: int | None = None
    """Bytes that a view may take; None: what is free."""

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
        return RecordedMap(self.address, self.queries, self.keys, self.relation.select(chosen), *axes, self.budget)

    def weights(
        self, example: int | None = None, head: int | Sequence[int] | None = None, rows: Chosen = None
    ) -> Float[Tensor, "*view"]:
        """Attention weights in float32: (examples, heads, queries, keys), less an axis for each single index given.

        `head` and `rows` may also be lists; only what is asked for is computed.
        """
        return self._view(example, head, rows, lambda relation, start, stop: relation.rows(start, stop))

    def norm_weighted(
        self, example: int | None = None, head: int | Sequence[int] | None = None, rows: Chosen = None
    ) -> Float[Tensor, "*view"]:
        """Weights times the norm of each key's value: how long a vector each key adds to the context of the head.

        This is before the output projection of the layer mixes the heads; Kobayashi et al. (2020) take norms behind it.
        Rows do not sum to one.
        """
        if self.relation.value_norms is None:
            raise RecordingError(
                f"The norms of values were not recorded at {self.address}: its mechanism does not hand its values "
                f"over, or the recording was made or edited without them."
            )
        return self._view(example, head, rows, _norm_weighted_rows)

    def entropy(self, example: int | None = None) -> Float[Tensor, "*examples heads queries"]:
        """How spread each query's weights are, in nats; 0 for one key only."""
        return self.survey(example, measure=False).entropy

    def largest(self, example: int | None = None) -> Float[Tensor, "*examples heads queries"]:
        """The largest weight of each query."""
        return self.survey(example, measure=False).largest

    def received(self, example: int | None = None) -> Float[Tensor, "*examples heads keys"]:
        """How much attention each key gets from all queries together."""
        return self.survey(example, measure=False).received

    def distance(self, example: int | None = None) -> Float[Tensor, "*examples heads queries"]:
        """How far each query looks on average, in `unit`: tokens, pixels between centres, seconds, voxels.

        Keys that are nowhere (a class token) are left out and the others share the whole; where a query is nowhere, or
        looks at nothing that has a place, it is NaN. Axes without a common measure are an error.
        """
        self._distances()
        found = self.survey(example).distance
        assert found is not None
        return found

    @property
    def unit(self) -> str:
        """What `distance` is measured in."""
        return self._distances()[1]

    def top(
        self, k: int, example: int | None = None
    ) -> tuple[Float[Tensor, "*examples heads queries k"], Int[Tensor, "*examples heads queries k"]]:
        """The k largest weights of each query, and their keys."""
        if example is None:
            return statistics.top(self.relation, k)
        one = self.example(example)
        queries, keys = one.lengths
        largest, where = statistics.top(one.relation, min(k, keys))
        return largest[0, :, :queries], where[0, :, :queries]

    def agreement(self, other: RecordedMap | None = None) -> Float[Tensor, "examples heads heads_of_other"]:
        """How alike each pair of heads looks: 1 if alike, 0 if no query of both looks at the same key.

        It is the Bhattacharyya coefficient of two rows, sum_k sqrt(a_k b_k), averaged over the queries that are there.
        `other` is the map whose heads are compared, such as another layer's or another recording's; None: this one.
        """
        other = other or self
        if (self.shape[0], *self.shape[2:]) != (other.shape[0], *other.shape[2:]):
            raise RecordingError(
                f"Heads of {self.address} and {other.address} cannot be compared: {self.shape[0]} x {self.shape[2]} x "
                f"{self.shape[3]} and {other.shape[0]} x {other.shape[2]} x {other.shape[3]} examples, queries, keys."
            )
        return statistics.agreement(self.relation, other.relation, self._counts())

    def survey(
        self,
        example: int | None = None,
        *,
        vectors: Float[Tensor, "examples #heads vectors queries"] | None = None,
        measure: bool = True,
    ) -> Survey:
        """All statistics in one pass; distances where the axes have a common measure and `measure` is not False.

        `vectors` over the queries are multiplied with the map in the same pass.
        """
        if example is not None:
            one = self.example(example)
            return one.survey(vectors=vectors, measure=measure).of_first(*one.lengths)
        known: Distances | None = None
        if measure:
            try:
                known = self._distances()[0]
            except RecordingError:
                known = None
        return survey(self.relation, self._counts(), known, vectors)

    def means(self) -> dict[str, Float[Tensor, "examples heads"]]:
        """Entropy, largest weight and, where there is one, distance: a number a head, the mean over its queries.

        Padding, queries without any key and, for distances, queries that are nowhere do not count.
        """
        found = self.survey()
        present = found.largest > 0
        if (counts := self._counts()) is not None:
            present &= (torch.arange(self.shape[2]) < torch.tensor(counts)[:, None])[:, None]
        views = {"entropy": found.entropy, "largest": found.largest}
        if found.distance is not None:
            views["distance"] = found.distance
        return {name: view.masked_fill(~present, torch.nan).nanmean(dim=-1) for name, view in views.items()}

    @property
    def lengths(self) -> tuple[int, int]:
        """Queries and keys of the first example, without padding."""
        queries = len(self.query_axes[0]) if self.query_axes else self.shape[2]
        return queries, len(self.key_axes[0]) if self.key_axes else self.shape[3]

    def _counts(self) -> list[int] | None:
        return [len(axis) for axis in self.query_axes] or None

    def _distances(self) -> tuple[Distances, str]:
        axes = (self.query_axes, self.key_axes)
        return distances(self.address, (self.queries, self.keys), axes, (self.shape[2], self.shape[3]))

    def _view(
        self, example: int | None, head: int | Sequence[int] | None, rows: Chosen, make: statistics.MakeRows
    ) -> Tensor:
        """Rows of some queries and heads, of one example without its padding, or of all examples."""
        one = self if example is None else self.example(example)
        count, num_keys = one.lengths if example is not None else self.shape[2:]
        queries, heads = self._chosen_rows(rows, count), self._chosen_heads(head)
        relation = one.relation
        if heads is not None and relation.separable:
            relation, heads = relation.select_heads(torch.tensor(heads)), None
        require(
            2 * BYTES_OF_FLOAT32 * relation.batch * relation.heads * len(queries) * relation.num_keys,
            self.budget,
            f"{len(queries):,} rows of {self.address}",
            "Ask for fewer with `rows=`, `head=` and `example=`; statistics of all rows need no more than a block.",
        )
        made = statistics.chosen_rows(relation, queries, make)
        made = made if heads is None else made[:, heads]
        if example is not None:
            made = made[0, ..., :num_keys]
        made = made.squeeze(-2) if isinstance(rows, int) else made
        head_axis = 0 if example is not None else 1
        return made.squeeze(head_axis) if isinstance(head, int) else made

    def _chosen_rows(self, rows: Chosen, count: int) -> Sequence[int]:
        """Queries by number, out of the first `count`."""
        if isinstance(rows, slice) or rows is None:
            start, stop, step = (rows or slice(None)).indices(count)
            if step < 1:
                raise RecordingError(f"Rows are asked for in their order; a step of {step} goes backwards.")
            return range(start, max(start, stop), step)
        asked = [rows] if isinstance(rows, int) else list(rows)
        for row in asked:
            if not -count <= row < count:
                raise RecordingError(f"There is no query {row} in {self.address}; it has {count}.")
        return [row % count for row in asked]

    def _chosen_heads(self, head: int | Sequence[int] | None) -> list[int] | None:
        if head is None:
            return None
        asked = [head] if isinstance(head, int) else list(head)
        for each in asked:
            if not -self.shape[1] <= each < self.shape[1]:
                raise RecordingError(f"There is no head {each} in {self.address}; it has {self.shape[1]}.")
        return [each % self.shape[1] for each in asked]

    def with_relation(self, relation: Relation) -> RecordedMap:
        """The same axes, another relation."""
        return replace(self, relation=relation)


def _norm_weighted_rows(relation: Relation, start: int, stop: int) -> Tensor:
    norms = relation.value_norms
    assert norms is not None
    return statistics.norm_weighted(relation, start, stop, norms)
