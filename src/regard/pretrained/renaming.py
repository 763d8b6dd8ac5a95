"""Their names become ours: rules, and a check that nothing is unknown, missing or of another shape."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.errors import CheckpointError, nearest
from regard.core.models import ModelConfig, models

Rules = Sequence[tuple[str, str]]
"""Pairs: a regular expression over a whole name of theirs, and what it becomes. The first that matches counts."""


@dataclass(frozen=True)
class Classified:
    """What a state dict of a classifier becomes: with these three our model is built, with `state` it is filled."""

    config: ModelConfig
    num_classes: int
    channels: int


def renamed(state: Mapping[str, Tensor], rules: Rules, target: Classified, family: str) -> dict[str, Tensor]:
    """The tensors under our names; a `CheckpointError` where they are not exactly those of our model."""
    expected = _expected(target)
    found: dict[str, Tensor] = {}
    unknown: dict[str, Tensor] = {}
    origins: dict[str, str] = {}
    for theirs, tensor in state.items():
        ours = _apply(rules, theirs)
        if ours is None or ours not in expected:
            unknown[theirs] = tensor
        else:
            found[ours], origins[ours] = tensor, theirs
    missing = {ours: shape for ours, shape in expected.items() if ours not in found and not _counter(ours)}
    for theirs, tensor in unknown.items():
        raise CheckpointError(
            f"The checkpoint holds {theirs!r} of shape {tuple(tensor.shape)}, which {family} has no place for."
            f"{_likely(theirs, tuple(tensor.shape), missing, 'what is missing')}"
        )
    for ours, shape in missing.items():
        others = {theirs: tuple(state[theirs].shape) for theirs in state}
        raise CheckpointError(
            f"The checkpoint holds nothing for our {ours!r} of shape {shape}: it is not {family}, or not a whole one."
            f"{_likely(ours, shape, others, 'what it holds')}"
        )
    for ours, tensor in found.items():
        if tuple(tensor.shape) != expected[ours]:
            raise CheckpointError(
                f"{origins[ours]!r} has the shape {tuple(tensor.shape)}, but our {ours!r} the shape {expected[ours]}: "
                f"{family} of these sizes is not one that ours can be."
            )
    for ours in expected.keys() - found.keys():
        found[ours] = torch.zeros((), dtype=torch.int64)  # old files do not count batches
    return found


def take(state: Mapping[str, Tensor], name: str, family: str) -> Tensor:
    """The tensor of that name, from which a size is read."""
    if name not in state:
        close = nearest(name, state)
        meant = f" The nearest name that it holds is {close!r}." if close else ""
        raise CheckpointError(f"The checkpoint holds no {name!r}: it is not {family}, or not a whole one.{meant}")
    return state[name]


def count(state: Iterable[str], pattern: str) -> int:
    """How many different numbers stand in the group of `pattern`, at the beginning of names: blocks of a stage."""
    return len({match[1] for name in state if (match := re.match(pattern, name))})


def _expected(target: Classified) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        model = models[target.config.kind].build(target.config, target.num_classes, target.channels)
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def _apply(rules: Rules, name: str) -> str | None:
    for pattern, replacement in rules:
        if match := re.fullmatch(pattern, name):
            return match.expand(replacement)
    return None


def _counter(name: str) -> bool:
    return name.endswith("num_batches_tracked")


def _likely(name: str, shape: tuple[int, ...], places: Mapping[str, tuple[int, ...]], which: str) -> str:
    """The place most like it: of the same shape where there is one."""
    same = [place for place, other in places.items() if other == shape]
    close = nearest(name, same) or (same[0] if same else nearest(name, places))
    return f" Most like it of {which}: {close!r} of shape {places[close]}." if close else ""
