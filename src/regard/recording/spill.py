"""Where what is recorded is kept: in memory up to a budget, then in a temporary file that is mapped into it.

A tensor that is a view of something larger (queries are often a third of one projection) is copied, so that the rest
can be let go. A file is removed from its folder as soon as it is mapped: the system frees it with the last tensor, also
when the program dies.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from regard.core.errors import RecordingError
from regard.core.relations import FORMS, DotRelation, Relation
from regard.recording.cost import readable


class Store:
    """Keeps relations; `budget` is how many bytes of them may lie in memory, None any number."""

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        self.in_memory = 0
        self.on_disk = 0

    def keep(self, relation: Relation) -> Relation:
        """The same relation, compact or on disk."""
        if relation.form not in FORMS or type(relation) is not FORMS[relation.form]:
            return relation
        tensors = relation.tensors()
        size = sum(tensor.nbytes for tensor in tensors.values())
        if self.budget is None or self.in_memory + size <= self.budget:
            self.in_memory += size
            kept = {name: compact(tensor) for name, tensor in tensors.items()}
        else:
            kept = {name: self._spill(tensor) for name, tensor in tensors.items()}
        return FORMS[relation.form].restore(kept, relation.fields())

    def without_keys(self, step: Relation) -> Relation:
        """A step that another one has followed, whose keys include this one's: these are let go, their number stays."""
        if type(step) is not DotRelation:
            return step
        self.in_memory = max(0, self.in_memory - step.keys.nbytes)
        # One number that stands for all: a shape without memory.
        return replace(step, keys=step.keys.new_zeros(()).expand(step.keys.shape), value_norms=None)

    def _spill(self, tensor: Tensor) -> Tensor:
        folder = Path(tempfile.gettempdir())
        free = shutil.disk_usage(folder).free
        if tensor.nbytes > free:
            raise RecordingError(
                f"The recording is larger than its budget of {readable(self.budget or 0)}, and {folder} has no room "
                f"for the rest ({readable(tensor.nbytes)} wanted, {readable(free)} free). Record fewer taps or a "
                f"shorter input, give a larger budget, or set TMPDIR to a folder with more room."
            )
        self.on_disk += tensor.nbytes
        return on_disk(tensor, folder)


def compact(tensor: Tensor) -> Tensor:
    """The tensor itself, or a copy where it holds on to more memory than it has."""
    whole = tensor.untyped_storage().nbytes()
    return tensor.detach().clone(memory_format=torch.contiguous_format) if whole > tensor.nbytes else tensor.detach()


def on_disk(tensor: Tensor, folder: Path) -> Tensor:
    """A copy that lies in a file without a name."""
    if tensor.numel() == 0:
        return tensor.detach().clone()
    number, name = tempfile.mkstemp(prefix="regard-", suffix=".tensor", dir=folder)
    try:
        with os.fdopen(number, "wb") as file:
            # Bytes of any dtype, numpy's or not.
            whole = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
            whole.numpy().tofile(file)
        mapped = torch.from_file(name, shared=False, size=tensor.numel(), dtype=tensor.dtype)
    finally:
        Path(name).unlink(missing_ok=True)
    return mapped.view(tensor.shape)
