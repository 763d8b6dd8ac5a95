"""CIFAR-10 and CIFAR-100: 50,000 + 10,000 pictures of 32 x 32 pixels (Krizhevsky, 2009), in the binary layout.

A record is the class (for CIFAR-100 the coarse class, then the fine one, which is the one used here) in a byte each,
then 1,024 bytes of red, of green and of blue, row by row. The layout for Python is a pickle, which may run any program
of whoever made it, and is not read.

The files are looked for in `REGARD_DATA` under the folder's published name, then taken from the published archive.
"""

from __future__ import annotations

import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int64, UInt8

from regard.core.errors import DataError
from regard.core.files import atomic_path
from regard.data.download import DataFile, Fetch, find_or_fetch
from regard.data.pictures.reading import ArrayPictures, Labelled, PartReport
from regard.data.sources import Part

MIRRORS = ("https://www.cs.toronto.edu/~kriz",)

_SIDE = 32
_PIXELS = 3 * _SIDE * _SIDE


@dataclass(frozen=True)
class CifarFiles:
    """One of the two sets as it is published."""

    folder: str
    archive: DataFile
    parts: Mapping[Part, Sequence[DataFile]]
    labels_per_record: int
    class_names: tuple[str, ...]


CIFAR10 = CifarFiles(
    folder="cifar-10-batches-bin",
    archive=DataFile("cifar-10-binary.tar.gz", "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
    parts={
        "train": (
            DataFile("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
            DataFile("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
            DataFile("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
            DataFile("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
            DataFile("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
        ),
        "test": (DataFile("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),),
    },
    labels_per_record=1,
    class_names=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
)

_FINE_CLASSES = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""

CIFAR100 = CifarFiles(
    folder="cifar-100-binary",
    archive=DataFile("cifar-100-binary.tar.gz", "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"),
    parts={
        "train": (DataFile("train.bin", "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"),),
        "test": (DataFile("test.bin", "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"),),
    },
    labels_per_record=2,
    class_names=tuple(_FINE_CLASSES.split()),
)


@final
class CifarSource:
    """Reads the files of one of the two sets; `fetch` brings the archive, for tests."""

    parts: tuple[Part, ...] = ("train", "test")

    def __init__(self, files: CifarFiles, *, fetch: Fetch | None = None) -> None:
        self.files = files
        self.class_names = files.class_names
        self.notes: list[str] = []
        self._fetch = fetch

    def read(self, part: Part, report: PartReport) -> Labelled:
        wanted = self.files.parts[part]
        paths = find_or_fetch(self.files.folder, wanted, MIRRORS, fetch=self._from_archive)
        read = [read_records(path, self.files) for path in paths]
        pictures, labels = (np.concatenate(arrays) for arrays in zip(*read, strict=True))
        report.pictures = len(labels)
        return Labelled(ArrayPictures(pictures), labels)

    def marks(self, labelled: Labelled) -> Sequence[bytes]:
        assert isinstance(labelled.pictures, ArrayPictures)
        return [picture.tobytes() for picture in labelled.pictures.array]

    def _from_archive(self, url: str, path: Path, sha256: str) -> None:
        """Unpacks all files of the set beside `path`; their own checksums are then looked at by who asked."""
        files = self.files
        (archive,) = find_or_fetch("cifar", [files.archive], MIRRORS, fetch=self._fetch)
        names = {f"{files.folder}/{file.path}": file.path for part in files.parts.values() for file in part}
        try:
            with tarfile.open(archive) as tar:
                for member in tar:
                    if member.name in names and (stream := tar.extractfile(member)) is not None:
                        with atomic_path(path.with_name(names[member.name])) as temporary:
                            temporary.write_bytes(stream.read())
        except (tarfile.TarError, EOFError) as error:
            raise DataError(f"The archive {archive} cannot be unpacked: {error}. Remove it.") from error
        if not path.is_file():
            raise DataError(f"The archive {archive} has no {files.folder}/{path.name}.")


def read_records(
    path: Path, files: CifarFiles
) -> tuple[UInt8[np.ndarray, "pictures 32 32 3"], Int64[np.ndarray, " pictures"]]:
    """The pictures and classes of one file; a wrong length or class is told with its place in the file."""
    content = np.frombuffer(path.read_bytes(), np.uint8)
    record = files.labels_per_record + _PIXELS
    surplus = len(content) % record
    if not len(content) or surplus:
        raise DataError(
            f"{path} has {len(content):,} bytes, which is no whole number of records of {record:,} bytes: the last one "
            f"starts at byte {len(content) - surplus:,} and has {surplus:,}. Fetch the file anew."
        )
    records = content.reshape(-1, record)
    labels = records[:, files.labels_per_record - 1].astype(np.int64)
    wrong = np.flatnonzero(labels >= len(files.class_names))
    if len(wrong):
        number = int(wrong[0])
        raise DataError(
            f"{path}, byte {number * record + files.labels_per_record - 1:,}: the class of picture {number:,} is "
            f"{labels[number]}, but there are only {len(files.class_names)}. Fetch the file anew."
        )
    planes = records[:, files.labels_per_record :].reshape(-1, 3, _SIDE, _SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels
