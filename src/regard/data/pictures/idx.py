"""MNIST and Fashion-MNIST: 60,000 + 10,000 grey pictures of 28 x 28 pixels, in IDX files (LeCun et al., 1998; Xiao et
al., 2017).

An IDX file is two zero bytes, the type (8 is unsigned bytes), the number of axes, for each axis its length in four
bytes, the highest first, and then the values. The files are found plain or as gzip.
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import UInt8

from regard.core.errors import DataError
from regard.data.download import DataFile, Fetch, find_or_fetch
from regard.data.pictures.reading import ArrayPictures, Labelled, PartReport
from regard.data.sources import Part

_UNSIGNED_BYTES = 8
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class IdxFiles:
    """One of the two sets: for each part the file of pictures and the file of classes."""

    folder: str
    mirrors: tuple[str, ...]
    parts: Mapping[Part, tuple[DataFile, DataFile]]
    class_names: tuple[str, ...]


MNIST = IdxFiles(
    folder="MNIST/raw",
    mirrors=(
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    ),
    parts={
        "train": (
            DataFile(
                "train-images-idx3-ubyte.gz",
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            ),
            DataFile(
                "train-labels-idx1-ubyte.gz",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            ),
        ),
        "test": (
            DataFile(
                "t10k-images-idx3-ubyte.gz",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            ),
            DataFile(
                "t10k-labels-idx1-ubyte.gz",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        ),
    },
    class_names=tuple("0123456789"),
)

FASHION_MNIST = IdxFiles(
    folder="FashionMNIST/raw",
    mirrors=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/"
        "b2617bb6d3ffa2e429640350f613e3291e10b141/data/fashion",
    ),
    parts={
        "train": (
            DataFile("train-images-idx3-ubyte.gz", "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
            DataFile("train-labels-idx1-ubyte.gz", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        ),
        "test": (
            DataFile("t10k-images-idx3-ubyte.gz", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
            DataFile("t10k-labels-idx1-ubyte.gz", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
        ),
    },
    class_names=(
        "t-shirt",
        "trouser",
        "pullover",
        "dress",
        "coat",
        "sandal",
        "shirt",
        "sneaker",
        "bag",
        "ankle boot",
    ),
)


@final
class IdxSource:
    """Reads the files of one of the two sets; `fetch` replaces the download, for tests."""

    parts: tuple[Part, ...] = ("train", "test")

    def __init__(self, files: IdxFiles, *, fetch: Fetch | None = None) -> None:
        self.files = files
        self.class_names = files.class_names
        self.notes: list[str] = []
        self._fetch = fetch

    def read(self, part: Part, report: PartReport) -> Labelled:
        paths = [self._find(file) for file in self.files.parts[part]]
        pictures, labels = read_pictures(*paths, num_classes=len(self.class_names))
        report.pictures = len(labels)
        return Labelled(ArrayPictures(pictures), labels)

    def marks(self, labelled: Labelled) -> Sequence[bytes]:
        assert isinstance(labelled.pictures, ArrayPictures)
        return [picture.tobytes() for picture in labelled.pictures.array]

    def _find(self, file: DataFile) -> Path:
        """An unpacked file whose checksum is not known here is taken on the word of the user's folder, and noted."""
        root = os.environ.get("REGARD_DATA")
        if root and file.unpacked_sha256 is None:
            path = Path(root).expanduser() / self.files.folder / file.path.removesuffix(".gz")
            if path.is_file() and not path.with_name(file.path).is_file():
                self.notes.append(f"{path} was read without a checksum, since only that of the packed file is known.")
                return path
        return find_or_fetch(self.files.folder, [file], self.files.mirrors, fetch=self._fetch)[0]


def read_pictures(
    pictures: Path, labels: Path, *, num_classes: int
) -> tuple[UInt8[np.ndarray, "pictures height width 1"], np.ndarray]:
    """Both files of a part, checked against each other."""
    images, classes = read_idx(pictures, axes=3), read_idx(labels, axes=1).astype(np.int64)
    if len(images) != len(classes):
        raise DataError(f"{pictures} has {len(images):,} pictures, but {labels} has {len(classes):,} classes.")
    wrong = np.flatnonzero(classes >= num_classes)
    if len(wrong):
        raise DataError(
            f"{labels}, byte {8 + int(wrong[0]):,} (unpacked): the class of picture {int(wrong[0]):,} is "
            f"{classes[wrong[0]]}, but there are only {num_classes}. Fetch the file anew."
        )
    return images[..., None], classes


def read_idx(path: Path, *, axes: int) -> UInt8[np.ndarray, "..."]:
    """An array of unsigned bytes with so many axes."""
    content = path.read_bytes()
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{path} cannot be unpacked: {error}. Fetch it anew.") from error
    magic = bytes([0, 0, _UNSIGNED_BYTES, axes])
    header = 4 + 4 * axes
    if content[:4] != magic:
        raise DataError(
            f"{path}, byte 0: an IDX file of bytes with {axes} axes starts with {magic.hex(' ')}, this one with "
            f"{content[:4].hex(' ') or 'nothing'}. Fetch the file anew."
        )
    if len(content) < header:
        raise DataError(f"{path} ends at byte {len(content)}, within its header of {header} bytes. Fetch it anew.")
    shape = [int.from_bytes(content[start : start + 4], "big") for start in range(4, header, 4)]
    expected = header + math.prod(shape)
    if len(content) != expected or 0 in shape:
        size = " x ".join(map(str, shape))
        raise DataError(
            f"{path} has {len(content):,} bytes unpacked, but its header, which says {size}, asks for {expected:,}. "
            "Fetch the file anew."
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)
