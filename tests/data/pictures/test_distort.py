from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from regard.core.errors import ConfigError
from regard.data.pictures.batches import PictureBatches
from regard.data.pictures.config import PictureConfig
from regard.data.pictures.dataset import load_pictures
from regard.data.pictures.distort import DistortedPictures, turned
from regard.data.pictures.draws import Draws
from regard.data.pictures.reading import ArrayPictures

NAMES = ["rotated_scaled", "translated", "translated_cluttered"]


def digits(count: int = 11) -> ArrayPictures:
    """Bright on black with a rim, as digits are."""
    array = np.zeros((count, 28, 28, 1), np.uint8)
    array[:, 7:22, 9:20] = np.random.default_rng(0).integers(90, 256, (count, 15, 11, 1))
    return ArrayPictures(array)


@pytest.mark.parametrize("name", NAMES)
def test_a_number_always_looks_the_same(name: str) -> None:
    pictures = DistortedPictures.of(digits(), name, 3)
    assert pictures.shape == {"rotated_scaled": (42, 42, 1)}.get(name, (60, 60, 1))
    together = pictures.read(np.arange(11))
    assert together.shape == (11, *pictures.shape)
    assert together.dtype == np.uint8
    if name != "translated_cluttered":  # whose scraps are those of the pictures that are selected
        some = pictures.select(np.array([7, 2]))
        assert np.array_equal(some.read(np.array([1, 0])), together[[2, 7]])
    assert np.array_equal(pictures.read(np.array([5])), together[5:6])
    assert not np.array_equal(DistortedPictures.of(digits(), name, 4).read(np.arange(11)), together)


def test_moving_loses_nothing() -> None:
    plain, moved = digits(), DistortedPictures.of(digits(), "translated", 1).read(np.arange(11))
    for one, other in zip(plain.array, moved, strict=True):
        assert sorted(one[one > 0]) == sorted(other[other > 0])
    corners = {tuple(np.argwhere(picture[..., 0])[0]) for picture in moved}
    assert len(corners) > 5, "digits are moved to different places"


def test_scraps_are_added_and_nothing_is_hidden() -> None:
    moved = DistortedPictures.of(digits(), "translated_cluttered", 1).read(np.arange(11))
    for one, other in zip(digits().array, moved, strict=True):
        assert (other > 0).sum() > (one > 0).sum()
    assert np.mean([(picture > 0).sum() for picture in moved]) < 15 * 11 + 4 * 8 * 8


def test_turning_is_scipys() -> None:
    """The same draws with an affine map of scipy, away from edges, where bilinear samples are those of both."""
    picture = ndimage.gaussian_filter(np.random.default_rng(1).normal(size=(28, 28)), 2)
    picture = np.pad(((picture - picture.min()) / np.ptp(picture) * 255)[6:-6, 6:-6], 6).astype(np.uint8)
    numbers = np.arange(5)
    found = turned(np.repeat(picture[None, :, :, None], 5, axis=0), 42, 42, Draws(9, numbers))
    draws = Draws(9, numbers)
    angles = np.deg2rad(45) * (2 * draws.uniform() - 1)
    scales = 0.7 + 0.5 * draws.uniform()
    downs, rights = ((2 * draws.uniform() - 1) * np.maximum(0, 42 - scales * 28) / 2 for _ in range(2))
    for angle, scale, down, right, seen in zip(angles, scales, downs, rights, found, strict=True):
        matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) / scale
        offset = 13.5 - matrix @ np.array([20.5 + down, 20.5 + right])
        expected = ndimage.affine_transform(picture.astype(float), matrix, offset, (42, 42), order=1)
        assert np.abs(expected - seen[..., 0])[2:-2, 2:-2].max() <= 1.5


@pytest.mark.parametrize("name", NAMES)
def test_training_pictures_change_from_epoch_to_epoch_and_others_do_not(name: str) -> None:
    corpus = load_pictures(PictureConfig(num_pictures=20, size=28, distortion=name))
    assert (corpus.form.height, corpus.form.width) == corpus.train.pictures.shape[:2]
    batches = PictureBatches.of(PictureConfig(num_pictures=20, distortion=name, batch_size=20), corpus.train)
    first, second = batches.collate(np.sort(batches.epoch(0)[0])), batches.collate(np.sort(batches.epoch(1)[0]))
    assert not np.array_equal(first.images, second.images)
    assert np.array_equal(first.images, batches.collate(np.sort(batches.epoch(0)[0])).images)
    assert np.array_equal(corpus.test.read(np.arange(2)), corpus.test.read(np.arange(2)))


def test_files_cannot_be_distorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.pictures.folder.MOST_BYTES", 0)

    for part in ("train", "valid", "test"):
        for kind in ("a", "b"):
            (tmp_path / part / kind).mkdir(parents=True)
            Image.new("RGB", (9, 9)).save(tmp_path / part / kind / "one.png")
    with pytest.raises(ConfigError, match="Only pictures in memory can be distorted"):
        load_pictures(PictureConfig(source="folder", root=str(tmp_path), distortion="translated"))
