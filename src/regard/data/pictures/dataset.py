"""From a `PictureConfig` to pictures: `load_pictures` reads a source, splits it, and measures its form.

The validation part of a source without one is held out of its training part, always the same pictures; `fraction` then
thins what is left. The form (mean and standard deviation among it) is measured on the training pictures that are
trained on. Give the `form` of a trained model and it is used as it is, and parts that are not asked for are not read.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Int64, UInt8, UInt64

from regard.core.errors import CheckpointError, ConfigError
from regard.data.pictures.choosing import hashes, held_out, kept
from regard.data.pictures.cifar import CIFAR10, CIFAR100, CifarSource
from regard.data.pictures.config import PictureConfig
from regard.data.pictures.distort import DistortedPictures
from regard.data.pictures.draws import Draws
from regard.data.pictures.folder import FolderSource
from regard.data.pictures.form import PictureForm
from regard.data.pictures.idx import FASHION_MNIST, MNIST, IdxSource
from regard.data.pictures.reading import ArrayPictures, Labelled, PartReport, Pictures, PictureSource
from regard.data.pictures.shapes.source import ShapesSource
from regard.data.pictures.svhn import SvhnSource
from regard.data.sources import PARTS, Part

MOST_MEASURED = 10_000
"""Mean and standard deviation are those of at most about so many files, evenly spread, where all are not in memory."""

LEAST_STD = 1 / 255
"""A channel that is the same everywhere is not blown up beyond this."""


@final
@dataclass(frozen=True)
class PictureSet:
    """One part: pictures, the class of each, and the form they all have."""

    pictures: Pictures
    labels: Int64[np.ndarray, " pictures"]
    form: PictureForm

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, numbers: Int64[np.ndarray, " some"]) -> UInt8[np.ndarray, "some height width channels"]:
        return self.pictures.read(numbers)

    def vary(
        self, numbers: Int64[np.ndarray, " some"], draws: Draws
    ) -> UInt8[np.ndarray, "some height width channels"]:
        """Distorted by these draws, where pictures are distorted at all."""
        if isinstance(self.pictures, DistortedPictures):
            return self.pictures.vary(numbers, draws)
        return self.read(numbers)

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.form.class_names

    @property
    def counts(self) -> Int64[np.ndarray, " classes"]:
        """How many pictures each class has."""
        return np.bincount(self.labels, minlength=self.form.num_classes)


@final
@dataclass(frozen=True)
class PictureReport:
    """What was read for each part, what was skipped, and what was decided without being asked."""

    parts: dict[Part, PartReport]
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        return "\n".join([*(f"{part}: {report.summary()}" for part, report in self.parts.items()), *self.notes])

    def to_json(self) -> dict[str, Any]:
        return {"parts": {part: report.to_json() for part, report in self.parts.items()}, "notes": list(self.notes)}


@final
class PictureCorpus:
    """The parts of a picture set that were asked for, and their common form."""

    def __init__(self, parts: dict[Part, PictureSet], form: PictureForm, report: PictureReport) -> None:
        self._parts = parts
        self.form = form
        self.report = report

    def part(self, name: Part) -> PictureSet:
        assert name in self._parts, f"the {name} part was not asked for"
        return self._parts[name]

    def has(self, name: Part) -> bool:
        """Whether this part was asked for."""
        return name in self._parts

    @property
    def train(self) -> PictureSet:
        return self.part("train")

    @property
    def valid(self) -> PictureSet:
        return self.part("valid")

    @property
    def test(self) -> PictureSet:
        return self.part("test")


def load_pictures(
    config: PictureConfig, form: PictureForm | None = None, *, parts: Sequence[Part] = PARTS
) -> PictureCorpus:
    """The parts of the picture set that `config` describes."""
    assert set(parts) <= set(PARTS)
    splitter = _Splitter(config, open_source(config, form))
    needed: list[Part] = [part for part in PARTS if part in parts or (part == "train" and form is None)]
    split = {part: splitter.part(part) for part in needed}
    if config.distortion != "none":
        split = {part: _distorted(labelled, config, part) for part, labelled in split.items()}
    if form is None:
        form = measured(split["train"].pictures, splitter.source.class_names)
    sets = {part: PictureSet(split[part].pictures, split[part].labels, form) for part in PARTS if part in parts}
    for part, pictures in sets.items():
        if pictures.pictures.shape != (form.height, form.width, form.channels):
            raise CheckpointError(
                f"The model reads pictures of {form.height} x {form.width} with {form.channels} channels; those of "
                f"{part} are {' x '.join(map(str, pictures.pictures.shape))}. Choose its size, or other pictures."
            )
    reports = {part: splitter.report(part) for part in PARTS if part in parts}
    return PictureCorpus(sets, form, PictureReport(reports, (*splitter.notes, *splitter.source.notes)))


def _distorted(labelled: Labelled, config: PictureConfig, part: Part) -> Labelled:
    """Each part by draws of its own."""
    if not isinstance(labelled.pictures, ArrayPictures):
        raise ConfigError(
            "Only pictures in memory can be distorted, and these do not fit into it; choose distortion none."
        )
    seed = config.seed * len(PARTS) + PARTS.index(part)
    return Labelled(DistortedPictures.of(labelled.pictures, config.distortion, seed), labelled.labels)


def open_source(config: PictureConfig, form: PictureForm | None = None) -> PictureSource:
    """The source itself, before anything is read; classes are numbered as in `form`."""
    if config.source != "folder" and config.root is not None:
        raise ConfigError(f"The source {config.source} reads no folder of yours; choose source folder for that.")
    if config.source == "folder" and config.root is None:
        raise ConfigError("Pictures from a folder need its path: root = PATH of the folder with a folder per class.")
    source: PictureSource
    if config.source == "folder":
        assert config.root is not None
        root, names = Path(config.root).expanduser(), None if form is None else form.class_names
        size = None if form is None else (form.height, form.width)
        if config.size is not None:
            size = (config.size, config.size)
        source = FolderSource(root, size=size, on_bad=config.on_bad, class_names=names)
    elif config.source == "shapes":
        source = ShapesSource(config.num_pictures, config.size or 64, config.seed, config.classes)
    elif config.source == "svhn":
        source = SvhnSource()
    elif config.source in ("mnist", "fashion_mnist"):
        source = IdxSource(MNIST if config.source == "mnist" else FASHION_MNIST)
    else:
        source = CifarSource(CIFAR10 if config.source == "cifar10" else CIFAR100)
    if form is not None and source.class_names != form.class_names:
        raise CheckpointError(
            f"The model knows {form.num_classes} classes ({_few(form.class_names)}), the pictures "
            f"{len(source.class_names)} others ({_few(source.class_names)})."
        )
    return source


def measured(pictures: Pictures, class_names: tuple[str, ...]) -> PictureForm:
    """The form of pictures: sums of whole numbers, so that no order of adding up matters."""
    height, width, channels = pictures.shape
    step = 1 if isinstance(pictures, ArrayPictures) else -(-len(pictures) // MOST_MEASURED)
    numbers = np.arange(0, len(pictures), step)
    levels = np.zeros((channels, 256), np.int64)
    for start in range(0, len(numbers), 1024):
        block = pictures.read(numbers[start : start + 1024])
        for channel in range(channels):
            levels[channel] += np.bincount(block[..., channel].reshape(-1), minlength=256)
    values, total = np.arange(256) / 255, levels.sum(axis=1)
    mean = levels @ values / total
    std = np.sqrt(np.maximum(levels @ values**2 / total - mean**2, LEAST_STD**2))
    return PictureForm(height, width, tuple(map(float, mean)), tuple(map(float, std)), class_names)


class _Splitter:
    """Reads each part of the source once, and makes the missing ones from train."""

    def __init__(self, config: PictureConfig, source: PictureSource) -> None:
        self.source = source
        self.notes: list[str] = []
        self._config = config
        self._reports: dict[Part, PartReport] = {}
        self._missing: tuple[Part, ...] = tuple(part for part in PARTS if part not in source.parts)
        for part in self._missing:
            self.notes.append(
                f"{part}: the source has none; {100 * config.held_out:g} % of each class of train were held out for "
                "it, chosen by a hash."
            )

    def part(self, part: Part) -> Labelled:
        if part in self._missing:
            chosen = self._train.select(np.flatnonzero(self._assigned == PARTS.index(part)))
        elif part == "train":
            rest = np.flatnonzero(self._assigned == 0)
            if self._config.fraction < 1:
                salt = f"fraction {self._config.seed}"
                hashed = hashes(self._marks, salt)[rest]
                rest = rest[kept(hashed, self._train.labels[rest], self._config.fraction)]
            chosen = self._train.select(rest)
        else:
            chosen = self._resized(self.source.read(part, self.report(part)))
        self.report(part).pictures = len(chosen)
        return chosen

    def report(self, part: Part) -> PartReport:
        return self._reports.setdefault(part, PartReport())

    @functools.cached_property
    def _train(self) -> Labelled:
        return self._resized(self._published)

    @functools.cached_property
    def _published(self) -> Labelled:
        """Train as the source has it: what is held out does not hang on the size that was asked for."""
        return self.source.read("train", self.report("train"))

    @functools.cached_property
    def _marks(self) -> Sequence[bytes]:
        return self.source.marks(self._published)

    def _resized(self, labelled: Labelled) -> Labelled:
        if self._config.size is None or not isinstance(labelled.pictures, ArrayPictures):
            return labelled
        return Labelled(labelled.pictures.resized(self._config.size, self._config.size), labelled.labels)

    @functools.cached_property
    def _assigned(self) -> Int64[np.ndarray, " pictures"]:
        """For each picture of the source's train the place in `PARTS` of the part that it goes to."""
        labels = self._train.labels
        assigned = np.zeros(len(labels), np.int64)
        if not self._missing:
            return assigned
        hashed: UInt64[np.ndarray, " pictures"] = hashes(self._marks, "held out")
        for part in self._missing:
            free: Bool[np.ndarray, " pictures"] = assigned == 0
            own = np.flatnonzero(free)
            share = self._config.held_out * len(labels) / len(own)
            name = f"the {self._config.source} training pictures"
            chosen = own[held_out(hashed[own], labels[own], share, name)]
            assigned[chosen] = PARTS.index(part)
        return assigned


def _few(names: Sequence[str]) -> str:
    return ", ".join([*names[:3], "..."] if len(names) > 3 else names)
