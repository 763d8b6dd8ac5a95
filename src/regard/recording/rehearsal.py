"""What a recording will cost, from a rehearsal: the model runs on tensors that have shapes but no numbers."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call
from torch.utils._pytree import tree_map_only

from regard.core.errors import RecordingError
from regard.recording.cost import Cost
from regard.recording.record import record


def recording_cost(model: nn.Module, *inputs: Any, taps: str = "*", **named_inputs: Any) -> Cost:
    """What `record(model, taps)` would keep of this call at most; nothing is computed, whatever the size.

    Of inputs only shapes and dtypes matter: `torch.empty(1, 3, 2048, 2048, device="meta")` takes no memory.
    """
    try:
        with torch.no_grad():
            return _rehearsed(model, inputs, named_inputs, taps)
    except RecordingError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else "no message"
        raise RecordingError(
            f"{type(model).__name__} cannot be rehearsed without numbers ({type(error).__name__}: {reason}). Record a "
            f"small input and read `recording.cost` instead: what is kept grows with the length of the input, or its "
            f"square where a map is dense."
        ) from error


def _rehearsed(model: nn.Module, inputs: Any, named_inputs: Any, taps: str) -> Cost:
    """On the `meta` device; a model that mixes devices then is tried on tensors that say they are on a CPU."""
    try:
        with torch.device("meta"):
            return _recorded(model, inputs, named_inputs, taps, "meta")
    except RecordingError:
        raise
    except Exception:
        with FakeTensorMode(allow_non_fake_inputs=True):
            return _recorded(model, inputs, named_inputs, taps, "cpu")


def _recorded(model: nn.Module, inputs: Any, named_inputs: Any, taps: str, device: str) -> Cost:
    def empty(tensor: Tensor) -> Tensor:
        return torch.empty(tensor.shape, dtype=tensor.dtype, device=device)

    parts = {name: empty(tensor) for name, tensor in chain(model.named_parameters(), model.named_buffers())}
    given, named = tree_map_only(Tensor, empty, (inputs, named_inputs))
    with record(model, taps) as recording:
        functional_call(model, parts, given, named)
    return recording.cost
