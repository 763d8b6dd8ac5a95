"""Reading another library's state dict: every tensor is taken once, to a named place, or is named in an error.

    reader = Reader("timm's ViT", state)
    reader.move("patch_embed.proj", "patches.projection")     # weight and bias
    return reader.finish(config)

What is missing, what is left over and what has another shape is a `CheckpointError` with its name, its shape and the
place where it probably belongs. `finish` compares with the model that the config makes, on no device.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

import torch
from torch import Tensor

from regard.core.errors import CheckpointError, nearest
from regard.core.models import ModelConfig, models

LINEAR = ("weight", "bias")
Made = TypeVar("Made", bound=ModelConfig)


class Reader:
    """Takes tensors by their names, keeps them under ours."""

    def __init__(self, peer: str, state: Mapping[str, Tensor], renames: Iterable[tuple[str, str]] = ()) -> None:
        """`renames` are patterns of older spellings and what stands for them now."""
        self.peer = peer
        self.state = {_renamed(name, tuple(renames)): tensor for name, tensor in state.items()}
        self.tensors: dict[str, Tensor] = {}
        self._places: dict[str, str] = {}

    def __contains__(self, theirs: str) -> bool:
        return theirs in self.state

    def take(self, theirs: str, ours: str) -> Tensor:
        """A tensor that will be (a part of) our `ours`."""
        tensor = self.look(theirs, ours)
        self._places[theirs] = ours
        return tensor

    def look(self, theirs: str, ours: str = "") -> Tensor:
        """A tensor whose shape says something of the config."""
        if theirs not in self.state:
            left = self._left_over()
            likely = nearest(theirs, left)
            meant = f" Perhaps it is {likely!r} of shape {_shape(left[likely])}." if likely else ""
            needed = f", which our {ours!r} is made of" if ours else ""
            raise CheckpointError(
                f"The checkpoint holds no {theirs!r}{needed}: it is not {self.peer}, or not a whole one.{meant}"
            )
        return self.state[theirs]

    def move(self, theirs: str, ours: str, kinds: Iterable[str] = LINEAR) -> None:
        """Weight and bias of a layer."""
        for kind in kinds:
            self.tensors[f"{ours}.{kind}"] = self.take(f"{theirs}.{kind}", f"{ours}.{kind}")

    def stack(self, theirs: Iterable[str], ours: str, kinds: Iterable[str] = LINEAR) -> None:
        """Several layers of theirs that are one of ours, below each other."""
        theirs = tuple(theirs)
        for kind in kinds:
            place = f"{ours}.{kind}"
            self.tensors[place] = torch.cat([self.take(f"{name}.{kind}", place) for name in theirs])

    def count(self, prefix: str) -> int:
        """How many layers there are: one more than the largest number behind `prefix`."""
        numbers = [
            int(found[1])
            for name in self.state
            if (found := re.match(re.escape(prefix) + r"(\d+)\.", name)) is not None
        ]
        return max(numbers, default=-1) + 1

    def ignore(self, pattern: str) -> None:
        """Forgets what is computed from the config, such as index tables."""
        for name in [name for name in self.state if re.search(pattern, name)]:
            del self.state[name]

    def finish(self, config: Made) -> tuple[Made, dict[str, Tensor]]:
        """The config and our state dict, when nothing is missing, left over or of another shape."""
        if left := self._left_over():
            told = []
            for name, tensor in list(left.items())[:8]:
                like = nearest(name, self._places)
                told.append(
                    f"{name!r} of shape {_shape(tensor)}"
                    + (f" (most like {like!r}, which becomes {self._places[like]!r})" if like else "")
                )
            more = f", and {len(left) - 8} more" if len(left) > 8 else ""
            raise CheckpointError(
                f"Our {config.kind!r} has no place for these of {self.peer}: {', '.join(told)}{more}."
            )
        num_classes, channels = self.tensors["head.weight"].shape[0], self.tensors["patches.projection.weight"].shape[1]
        with torch.device("meta"):
            wanted = models[config.kind].build(config, num_classes, channels).state_dict()
        for name in wanted.keys() | self.tensors.keys():
            ours, theirs = wanted.get(name), self.tensors.get(name)
            if ours is None or theirs is None or ours.shape != theirs.shape:
                raise CheckpointError(
                    f"{name!r} of our {config.kind!r} has the shape {'none' if ours is None else _shape(ours)}, "
                    f"but {self.peer} gives it {'none' if theirs is None else _shape(theirs)} "
                    f"(from {self._origin(name)})."
                )
        return config, self.tensors

    def _left_over(self) -> dict[str, Tensor]:
        return {name: tensor for name, tensor in self.state.items() if name not in self._places}

    def _origin(self, ours: str) -> str:
        return ", ".join(repr(theirs) for theirs, place in self._places.items() if place == ours) or "nothing"


def _renamed(name: str, renames: Iterable[tuple[str, str]]) -> str:
    for pattern, replacement in renames:
        name = re.sub(pattern, replacement, name)
    return name


def _shape(tensor: Tensor) -> list[int]:
    return list(tensor.shape)
