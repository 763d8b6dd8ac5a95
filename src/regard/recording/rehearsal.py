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
    """What `record(model, taps)` would keep of this call; nothing is computed, whatever the size.

    Of inputs only shapes and dtypes matter: `torch.empty(1, 3, 2048, 2048, device="meta")` takes no memory.
    """
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():

        def empty(tensor: Tensor) -> Tensor:
            return torch.empty(tensor.shape, dtype=tensor.dtype)

        del mode
        parts = {name: empty(tensor) for name, tensor in chain(model.named_parameters(), model.named_buffers())}
        given, named = tree_map_only(Tensor, empty, (inputs, named_inputs))
        try:
            with record(model, taps) as recording:
                functional_call(model, parts, given, named)
        except RecordingError:
            raise
        except Exception as error:
            raise RecordingError(
                f"{type(model).__name__} cannot be rehearsed without numbers ({type(error).__name__}: "
                f"{str(error).splitlines()[0] if str(error) else 'no message'}). Record a small input and read "
                f"`recording.cost` instead: what is kept grows with the length of the input, or its square where a map "
                f"is dense."
            ) from error
        return recording.cost
