"""Batches of pictures: which go together in an epoch, and how they become tensors.

An entry of a planned batch is one number that says all: the picture in its low 32 bits, and above them the epoch plus
one. `collate` so knows how to vary each picture from the entry alone. It stays right when several epochs' batches are
under way at once, when a batch is dealt out by rows to several processes, and after a resume; and no entry means two
things. `sequential` plans plain picture numbers, whose high bits are 0: those are read as they are, without variation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64, UInt8
from torch import Tensor

from regard.core.errors import ConfigError
from regard.data.pictures.augment import Augmentation
from regard.data.pictures.config import PictureConfig
from regard.data.pictures.dataset import PictureSet
from regard.data.pictures.draws import Draws
from regard.data.pictures.form import PictureForm

EPOCH_BIT = 32
LAST_EPOCH = (1 << 31) - 2

Entries = Int64[np.ndarray, " batch"]


@final
@dataclass(frozen=True)
class PictureBatch:
    """Normalised pictures, and for each the number of its class or, when pictures were mixed, the share of each."""

    images: Float[Tensor, "batch channels height width"]
    targets: Int[Tensor, " batch"] | Float[Tensor, "batch classes"]


@final
class PictureBatches:
    """A picture set in batches that differ by one picture at most; without an `augmentation` nothing is varied."""

    def __init__(
        self, pictures: PictureSet, *, batch_size: int, seed: int, augmentation: Augmentation | None = None
    ) -> None:
        if batch_size < 1:
            raise ConfigError(f"A batch of {batch_size} pictures is none; choose 1 or more.")
        assert 0 < len(pictures) < 1 << EPOCH_BIT
        self.pictures = pictures
        self.augmentation = augmentation or Augmentation()
        self._seed = seed
        self._num_batches = -(-len(pictures) // batch_size)

    @classmethod
    def of(cls, config: PictureConfig, pictures: PictureSet) -> PictureBatches:
        """As `config` has them."""
        return cls(pictures, batch_size=config.batch_size, seed=config.seed, augmentation=Augmentation.of(config))

    @property
    def form(self) -> PictureForm:
        return self.pictures.form

    def epoch(self, number: int) -> Sequence[np.ndarray]:
        """All pictures once, in an order that is a pure function of the seed and the number."""
        assert 0 <= number <= LAST_EPOCH
        random = np.random.PCG64(np.random.SeedSequence((self._seed, number)))
        order = np.argsort(random.random_raw(len(self.pictures)), kind="stable")
        return np.array_split(order | (number + 1) << EPOCH_BIT, self._num_batches)

    def sequential(self) -> Sequence[np.ndarray]:
        """All pictures once, in their own order, as they are; for evaluation."""
        return np.array_split(np.arange(len(self.pictures)), self._num_batches)

    def count(self, indices: np.ndarray) -> int:
        return len(indices)

    def collate(self, indices: np.ndarray) -> PictureBatch:
        numbers = indices & ((1 << EPOCH_BIT) - 1)
        planned = indices >> EPOCH_BIT
        assert (planned > 0).all() or not planned.any(), "entries of an epoch and of an evaluation in one batch"
        labels = self.pictures.labels[numbers]
        if planned[0]:
            return self._varied(indices, numbers, labels)
        images = self.form.normalise(self.pictures.read(numbers).transpose(0, 3, 1, 2))
        return PictureBatch(images, torch.from_numpy(labels))

    def _varied(self, entries: Entries, numbers: Entries, labels: Int64[np.ndarray, " batch"]) -> PictureBatch:
        draws = Draws(self._seed, entries)
        images = self._view(numbers, draws.fork())
        if not self.augmentation.mixes:
            return PictureBatch(images, torch.from_numpy(labels))
        partners = draws.below(len(self.pictures))
        others = self._view(partners, draws.fork())
        images, weight = self.augmentation.mix(images, others, draws)
        return PictureBatch(images, self._soft(labels, self.pictures.labels[partners], weight))

    def _view(self, numbers: Entries, draws: Draws) -> Float[Tensor, "batch channels height width"]:
        """Pictures as one look at them in training."""
        pictures: UInt8[np.ndarray, "batch height width channels"] = self.pictures.vary(numbers, draws)
        return self.augmentation.erase(self.form.normalise(self.augmentation.view(pictures, draws)), draws)

    def _soft(
        self,
        labels: Int64[np.ndarray, " batch"],
        others: Int64[np.ndarray, " batch"],
        weight: Float32[np.ndarray, " batch"],
    ) -> Float[Tensor, "batch classes"]:
        """The share of each class; where both pictures are of one class it has all."""
        shares = np.zeros((len(labels), self.form.num_classes), np.float32)
        rows = np.arange(len(labels))
        shares[rows, labels] += weight
        shares[rows, others] += 1 - weight
        return torch.from_numpy(shares)
