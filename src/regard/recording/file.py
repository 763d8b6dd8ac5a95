"""The `.regard` file, version 1: a safetensors file whose metadata hold one JSON text under the key `regard`::

    {"version": 1,
     "taps": [{"address": "decoder.2.cross", "queries": "target", "keys": "source",
               "form": "dot" | "dense" | "sparse", "fields": {...}}, ...],
     "axes": {"source": [{"kind": "text", "tokens": [...]}, ...], ...},
     "outputs": {...}}

Tap number i owns the tensors `i/NAME`, where the names are those of its form: `queries`, `keys` and, where there are
any, `allow_keys`, `allow_pairs`, `bias`, `bias_offsets` (dot); `weights` (dense); `indices`, `values` (sparse).
Whoever can read safetensors and JSON can read it; torch is not needed for that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard.core.axes import Axis
from regard.core.errors import RecordingError
from regard.core.files import atomic_path
from regard.core.relations import FORMS, Relation

VERSION = 1

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
            tensors[f"{number}/{name}"] = tensor.detach().cpu().contiguous().clone()
    header = {
        "version": VERSION,
        "taps": entries,
        "axes": {role: [axis.to_json() for axis in given] for role, given in axes.items()},
        "outputs": dict(outputs),
    }
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata={"regard": json.dumps(header, ensure_ascii=False)})
    return path


def load(path: str | Path) -> Parts:
    """Reads what `save` wrote; a file that is damaged or no recording is a `RecordingError`."""
    path = Path(path)
    if not path.is_file():
        raise RecordingError(f"There is no recording at {path}.")
    try:
        with safe_open(path, framework="pt") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in sorted(opened.keys())}
    except (SafetensorError, OSError) as error:
        raise RecordingError(f"{path} cannot be read as a recording: {error}.") from error
    if "regard" not in metadata:
        raise RecordingError(f"{path} is a safetensors file, but no recording of Regard.")
    try:
        header = json.loads(metadata["regard"])
        if header["version"] != VERSION:
            raise RecordingError(
                f"{path} is a recording of version {header['version']}; this Regard reads version {VERSION}."
            )
        relations, roles = {}, {}
        for number, tap in enumerate(header["taps"]):
            own = {name.split("/", 1)[1]: tensors[name] for name in tensors if name.startswith(f"{number}/")}
            relations[tap["address"]] = FORMS[tap["form"]].restore(own, tap["fields"])
            roles[tap["address"]] = (tap["queries"], tap["keys"])
        axes = {role: [Axis.from_json(value) for value in given] for role, given in header["axes"].items()}
        return relations, roles, axes, header["outputs"]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordingError(f"{path} is damaged: its description does not fit ({error!r}).") from error
