"""The public sets' files: read as they are published, found or fetched, and refused with file and place if damaged."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.core.errors import DataError
from regard.data.download import DataFile
from regard.data.pictures import svhn
from regard.data.pictures.cifar import CIFAR10, CIFAR100, CifarFiles, CifarSource, read_records
from regard.data.pictures.config import PictureConfig
from regard.data.pictures.dataset import load_pictures
from regard.data.pictures.idx import FASHION_MNIST, MNIST, IdxFiles, IdxSource, read_idx, read_pictures
from regard.data.pictures.reading import ArrayPictures, PartReport
from regard.data.pictures.svhn import SvhnSource, read_matlab

REAL_DATA = Path(os.environ.get("REGARD_DATA") or "/nowhere")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pictures(count: int, height: int, width: int, channels: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, channels), np.uint8)


def records(array: np.ndarray, labels: list[int], coarse: bool = False) -> bytes:
    planes = array.transpose(0, 3, 1, 2).reshape(len(array), -1)
    heads = [bytes([0, label] if coarse else [label]) for label in labels]
    return b"".join(head + plane.tobytes() for head, plane in zip(heads, planes, strict=True))


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(length.to_bytes(4, "big") for length in array.shape)
    return head + array.tobytes()


# --- CIFAR -----------------------------------------------------------------------------------------------------


def small_cifar() -> tuple[CifarFiles, bytes, dict[str, bytes], np.ndarray]:
    """A set of seven pictures in three files, and the archive that holds them."""
    array = pictures(7, 32, 32, 3)
    contents = {
        "data_batch_1.bin": records(array[:2], [3, 9]),
        "data_batch_2.bin": records(array[2:5], [0, 1, 2]),
        "test_batch.bin": records(array[5:], [8, 4]),
    }
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in {**contents, "../escape.bin": b"evil"}.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    files = [DataFile(name, sha256(content)) for name, content in contents.items()]
    archive = DataFile("cifar-10-binary.tar.gz", sha256(stream.getvalue()))
    changed = replace(CIFAR10, archive=archive, parts={"train": files[:2], "test": files[2:]})
    return changed, stream.getvalue(), contents, array


def test_cifar_comes_out_of_its_archive(cache: Path) -> None:
    files, archive, _, array = small_cifar()
    asked = []

    def fetch(url: str, path: Path, digest: str) -> None:
        asked.append(url)
        path.write_bytes(archive)

    source, report = CifarSource(files, fetch=fetch), PartReport()
    train, test = source.read("train", report), source.read("test", PartReport())
    assert np.array_equal(train.pictures.read(np.arange(5)), array[:5])
    assert train.labels.tolist() == [3, 9, 0, 1, 2]
    assert np.array_equal(test.pictures.read(np.array([1, 0])), array[[6, 5]])
    assert asked == ["https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"]
    assert report.pictures == 5
    assert sorted(path.name for path in (cache / "cifar-10-batches-bin").iterdir()) == sorted(
        file.path for part in files.parts.values() for file in part
    )


def test_cifar_in_the_users_folder_is_used_as_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, _, contents, array = small_cifar()
    (tmp_path / "cifar-10-batches-bin").mkdir()
    for name, content in contents.items():
        (tmp_path / "cifar-10-batches-bin" / name).write_bytes(content)
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    assert np.array_equal(CifarSource(files).read("test", PartReport()).pictures.read(np.arange(2)), array[5:])


def test_an_archive_without_the_file_says_so() -> None:
    files, archive, _, _ = small_cifar()
    missing = replace(files, parts={"train": [DataFile("data_batch_6.bin", "0" * 64)]})
    with pytest.raises(DataError, match=r"has no cifar-10-batches-bin/data_batch_6\.bin"):
        CifarSource(missing, fetch=lambda url, path, digest: path.write_bytes(archive)).read("train", PartReport())
    torn = replace(files, archive=DataFile("cifar-10-binary.tar.gz", sha256(archive[:-999])))
    with pytest.raises(DataError, match=r"cifar-10-binary\.tar\.gz cannot be unpacked"):
        CifarSource(torn, fetch=lambda url, path, digest: path.write_bytes(archive[:-999])).read("test", PartReport())


def test_the_fine_class_is_cifar_100s(tmp_path: Path) -> None:
    array = pictures(3, 32, 32, 3)
    (tmp_path / "train.bin").write_bytes(records(array, [99, 0, 50], coarse=True))
    read, labels = read_records(tmp_path / "train.bin", CIFAR100)
    assert np.array_equal(read, array)
    assert labels.tolist() == [99, 0, 50]
    assert len(set(CIFAR100.class_names)) == 100
    assert list(CIFAR100.class_names) == sorted(CIFAR100.class_names)


def test_damaged_cifar_is_refused_with_its_place(tmp_path: Path) -> None:
    content = records(pictures(3, 32, 32, 3), [1, 10, 2])
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.bin, byte 3,073: the class of picture 1 is 10, but there are only 10"):
        read_records(tmp_path / "a.bin", CIFAR10)
    (tmp_path / "b.bin").write_bytes(content[:-5])
    with pytest.raises(DataError, match=r"b\.bin has 9,214 bytes.*starts at byte 6,146 and has 3,068"):
        read_records(tmp_path / "b.bin", CIFAR10)
    (tmp_path / "c.bin").write_bytes(b"")
    with pytest.raises(DataError, match=r"c\.bin has 0 bytes"):
        read_records(tmp_path / "c.bin", CIFAR10)


# --- MNIST -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_idx_files_plain_and_packed(tmp_path: Path, packed: bool) -> None:
    array, labels = pictures(5, 7, 11, 1), np.array([0, 9, 3, 3, 1], np.uint8)
    pack = gzip.compress if packed else bytes
    (tmp_path / "x").write_bytes(pack(idx(array[..., 0])))
    (tmp_path / "y").write_bytes(pack(idx(labels)))
    read, classes = read_pictures(tmp_path / "x", tmp_path / "y", num_classes=10)
    assert np.array_equal(read, array)
    assert classes.tolist() == labels.tolist()


def test_damaged_idx_is_refused_with_its_place(tmp_path: Path) -> None:
    good, labels, path = idx(pictures(5, 7, 11, 1)[..., 0]), idx(np.array([0, 9, 3, 10, 1], np.uint8)), tmp_path / "x"
    for content, words in (
        (good[:-1], "x has 400 bytes unpacked, but its header, which says 5 x 7 x 11, asks for 401"),
        (good + b"1", "has 402 bytes"),
        (b"\0\0\x08\x01" + good[4:], "x, byte 0: .* starts with 00 00 08 03, this one with 00 00 08 01"),
        (b"\0\0\x0d\x03" + good[4:], "this one with 00 00 0d 03"),
        (good[:9], "x ends at byte 9, within its header of 16"),
        (b"", "this one with nothing"),
        (gzip.compress(good)[:-9], "x cannot be unpacked"),
        (idx(np.zeros((0, 7, 11), np.uint8)), "0 x 7 x 11"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=words):
            read_idx(path, axes=3)
    path.write_bytes(good)
    (tmp_path / "y").write_bytes(labels)
    with pytest.raises(DataError, match=r"y, byte 11 \(unpacked\): the class of picture 3 is 10"):
        read_pictures(path, tmp_path / "y", num_classes=10)
    (tmp_path / "y").write_bytes(idx(np.zeros(4, np.uint8)))
    with pytest.raises(DataError, match=r"has 5 pictures, but .*y has 4 classes"):
        read_pictures(path, tmp_path / "y", num_classes=10)


def test_idx_files_are_found_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array, labels = pictures(5, 28, 28, 1), np.array([0, 9, 3, 3, 1], np.uint8)
    (tmp_path / "FashionMNIST" / "raw").mkdir(parents=True)
    for name, content in (("x-ubyte", idx(array[..., 0])), ("y-ubyte", idx(labels))):
        (tmp_path / "FashionMNIST" / "raw" / name).write_bytes(content)
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    parts = {"train": (DataFile("x-ubyte.gz", "0" * 64), DataFile("y-ubyte.gz", "0" * 64))}
    source = IdxSource(IdxFiles("FashionMNIST/raw", (), parts, tuple("0123456789")))
    assert np.array_equal(source.read("train", PartReport()).pictures.read(np.arange(5)), array)
    assert len(source.notes) == 2
    assert "without a checksum" in source.notes[0]


def test_without_a_network_the_public_sets_say_what_to_do() -> None:
    def no_network(url: str, path: Path, digest: str) -> None:
        raise OSError("no network")

    for source in (
        CifarSource(CIFAR10, fetch=no_network),
        CifarSource(CIFAR100, fetch=no_network),
        IdxSource(MNIST, fetch=no_network),
        IdxSource(FASHION_MNIST, fetch=no_network),
        SvhnSource(fetch=no_network),
    ):
        with pytest.raises(DataError, match="REGARD_DATA"):
            source.read("test", PartReport())


def test_checksums_are_well_formed() -> None:
    files = [
        file for kind in (CIFAR10, CIFAR100, MNIST, FASHION_MNIST) for part in kind.parts.values() for file in part
    ]
    files += [CIFAR10.archive, CIFAR100.archive, *svhn.FILES.values()]
    digests = [digest for file in files for digest in (file.sha256, file.unpacked_sha256) if digest is not None]
    assert len(set(digests)) == len(digests) == 24
    assert all(len(digest) == 64 and set(digest) <= set("0123456789abcdef") for digest in digests)


# --- SVHN ------------------------------------------------------------------------------------------------------


def test_svhn_as_published(tmp_path: Path) -> None:
    scipy = pytest.importorskip("scipy.io")
    array, path = pictures(5, 32, 32, 3), tmp_path / "test_32x32.mat"
    scipy.savemat(path, {"X": array.transpose(1, 2, 3, 0), "y": np.array([[1], [10], [9], [2], [10]], np.uint8)})
    read, labels = read_matlab(path)
    assert np.array_equal(read, array)
    assert labels.tolist() == [1, 0, 9, 2, 0]
    scipy.savemat(path, {"X": array.transpose(1, 2, 3, 0), "y": np.array([[1], [10], [9], [2], [11]], np.uint8)})
    with pytest.raises(DataError, match=r"y\[4\] is 11"):
        read_matlab(path)
    scipy.savemat(path, {"X": array, "y": np.ones((5, 1), np.uint8)})
    with pytest.raises(DataError, match=r"X is uint8 of \(5, 32, 32, 3\)"):
        read_matlab(path)
    scipy.savemat(path, {"Z": array})
    with pytest.raises(DataError, match="has no X and y, but Z"):
        read_matlab(path)
    path.write_bytes(path.read_bytes()[:99])
    with pytest.raises(DataError, match="cannot be read as a MATLAB file"):
        read_matlab(path)


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with pytest.raises(DataError, match="pip install scipy"):
        read_matlab(Path("x.mat"))


def test_digits_are_cut_from_the_prepared_subset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svhn, "TILES", 2)
    folder = tmp_path / "svhn"
    folder.mkdir()
    crops = np.zeros((5, 64, 64, 3), np.uint8)
    crops[3, 20:40, 8:18, 0] = 255
    crops[4, :, 40:] = 200
    for number in range(2):
        tiles = np.zeros((4, 64, 64, 3), np.uint8)
        tiles[: len(crops[4 * number :][:4])] = crops[4 * number :][:4]
        mosaic = tiles.reshape(2, 2, 64, 64, 3).transpose(0, 2, 1, 3, 4).reshape(128, 128, 3)
        Image.fromarray(mosaic).save(folder / f"test_{number}.jpg", quality=100, subsampling=0)
    digits, boxes = np.full((5, 5), -1, np.int8), np.zeros((5, 5, 4), np.float16)
    digits[:, 0], boxes[:, 0] = [1, 2, 3, 0, 7], [8, 20, 18, 40]
    digits[4, 1], boxes[4, 1] = 9, [44, 0, 64, 64]
    np.savez(folder / "labels.npz", test_digits=digits, test_boxes64=boxes)
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    source, report = SvhnSource(), PartReport()
    found = source.read("test", report)
    assert found.labels.tolist() == [1, 2, 3, 0, 7, 9]
    assert report.pictures == 6
    digit = found.pictures.read(np.array([3]))[0]
    assert digit[4:-4, 11:21, 0].min() > 200
    assert digit[:, :5].max() < 40
    assert found.pictures.read(np.array([5]))[0, :, 22:].min() > 180
    assert "not the published" in source.notes[0]


# --- the real ones ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(not (REAL_DATA / "cifar-10-batches-bin").is_dir(), reason="no CIFAR-10 in REGARD_DATA")
def test_the_real_cifar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_DATA", str(REAL_DATA))
    corpus = load_pictures(PictureConfig(source="cifar10", fraction=0.1))
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [4500, 5000, 10_000]
    assert corpus.train.counts.tolist() == [450] * 10
    assert corpus.test.counts.tolist() == [1000] * 10
    assert corpus.form.mean == pytest.approx((0.4914, 0.4822, 0.4465), abs=0.01)
    assert isinstance(corpus.train.pictures, ArrayPictures)
    trained = {picture.tobytes() for picture in corpus.train.pictures.array}
    assert not trained & {picture.tobytes() for picture in corpus.valid.read(np.arange(5000))}


@pytest.mark.skipif(not (REAL_DATA / "MNIST" / "raw").is_dir(), reason="no MNIST in REGARD_DATA")
def test_the_real_mnist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_DATA", str(REAL_DATA))
    corpus = load_pictures(PictureConfig(source="mnist"))
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [54_001, 5999, 10_000]
    assert corpus.test.labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert corpus.form.mean == pytest.approx((0.1307,), abs=0.001)
    assert corpus.form.std == pytest.approx((0.3081,), abs=0.001)


@pytest.mark.skipif(not (REAL_DATA / "svhn" / "labels.npz").is_file(), reason="no SVHN in REGARD_DATA")
def test_the_prepared_svhn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_DATA", str(REAL_DATA))
    found = SvhnSource().read("test", PartReport())
    assert len(found) > 3600
    assert set(found.labels.tolist()) == set(range(10))
