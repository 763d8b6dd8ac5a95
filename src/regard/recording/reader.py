"""A `.regard` file read with numpy alone: the same rows as `Recording.load`, where torch is not at hand.

    from regard.recording.reader import read
    recording = read("pair.regard")
    recording["decoder.2.cross"].rows(0, 3, example=1)       # (heads, 3, keys) in float32
    recording.axes["source"][1]["tokens"]

The file is mapped, not loaded: a row costs what it needs. All that a file says of itself is checked against the file
before anything is made from it (`regard.recording.layout`), so that one that is damaged, or lies, is a sentence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.errors import RecordingError
from regard.recording.layout import Entry, read_layout

Array = np.ndarray[Any, Any]

LOWEST = np.finfo(np.float32).min


class ReadMap:
    """One tap's relation; weights are made when asked for."""

    def __init__(self, address: str, queries: str, keys: str, relation: _Relation) -> None:
        self.address = address
        self.queries = queries
        self.keys = keys
        self.relation = relation

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Examples, heads, queries, keys."""
        return self.relation.shape

    def rows(self, start: int = 0, stop: int | None = None, *, example: int = 0) -> Array:
        """Weights of queries `start` to `stop` of one example: (heads, rows, keys) in float32, padding included."""
        examples, _, queries, _ = self.shape
        stop = queries if stop is None else stop
        if not 0 <= example < examples or not 0 <= start <= stop <= queries:
            raise RecordingError(
                f"{self.address} has {examples} examples of {queries} queries; there are no queries {start} to {stop} "
                f"of example {example}."
            )
        return self.relation.rows(example, start, stop)


@dataclass(frozen=True)
class ReadRecording:
    """What a file holds: maps by address, axes by role (an object for each example) and outputs."""

    maps: Mapping[str, ReadMap]
    axes: Mapping[str, list[dict[str, Any]]]
    outputs: Mapping[str, Any]

    @property
    def addresses(self) -> list[str]:
        return list(self.maps)

    def __iter__(self) -> Iterator[str]:
        return iter(self.maps)

    def __len__(self) -> int:
        return len(self.maps)

    def __getitem__(self, address: str) -> ReadMap:
        if address not in self.maps:
            raise RecordingError(f"Nothing was recorded at {address!r}. Recorded: {', '.join(self.maps)}.")
        return self.maps[address]


def read(path: str | Path) -> ReadRecording:
    """Maps the file; what is malformed is a `RecordingError`."""
    layout = read_layout(path)
    data: Array = np.empty(0, np.uint8)
    if layout.data_size:
        data = np.memmap(path, dtype=np.uint8, mode="r", offset=layout.data_start)
    maps = {}
    for tap in layout.taps:
        tensors = {name: _array(data, entry) for name, entry in tap.tensors.items()}
        relation = _relation(tap.form, tensors, tap.fields)
        maps[tap.address] = ReadMap(tap.address, tap.queries, tap.keys, relation)
    return ReadRecording(maps, layout.axes, layout.outputs)


class _Relation(ABC):
    """What all forms offer."""

    shape: tuple[int, int, int, int]

    @abstractmethod
    def rows(self, example: int, start: int, stop: int) -> Array:
        """The weights of queries `start` to `stop` of one example."""


class _Dot(_Relation):
    """softmax(scale queries keys^T + bias) over what is allowed."""

    def __init__(self, tensors: Mapping[str, Array], fields: Mapping[str, Any]) -> None:
        self.tensors = tensors
        self.fields = fields
        batch, heads, queries, _ = tensors["queries"].shape
        self.shape = (batch, heads, queries, tensors["keys"].shape[2])

    def rows(self, example: int, start: int, stop: int) -> Array:
        _, heads, num_queries, num_keys = self.shape
        queries = _float32(self.tensors["queries"][example, :, start:stop])
        keys = _float32(self.tensors["keys"][example])
        keys = np.repeat(keys, heads // len(keys), axis=0)
        scores = np.float32(self.fields["scale"]) * queries @ keys.transpose(0, 2, 1)
        if (offsets := self.tensors.get("bias_offsets")) is not None:
            values = _float32(offsets)
            for row in range(start, stop):
                first = num_queries - 1 - row
                scores[:, row - start] += values[:, first : first + num_keys]
        elif (bias := self.tensors.get("bias")) is not None:
            scores = scores + _float32(bias[_of(bias, example), :, start:stop])
        allow = np.broadcast_to(self._allowed(example, start, stop), scores.shape)
        scores = np.where(allow, scores, LOWEST)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=LOWEST))
        sums = weights.sum(axis=-1, keepdims=True)
        return np.where(allow, weights / np.where(sums > 0, sums, 1), np.float32(0))

    def _allowed(self, example: int, start: int, stop: int) -> Array:
        _, _, num_queries, num_keys = self.shape
        rows = np.arange(start, stop)[:, None] + (num_keys - num_queries)
        columns = np.arange(num_keys)[None]
        allow = np.ones((1, stop - start, num_keys), dtype=bool)
        if self.fields["causal"]:
            allow = allow & (columns <= rows)
        if self.fields["window"] is not None:
            allow = allow & (np.abs(columns - rows) <= self.fields["window"])
        if (keys := self.tensors.get("allow_keys")) is not None:
            allow = allow & keys[_of(keys, example)].astype(bool)
        if (pairs := self.tensors.get("allow_pairs")) is not None:
            pairs = pairs.reshape((1,) * (4 - pairs.ndim) + pairs.shape) if pairs.ndim != 3 else pairs[:, None]
            own = pairs[_of(pairs, example)].astype(bool)
            allow = allow & (own if own.shape[1] == 1 else own[:, start:stop])
        return allow


class _Dense(_Relation):
    """Weights as they were computed."""

    def __init__(self, tensors: Mapping[str, Array], fields: Mapping[str, Any]) -> None:
        self.weights = tensors["weights"]
        self.shape = self.weights.shape

    def rows(self, example: int, start: int, stop: int) -> Array:
        return _float32(self.weights[example, :, start:stop])


class _Sparse(_Relation):
    """A few keys a query; -1 is an unused place."""

    def __init__(self, tensors: Mapping[str, Array], fields: Mapping[str, Any]) -> None:
        self.indices = tensors["indices"]
        self.values = tensors["values"]
        self.shape = (*self.indices.shape[:3], fields["keys"])

    def rows(self, example: int, start: int, stop: int) -> Array:
        indices = self.indices[example, :, start:stop].astype(np.int64)
        values = _float32(self.values[example, :, start:stop])
        num_keys = self.shape[3]
        if indices.size and (indices.min() < -1 or indices.max() >= num_keys):
            raise RecordingError(f"The file is damaged: a sparse map of {num_keys} keys names others.")
        weights = np.zeros((*indices.shape[:2], num_keys), dtype=np.float32)
        heads, rows, _ = (axis.ravel() for axis in np.indices(indices.shape))
        used = indices.ravel() >= 0
        np.add.at(weights, (heads[used], rows[used], indices.ravel()[used]), values.ravel()[used])
        return weights


class _Grouped(_Relation):
    """A relation inside each group, spread over the whole axis."""

    def __init__(self, tensors: Mapping[str, Array], fields: Mapping[str, Any]) -> None:
        inner = {name.removeprefix("inner."): tensor for name, tensor in tensors.items() if name.startswith("inner.")}
        self.inner = _relation(fields["inner"]["form"], inner, fields["inner"]["fields"])
        self.query_places, self.key_places = tensors["query_places"], tensors["key_places"]
        batch, heads, _, _ = self.inner.shape
        self.shape = (batch // len(self.query_places), heads, fields["queries"], fields["keys"])

    def rows(self, example: int, start: int, stop: int) -> Array:
        _, heads, _, num_keys = self.shape
        weights = np.zeros((heads, stop - start, num_keys), dtype=np.float32)
        query_places = self.query_places.astype(np.int64)
        for group in np.flatnonzero(((query_places >= start) & (query_places < stop)).any(axis=1)):
            columns = self.key_places[group].astype(np.int64)
            if columns.size and columns.max() >= num_keys:
                raise RecordingError(f"The file is damaged: a grouped map of {num_keys} keys names others.")
            used = np.flatnonzero(columns >= 0)
            asked = query_places[group]
            inside = self.inner.rows(example * len(query_places) + int(group), 0, len(asked))
            for query in np.flatnonzero((asked >= start) & (asked < stop)):
                row = np.zeros((heads, num_keys), dtype=np.float32)
                for key in used:
                    row[:, columns[key]] += inside[:, query, key]
                weights[:, asked[query] - start] = row
        return weights


_FORMS: dict[str, type[Any]] = {"dot": _Dot, "dense": _Dense, "sparse": _Sparse, "grouped": _Grouped}


def _relation(form: str, tensors: Mapping[str, Array], fields: Mapping[str, Any]) -> _Relation:
    relation: _Relation = _FORMS[form](tensors, fields)
    return relation


def _array(data: Array, entry: Entry) -> Array:
    """A tensor as a view of the file."""
    return data[entry.begin : entry.end].view(entry.numpy_dtype).reshape(entry.shape)


def _float32(array: Array) -> Array:
    """Any floating-point numbers of a file as float32; what numpy lacks, bfloat16, lies there as its 16 bits."""
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def _of(array: Array, example: int) -> int:
    """What is shared by all examples is stored once."""
    return example if len(array) > 1 else 0
