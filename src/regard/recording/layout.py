"""What a `.regard` file says of itself, checked against the file before anything is made from it; no torch, no numpy.

Every length, offset, dtype and shape is compared with the size of the file and with each other, so that nothing is
allocated because a file asks for it. See docs/recording-file.md for the format.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.core.errors import RecordingError

VERSION = 1
MAX_HEADER = 100_000_000
"""Bytes; what other readers of safetensors allow too."""
MAX_EXTENT = 1 << 40

DTYPES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "I32": 4, "I64": 8, "F16": 2, "BF16": 2, "F32": 4, "F64": 8}
"""Names in the file and bytes of a number."""
NUMPY = {"BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "F16": "<f2", "BF16": "<u2"}
NUMPY |= {"F32": "<f4", "F64": "<f8"}
FLOATS = {"F16", "BF16", "F32", "F64"}
INTEGERS = {"I8", "I16", "I32", "I64", "U8"}

REQUIRED = {
    "dot": ("queries", "keys"),
    "dense": ("weights",),
    "sparse": ("indices", "values"),
    "grouped": ("query_places", "key_places"),
}


@dataclass(frozen=True)
class Entry:
    """One tensor: where its bytes are, counted from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def numpy_dtype(self) -> str:
        return NUMPY[self.dtype]


@dataclass(frozen=True)
class TapEntry:
    """One tap: what it relates, and its tensors by name."""

    address: str
    queries: str
    keys: str
    form: str
    fields: Mapping[str, Any]
    tensors: Mapping[str, Entry]
    shape: tuple[int, int, int, int]


@dataclass(frozen=True)
class Layout:
    """A whole file."""

    data_start: int
    data_size: int
    taps: tuple[TapEntry, ...]
    axes: Mapping[str, list[dict[str, Any]]]
    outputs: Mapping[str, Any]


class _Wrong(Exception):
    """Something does not fit; the reader adds which file."""


def read_layout(path: str | Path) -> Layout:
    """Reads the header only."""
    path = Path(path)
    if not path.is_file():
        raise RecordingError(f"There is no recording at {path}.")
    try:
        entries, metadata, start, size = _safetensors(path)
    except (_Wrong, OSError) as error:
        raise RecordingError(f"{path} cannot be read as a recording: {error}.") from error
    if "regard" not in metadata:
        raise RecordingError(f"{path} is a safetensors file, but no recording of Regard.")
    try:
        description = _object(_json(metadata["regard"], "its description"), "its description")
        version = description.get("version")
        if type(version) is int and version != VERSION:
            raise RecordingError(f"{path} is a recording of version {version}; this Regard reads version {VERSION}.")
        taps = _taps(description, entries)
        axes = {role: _axes(given, role) for role, given in _object(description.get("axes"), "axes").items()}
        return Layout(start, size, taps, axes, _object(description.get("outputs"), "outputs"))
    except _Wrong as error:
        raise RecordingError(f"{path} is damaged: {error}.") from error


def _safetensors(path: Path) -> tuple[dict[str, Entry], dict[str, str], int, int]:
    """Tensors, metadata, where the data begin, and how long they are."""
    whole = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(8)
        _check(len(first) == 8, f"it has {whole} bytes, which is no header")
        length = int.from_bytes(first, "little")
        _check(length <= MAX_HEADER, f"its header would be {length:,} bytes long, more than {MAX_HEADER:,}")
        _check(length <= whole - 8, f"its header would be {length:,} bytes long, but the file has {whole:,}")
        text = file.read(length)
    _check(text[:1] == b"{", "its header is no JSON object")
    header = _object(_json(text, "its header"), "its header")
    metadata = _object(header.pop("__metadata__", {}), "its metadata")
    _check(all(isinstance(value, str) for value in metadata.values()), "its metadata are not all text")
    size = whole - 8 - length
    entries = {name: _entry(name, value, size) for name, value in header.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        _check(entry.begin == end, f"the bytes of {name!r} begin at {entry.begin:,}; those before end at {end:,}")
        end = entry.end
    _check(end == size, f"its tensors have {end:,} bytes, but {size:,} are there")
    return entries, metadata, 8 + length, size


def _entry(name: str, value: Any, size: int) -> Entry:
    given = _object(value, f"the tensor {name!r}")
    _check(set(given) == {"dtype", "shape", "data_offsets"}, f"the tensor {name!r} is not described as one")
    dtype, shape, offsets = given["dtype"], given["shape"], given["data_offsets"]
    _check(isinstance(dtype, str) and dtype in DTYPES, f"the tensor {name!r} has the unknown dtype {dtype!r}")
    _check(_whole_numbers(shape) and len(shape) <= 8, f"the tensor {name!r} has no shape")
    _check(_whole_numbers(offsets) and len(offsets) == 2, f"the tensor {name!r} has no place")
    begin, end = offsets
    _check(begin <= end <= size, f"the tensor {name!r} lies outside the file")
    count = math.prod(shape)
    _check(count * DTYPES[dtype] == end - begin, f"the tensor {name!r} has another size than its shape says")
    return Entry(dtype, tuple(shape), begin, end)


def _taps(description: Mapping[str, Any], entries: Mapping[str, Entry]) -> tuple[TapEntry, ...]:
    given = description.get("taps")
    _check(type(description.get("version")) is int, "it does not say its version")
    _check(isinstance(given, list) and bool(given), "it has no list of taps")
    taps, addresses = [], set()
    by_number: dict[str, dict[str, Entry]] = {}
    for name, entry in entries.items():
        number, _, rest = name.partition("/")
        by_number.setdefault(number, {})[rest] = entry
    for place, value in enumerate(given):  # type: ignore[arg-type]
        tap = _object(value, f"tap {place}")
        address, queries, keys, form = (tap.get(name) for name in ("address", "queries", "keys", "form"))
        _check(all(isinstance(text, str) for text in (address, queries, keys, form)), f"tap {place} is incomplete")
        _check(address not in addresses, f"{address!r} is there twice")
        addresses.add(address)
        fields = _object(tap.get("fields"), f"the fields of {address!r}")
        tensors = by_number.get(str(place), {})
        shape = _shape(str(form), tensors, fields, f"the map {address!r}")
        taps.append(TapEntry(str(address), str(queries), str(keys), str(form), fields, tensors, shape))
    return tuple(taps)


def _shape(form: str, tensors: Mapping[str, Entry], fields: Mapping[str, Any], what: str) -> tuple[int, int, int, int]:
    """Examples, heads, queries and keys, with all that a form asks of its tensors."""
    _check(form in REQUIRED, f"{what} has the unknown form {form!r}")
    missing = [name for name in REQUIRED[form] if name not in tensors]
    _check(not missing, f"{what} lacks {', '.join(missing)}")
    shape = {"dot": _dot, "dense": _dense, "sparse": _sparse, "grouped": _grouped}[form](tensors, fields, what)
    norms = tensors.get("value_norms")
    if norms is not None:
        fits = len(norms.shape) == 3 and norms.shape[0] == shape[0] and norms.shape[2] == shape[3]
        _check(fits and norms.shape[1] > 0 and shape[1] % norms.shape[1] == 0, f"the norms of {what} do not fit it")
        _check(norms.dtype in FLOATS, f"the norms of {what} are no floating-point numbers")
    return shape


def _dot(tensors: Mapping[str, Entry], fields: Mapping[str, Any], what: str) -> tuple[int, int, int, int]:
    queries, keys = tensors["queries"], tensors["keys"]
    _check(len(queries.shape) == len(keys.shape) == 4, f"queries and keys of {what} do not have four axes")
    batch, heads, num_queries, width = queries.shape
    _check(keys.shape[0] == batch and keys.shape[3] == width, f"queries and keys of {what} do not fit each other")
    _check(keys.shape[1] > 0 and heads % keys.shape[1] == 0, f"the heads of {what} cannot share its keys")
    _check({queries.dtype, keys.dtype} <= FLOATS, f"queries or keys of {what} are no floating-point numbers")
    shape = (batch, heads, num_queries, keys.shape[2])
    scale, causal, window = (fields.get(name, _MISSING) for name in ("scale", "causal", "window"))
    _check(isinstance(scale, int | float) and not isinstance(scale, bool), f"the scale of {what} is no number")
    _check(isinstance(causal, bool), f"{what} does not say whether it is causal")
    _check(window is None or _whole_numbers([window]), f"the window of {what} is no number of positions")
    for name, wanted in (("allow_pairs", "BOOL"), ("bias", None)):
        if (entry := tensors.get(name)) is not None:
            _check(entry.dtype == wanted if wanted else entry.dtype in FLOATS, f"{name} of {what} has the wrong dtype")
            _check(wanted is not None or len(entry.shape) == 4, f"{name} of {what} does not have four axes")
            _check(_spreads(entry.shape, shape, rows=wanted is not None), f"{name} of {what} does not fit its map")
    if (allowed := tensors.get("allow_keys")) is not None:
        _check(allowed.dtype == "BOOL", f"allow_keys of {what} has the wrong dtype")
        _check(allowed.shape in {(batch, shape[3]), (1, shape[3])}, f"allow_keys of {what} does not fit its map")
    if (offsets := tensors.get("bias_offsets")) is not None:
        wide = (heads, num_queries + shape[3] - 1)
        _check(offsets.dtype in FLOATS and offsets.shape == wide, f"bias_offsets of {what} does not fit its map")
    return shape


def _dense(tensors: Mapping[str, Entry], fields: Mapping[str, Any], what: str) -> tuple[int, int, int, int]:
    weights = tensors["weights"]
    _check(len(weights.shape) == 4 and weights.dtype in FLOATS, f"the weights of {what} are no map")
    batch, heads, queries, keys = weights.shape
    return batch, heads, queries, keys


def _sparse(tensors: Mapping[str, Entry], fields: Mapping[str, Any], what: str) -> tuple[int, int, int, int]:
    indices, values = tensors["indices"], tensors["values"]
    _check(len(indices.shape) == 4 and indices.shape == values.shape, f"indices and values of {what} do not fit")
    _check(indices.dtype in INTEGERS and values.dtype in FLOATS, f"indices or values of {what} have the wrong dtype")
    batch, heads, queries, _ = indices.shape
    return batch, heads, queries, _extent(fields, "keys", what)


def _grouped(tensors: Mapping[str, Entry], fields: Mapping[str, Any], what: str) -> tuple[int, int, int, int]:
    places = tensors["query_places"], tensors["key_places"]
    tables = all(len(place.shape) == 2 and place.dtype in INTEGERS for place in places)
    _check(tables, f"the places of {what} are no tables of whole numbers")
    inner = _object(fields.get("inner"), f"the inside of {what}")
    form, inside = inner.get("form"), _object(inner.get("fields"), f"the inside of {what}")
    _check(isinstance(form, str) and form != "grouped", f"the inside of {what} has no form")
    own = {name.removeprefix("inner."): entry for name, entry in tensors.items() if name.startswith("inner.")}
    batch, heads, queries, keys = _shape(str(form), own, inside, f"the inside of {what}")
    groups = places[0].shape[0]
    fits = (groups, queries) == places[0].shape and (groups, keys) == places[1].shape
    _check(groups > 0 and batch % groups == 0 and fits, f"the groups of {what} do not fit its inside")
    return batch // groups, heads, _extent(fields, "queries", what), _extent(fields, "keys", what)


def _extent(fields: Mapping[str, Any], name: str, what: str) -> int:
    number = fields.get(name)
    _check(_whole_numbers([number]), f"{what} does not say how many {name} it has")
    return int(number)  # type: ignore[arg-type]


def _spreads(shape: Sequence[int], onto: tuple[int, ...], rows: bool) -> bool:
    """Whether a mask or bias can be spread over a map; a mask of three axes has none for heads, a bias has all rows."""
    full = (shape[0], 1, *shape[1:]) if len(shape) == 3 else (*(1,) * (4 - len(shape)), *shape)
    if len(full) != 4 or len(shape) < 2:
        return False
    free = (True, True, rows, rows)
    return all(have == want or (may and have == 1) for have, want, may in zip(full, onto, free, strict=True))


def _axes(given: Any, role: str) -> list[dict[str, Any]]:
    _check(isinstance(given, list), f"the axes of {role!r} are no list")
    return [_object(value, f"an axis of {role!r}") for value in given]


def _json(text: str | bytes, what: str) -> Any:
    """JSON without what other readers would take otherwise: no NaN, no name twice in an object."""

    def constant(name: str) -> Any:
        raise _Wrong(f"{what} holds {name}, which is no JSON")

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        _check(len(made) == len(found), f"{what} has a name twice in one object")
        return made

    try:
        return json.loads(text, parse_constant=constant, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"{what} is no JSON ({type(error).__name__})") from error


def _object(value: Any, what: str) -> dict[str, Any]:
    _check(isinstance(value, dict), f"{what} is no object")
    found: dict[str, Any] = value
    return found


def _whole_numbers(value: Any) -> bool:
    """A list of whole numbers that an array could have."""
    return isinstance(value, list) and all(
        isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= MAX_EXTENT for number in value
    )


def _check(fits: bool, message: str) -> None:
    if not fits:
        raise _Wrong(message)


_MISSING = object()
