"""The tensors of a model and its optimizer under the names of the parameters.

Works on whole and on sharded parameters (FSDP2's DTensor) alike: gathering is done tensor by tensor, by all
processes together, and only the main process keeps the result. A tensor that goes by several names, such as an
embedding tied to the output projection, is stored once; `aliases` says for every other name which one it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn, optim

from regard.core.errors import CheckpointError, nearest


def gather_model(model: nn.Module, keep: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of `model` on the host, and the aliases."""
    tensors: dict[str, Tensor] = {}
    first_name: dict[int, str] = {}
    aliases: dict[str, str] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) in first_name:
            aliases[name] = first_name[id(tensor)]
            continue
        first_name[id(tensor)] = name
        whole = _whole(tensor)
        if keep:
            tensors[name] = whole
    return tensors, aliases


def gather_optimizer(
    model: nn.Module, optimizer: optim.Optimizer, keep: bool = True
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The optimizer's state as `parameter/key` tensors, and what of it is not a tensor."""
    tensors: dict[str, Tensor] = {}
    others: dict[str, Any] = {}
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            address = f"{names[id(parameter)]}/{key}"
            if isinstance(value, Tensor):
                whole = _whole(value)
                if keep:
                    tensors[address] = whole
            elif value is not None:
                others[address] = value
    return tensors, others


def scatter_model(model: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Copies `tensors` (aliases expanded) into `model`, after checking every name and shape."""
    targets = model.state_dict(keep_vars=True)
    _check_names(targets, tensors, source)
    loaded: dict[int, str] = {}
    for name, target in targets.items():
        first = loaded.setdefault(id(target), name)
        if first != name and not torch.equal(tensors[first], tensors[name]):
            raise CheckpointError(
                f"{source} has different values for {first!r} and {name!r}, which are one tensor in this model: "
                "it was saved from a model that does not tie them. Build the model without tying."
            )
    with torch.no_grad():
        for name, target in targets.items():
            target.copy_(_shard_like(tensors[name], target))


def scatter_optimizer(
    model: nn.Module, optimizer: optim.Optimizer, tensors: Mapping[str, Tensor], others: Mapping[str, Any], source: str
) -> None:
    """Puts the state that `gather_optimizer` gave back into `optimizer`."""
    parameters = dict(model.named_parameters())
    states: dict[str, dict[str, Any]] = {}
    for address, value in {**tensors, **others}.items():
        name, _, key = address.rpartition("/")
        if name not in parameters:
            raise CheckpointError(
                f"{source} has optimizer state for a parameter {name!r} that this model does not have; "
                "the model is not the one that was trained."
            )
        parameter = parameters[name]
        sharded = isinstance(value, Tensor) and value.shape == parameter.shape
        states.setdefault(name, {})[key] = _shard_like(value, parameter) if sharded else value
    # torch's own loader then puts each tensor where the optimizer wants it (the step count of AdamW is peculiar).
    names = {id(parameter): name for name, parameter in parameters.items()}
    trained = [names[id(parameter)] for group in optimizer.param_groups for parameter in group["params"]]
    packed = optimizer.state_dict()
    packed["state"] = {index: states[name] for index, name in enumerate(trained) if name in states}
    optimizer.load_state_dict(packed)


def _whole(tensor: Tensor) -> Tensor:
    """The full tensor on the host: itself if it is there, though never as a part of a larger storage."""
    tensor = tensor.detach()
    if hasattr(tensor, "full_tensor"):
        tensor = tensor.full_tensor()
    own = tensor.to("cpu").contiguous()
    return own.clone() if own.untyped_storage().nbytes() != own.nbytes else own


def _shard_like(tensor: Tensor, target: Tensor) -> Tensor:
    """`tensor` placed as `target` is: this process's share of it, if that is sharded."""
    if not hasattr(target, "full_tensor"):
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(target, DTensor)
    return distribute_tensor(tensor.to(target.device), target.device_mesh, target.placements)


def _check_names(targets: Mapping[str, Tensor], tensors: Mapping[str, Tensor], source: str) -> None:
    missing = [name for name in targets if name not in tensors]
    unused = [name for name in tensors if name not in targets]
    reshaped = [name for name in targets if name in tensors and targets[name].shape != tensors[name].shape]
    if not missing and not unused and not reshaped:
        return
    complaints = []
    for name in reshaped:
        theirs, ours = list(tensors[name].shape), list(targets[name].shape)
        complaints.append(f"{name!r} has shape {theirs}, but the model's has {ours}")
    for name in missing:
        likely = _counterpart(name, targets[name], {other: tensors[other] for other in unused})
        complaints.append(
            f"{name!r} of the model is not in the file" + (f" (perhaps it is {likely!r})" if likely else "")
        )
    for name in unused:
        likely = _counterpart(name, tensors[name], {other: targets[other] for other in missing})
        complaints.append(f"{name!r} is not in the model" + (f" (perhaps it is {likely!r})" if likely else ""))
    shown, more = complaints[:8], len(complaints) - 8
    raise CheckpointError(
        f"{source} does not fit the model: {'; '.join(shown)}{f'; and {more} more' if more > 0 else ''}. "
        "Build the model with the options it was trained with."
    )


def _counterpart(name: str, tensor: Tensor, candidates: Mapping[str, Tensor]) -> str | None:
    """Among the names left over, the one most like `name`, first of all among those of the same shape."""
    same_shape = [other for other, value in candidates.items() if value.shape == tensor.shape]
    return nearest(name, same_shape) or nearest(name, candidates)
