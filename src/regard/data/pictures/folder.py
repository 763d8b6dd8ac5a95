"""Pictures of your own: a folder for each class, in it the pictures, at any depth.

    root/train/CLASS/...   root/valid/CLASS/...   root/test/CLASS/...    (val and validation are understood, too)
    root/CLASS/...                                                       (valid and test are then held out)

Small sets are decoded once and kept; of large ones (`MOST_BYTES`) each picture is decoded whenever it is needed. Such
a set is only gone through beforehand where bad files are to be skipped: otherwise one is refused when it is reached.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from regard.core.errors import DataError, nearest
from regard.data.pictures.reading import ArrayPictures, FilePictures, Labelled, PartReport, read_file
from regard.data.report import OnBad
from regard.data.sources import PARTS, Part

MOST_BYTES = 1 << 30
"""A part whose pictures take no more than this, decoded and resized, is kept in memory."""

SPELLINGS: dict[Part, tuple[str, ...]] = {
    "train": ("train", "training"),
    "valid": ("valid", "val", "validation"),
    "test": ("test", "testing"),
}


@final
class FolderSource:
    """The classes are the folders of train by the alphabet, unless `class_names` says otherwise; `size` is height and
    width."""

    def __init__(
        self, root: Path, *, size: tuple[int, int] | None, on_bad: OnBad, class_names: tuple[str, ...] | None = None
    ) -> None:
        _check_folder(root)
        self.root = root
        self.notes: list[str] = []
        self._on_bad = on_bad
        found = {part: [root / name for name in names if (root / name).is_dir()] for part, names in SPELLINGS.items()}
        for part, folders in found.items():
            if len(folders) > 1:
                raise DataError(f"{' and '.join(map(str, folders))} both hold {part} pictures; keep one of them.")
        self._folders = {part: folders[0] for part, folders in found.items() if folders}
        if "train" not in self._folders:
            if self._folders:
                raise DataError(f"{root} has {', '.join(self._folders)}, but no folder train.")
            self._folders = {"train": root}
        self.parts: tuple[Part, ...] = tuple(part for part in PARTS if part in self._folders)
        self.class_names = class_names or self._classes("train")
        self._paths: dict[Part, tuple[Path, ...]] = {}
        self._height, self._width = size or self._common_size()

    def read(self, part: Part, report: PartReport) -> Labelled:
        listed = list(self._files(part))
        paths, labels = [path for path, _ in listed], np.array([label for _, label in listed], np.int64)
        if not paths:
            raise DataError(f"The folder {self._folders[part]} holds no picture.")
        keep = len(paths) * self._height * self._width * 3 <= MOST_BYTES
        good = np.ones(len(paths), bool)
        array = np.empty((len(paths), self._height, self._width, 3) if keep else (0, 1, 1, 3), np.uint8)
        if keep or self._on_bad == "skip":
            for number, picture in enumerate(self._decoded(paths)):
                if isinstance(picture, DataError):
                    if self._on_bad == "refuse":
                        raise DataError(f"{picture} Or let such files be skipped and counted (`--data.on-bad skip`).")
                    report.skip(picture)
                    good[number] = False
                elif keep:
                    array[number] = picture
        report.pictures = int(good.sum())
        if not report.pictures:
            raise DataError(f"None of the {len(paths):,} pictures in {self._folders[part]} can be read.")
        kept = tuple(path for path, fine in zip(paths, good, strict=True) if fine)
        self._paths[part] = kept
        files = FilePictures(kept, self._height, self._width)
        return Labelled(ArrayPictures(array[good]) if keep else files, labels[good])

    def marks(self, labelled: Labelled) -> Sequence[bytes]:
        """The files' bytes where they were all read anyway; of a large set their names, which are quicker to go by."""
        paths = self._paths["train"]
        assert len(paths) == len(labelled)
        if isinstance(labelled.pictures, FilePictures):
            return [path.relative_to(self.root).as_posix().encode() for path in paths]
        return [path.read_bytes() for path in paths]

    def _classes(self, part: Part) -> tuple[str, ...]:
        folder = self._folders[part]
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
        if len(names) < 2:
            raise DataError(
                f"{folder} has {len(names)} folders, but each class of pictures needs one, and two classes are the "
                "least. Sort the pictures into a folder for each class."
            )
        return tuple(names)

    def _files(self, part: Part) -> Iterator[tuple[Path, int]]:
        """The picture files of a part with their classes, class by class, in the order of their names."""
        folder = self._folders[part]
        others: list[Path] = []
        suffixes = Image.registered_extensions()
        known = {name: number for number, name in enumerate(self.class_names)}
        for name in self._classes(part):
            if name not in known:
                close = nearest(name, known)
                meant = f" Did you mean {close}?" if close else ""
                raise DataError(f"{folder / name} is no class of the training pictures.{meant}")
            entries = sorted(entry for entry in (folder / name).rglob("*") if entry.is_file())
            visible = [entry for entry in entries if not entry.name.startswith(".")]
            pictures = [entry for entry in visible if entry.suffix.lower() in suffixes]
            others += [entry for entry in visible if entry.suffix.lower() not in suffixes]
            if not pictures and part == "train":
                raise DataError(f"The class {folder / name} holds no picture. Fill the folder, or remove it.")
            yield from ((path, known[name]) for path in pictures)
        if others:
            self.notes.append(
                f"{part}: {len(others):,} files are no pictures by their names and were passed over; first: "
                f"{others[0]}."
            )

    def _common_size(self) -> tuple[int, int]:
        """Height and width of all pictures, read off the heads of the files."""
        first: tuple[Path, tuple[int, int]] | None = None
        for part in self.parts:
            for path, _ in self._files(part):
                try:
                    with Image.open(path) as image:
                        size = image.size
                except OSError:
                    continue  # refused or skipped when it is decoded, where the sentence is a better one
                first = first or (path, size)
                if size != first[1]:
                    sizes = [f"{name} is {width} x {height}" for name, (width, height) in (first, (path, size))]
                    raise DataError(f"The pictures are not of one size: {', '.join(sizes)}. Choose a size for all.")
        self.notes.clear()
        if first is None:
            raise DataError(f"No picture below {self.root} can be read.")
        return first[1][1], first[1][0]

    def _decoded(self, paths: Sequence[Path]) -> Iterator[UInt8[np.ndarray, "_ _ 3"] | DataError]:
        """One after another; decoders let go of the interpreter, so a thread for each core keeps them all busy."""

        def attempt(path: Path) -> UInt8[np.ndarray, "_ _ 3"] | DataError:
            try:
                return read_file(path, self._height, self._width)
            except DataError as error:
                return error

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for start in range(0, len(paths), 256):  # so that no more than these wait in memory
                yield from pool.map(attempt, paths[start : start + 256])


def _check_folder(root: Path) -> None:
    if root.is_dir():
        return
    if root.exists():
        raise DataError(f"{root} is a file; name the folder that holds a folder for each class.")
    beside = [entry.name for entry in root.parent.iterdir() if entry.is_dir()] if root.parent.is_dir() else []
    close = nearest(root.name, beside)
    meant = f" Did you mean {root.parent / close}?" if close else ""
    raise DataError(f"There is no folder {root}.{meant}")
