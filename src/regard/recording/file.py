"""The `.regard` file, version 1: a safetensors file whose metadata hold one JSON text under the key `regard`::

    {"version": 1,
     "taps": [{"address": "decoder.2.cross", "queries": "target", "keys": "source",
               "form": "dot" | "dense" | "sparse" | "grouped", "fields": {...}}, ...],
     "axes": {"source": [{"kind": "text", "tokens": [...]}, ...], ...},
     "outputs": {...}}

Tap number i owns the tensors `i/NAME`, where the names are those of its form. docs/recording-file.md says all of it
byte by byte; `layout` checks what a file says of itself, and `reader` reads it with numpy alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from regard.core.axes import Axis
from regard.core.errors import RecordingError
from regard.core.files import atomic_path
from regard.core.relations import FORMS, Relation
from regard.recording.layout import DTYPES, MAX_HEADER, VERSION, read_layout

NAMES = {
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.int16: "I16",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
}
"""torch's dtypes as safetensors calls them."""

Parts = tuple[dict[str, Relation], dict[str, tuple[str, str]], dict[str, list[Axis]], dict[str, Any]]


def save(
    path: str | Path,
    relations: Mapping[str, Relation],
    roles: Mapping[str, tuple[str, str]],
    axes: Mapping[str, list[Axis]],
    outputs: Mapping[str, Any],
) -> Path:
    """Writes the file whole or not at all."""
    if not relations:
        raise RecordingError("There is nothing to save: the recording is empty.")
    path = Path(path)
    tensors: dict[str, Tensor] = {}
    entries = []
    for number, (address, relation) in enumerate(relations.items()):
        queries, keys = roles[address]
        entries.append(
            {"address": address, "queries": queries, "keys": keys, "form": relation.form, "fields": relation.fields()}
        )
        for name, tensor in relation.tensors().items():
            tensors[f"{number}/{name}"] = tensor.detach()
    header = {
        "version": VERSION,
        "taps": entries,
        "axes": {role: [axis.to_json() for axis in given] for role, given in axes.items()},
        "outputs": dict(outputs),
    }
    try:
        text = json.dumps(header, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise RecordingError(
            "What belongs to the recording (axes, outputs, scale) has a number that is not finite, which no JSON "
            "holds. Put None in its place."
        ) from error
    with atomic_path(path) as temporary:
        _write(temporary, tensors, text)
    return path


def load(path: str | Path) -> Parts:
    """Reads what `save` wrote; a file that is damaged or no recording is a `RecordingError`."""
    path = Path(path)
    layout = read_layout(path)
    try:
        with safe_open(path, framework="pt") as opened:
            tensors = {name: opened.get_tensor(name) for name in sorted(opened.keys())}
    except (SafetensorError, OSError) as error:
        raise RecordingError(f"{path} cannot be read as a recording: {error}.") from error
    try:
        relations, roles = {}, {}
        for number, tap in enumerate(layout.taps):
            own = {name: tensors[f"{number}/{name}"] for name in tap.tensors}
            relations[tap.address] = FORMS[tap.form].restore(own, tap.fields)
            roles[tap.address] = (tap.queries, tap.keys)
        axes = {role: [Axis.from_json(value) for value in given] for role, given in layout.axes.items()}
        return relations, roles, axes, dict(layout.outputs)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordingError(f"{path} is damaged: its description does not fit ({error!r}).") from error


def _write(path: Path, tensors: Mapping[str, Tensor], description: str) -> None:
    """One tensor after another, so that one is copied at a time; wide numbers first, so that all are aligned."""
    order = sorted(tensors, key=lambda name: (-DTYPES[NAMES[tensors[name].dtype]], name))
    entries: dict[str, Any] = {"__metadata__": {"regard": description}}
    end = 0
    for name in order:
        tensor = tensors[name]
        begin, end = end, end + tensor.nbytes
        entries[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(entries, ensure_ascii=False).encode("utf-8", errors="replace")
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise RecordingError(
            f"What belongs to the recording (axes, outputs such as pictures) would take {len(text):,} bytes in its "
            f"header, which may have {MAX_HEADER:,}. Save fewer examples in one file."
        )
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for name in order:
            _bytes_of(tensors[name]).tofile(file)


def _bytes_of(tensor: Tensor) -> Any:
    assert sys.byteorder == "little", "the file is little-endian"
    return tensor.cpu().contiguous().flatten().view(torch.uint8).numpy()
