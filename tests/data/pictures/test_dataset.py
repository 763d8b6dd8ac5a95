"""From a configuration to pictures: folders of one's own, parts that are held out, shares that are kept, the form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from pydantic import ValidationError

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.data.pictures import folder as folder_module
from regard.data.pictures.config import PictureConfig
from regard.data.pictures.dataset import PictureCorpus, PictureSet, load_pictures, measured
from regard.data.pictures.form import PictureForm
from regard.data.pictures.reading import ArrayPictures, FilePictures

CLASSES = ("ant", "bee", "cat")


def write_class(folder: Path, count: int, seed: int, height: int = 13, width: int = 13) -> None:
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    for number in range(count):
        picture = random.integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(picture).save(folder / f"{number:03}.png")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three classes of 31 pictures each, in one folder."""
    for number, name in enumerate(CLASSES):
        write_class(tmp_path / "mine" / name, 31, number)
    return tmp_path / "mine"


def own(root: Path, **options: Any) -> PictureConfig:
    return PictureConfig(source="folder", root=str(root), **options)


def contents(pictures: PictureSet) -> list[bytes]:
    return [picture.tobytes() for picture in pictures.read(np.arange(len(pictures)))]


def test_a_folder_of_classes_is_split(root: Path) -> None:
    corpus = load_pictures(own(root))
    assert corpus.form.class_names == CLASSES
    assert [part.counts.tolist() for part in (corpus.train, corpus.valid, corpus.test)] == [[25] * 3, [3] * 3, [3] * 3]
    parts = [set(contents(part)) for part in (corpus.train, corpus.valid, corpus.test)]
    assert len(set.union(*parts)) == sum(map(len, parts)) == 93
    assert len(corpus.report.notes) == 2
    assert "held out" in corpus.report.summary()
    assert "train: 75 pictures" in corpus.report.summary()
    json.dumps(corpus.report.to_json())


def test_the_split_hangs_on_the_pictures_alone(root: Path) -> None:
    first = load_pictures(own(root), parts=("valid",)).valid
    (root / "ant" / "000.png").rename(root / "ant" / "zebra.png")
    again = load_pictures(own(root, seed=7, fraction=0.2, size=13), parts=("valid",)).valid
    assert set(contents(first)) == set(contents(again))


def test_copies_are_not_told_apart(root: Path) -> None:
    for path in list((root / "bee").iterdir()):
        (root / "bee" / f"copy {path.name}").write_bytes(path.read_bytes())
    corpus = load_pictures(own(root))
    assert not set(contents(corpus.train)) & (set(contents(corpus.valid)) | set(contents(corpus.test)))


@pytest.mark.parametrize("name", ["valid", "val", "validation"])
def test_parts_of_their_own_are_used(tmp_path: Path, name: str) -> None:
    for seed, (part, count) in enumerate((("train", 23), (name, 5), ("test", 2))):
        for number, kind in enumerate(CLASSES):
            write_class(tmp_path / part / kind / "deeper", count, 10 * seed + number)
    corpus = load_pictures(own(tmp_path))
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [69, 15, 6]
    assert corpus.report.notes == ()


def test_only_what_is_missing_is_held_out(tmp_path: Path) -> None:
    for kind in CLASSES:
        write_class(tmp_path / "train" / kind, 20, 1)
        write_class(tmp_path / "test" / kind, 3, 2)
    corpus = load_pictures(own(tmp_path))
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [54, 6, 9]


def test_a_fraction_of_train_is_kept(root: Path) -> None:
    whole = load_pictures(own(root))
    half, fifth = (load_pictures(own(root, fraction=fraction)) for fraction in (0.5, 0.2))
    assert half.train.counts.tolist() == [12] * 3
    assert set(contents(fifth.train)) < set(contents(half.train)) < set(contents(whole.train))
    assert contents(half.valid) == contents(whole.valid)
    assert contents(half.test) == contents(whole.test)
    other = load_pictures(own(root, fraction=0.5, seed=2))
    assert set(contents(other.train)) != set(contents(half.train))
    assert half.form.mean != whole.form.mean


def test_large_sets_are_decoded_when_they_are_needed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = own(root, size=7)
    kept = load_pictures(config)
    monkeypatch.setattr(folder_module, "MOST_BYTES", 1000)
    lazy = load_pictures(config)
    assert isinstance(kept.train.pictures, ArrayPictures)
    assert isinstance(lazy.train.pictures, FilePictures)
    assert len(lazy.train) == 75
    everything = [
        sorted(picture for part in ("train", "valid", "test") for picture in contents(corpus.part(part)))
        for corpus in (kept, lazy)
    ]
    assert everything[0] == everything[1]
    assert lazy.train.pictures.shape == (7, 7, 3)


def test_bad_files_are_refused_or_skipped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = (root / "bee" / "001.png").read_bytes()
    (root / "bee" / "bad.png").write_bytes(good[:99])
    (root / "cat" / "empty.jpg").write_bytes(b"")
    with pytest.raises(DataError, match=r"bad\.png is damaged or cut off.*on-bad skip"):
        load_pictures(own(root))
    for most in (1 << 20, 100):
        monkeypatch.setattr(folder_module, "MOST_BYTES", most)
        report = load_pictures(own(root, on_bad="skip", size=13)).report
        assert report.parts["train"].skipped == 2
        assert "bad.png" in report.parts["train"].examples[0]
        assert "empty.jpg" in report.parts["train"].examples[1]
        assert "skipped 2 that cannot be read; first: The picture" in report.summary()
    form = PictureForm(13, 13, (0.5,) * 3, (0.2,) * 3, CLASSES)
    refusing = load_pictures(own(root), form, parts=("train",)).train
    with pytest.raises(DataError, match=r"bad\.png is damaged"):
        contents(refusing)


def test_other_files_are_passed_over_and_counted(root: Path) -> None:
    (root / "bee" / "notes.txt").write_text("x")
    (root / "bee" / ".DS_Store").write_text("x")
    (root / ".git").mkdir()
    corpus = load_pictures(own(root))
    assert any("1 files are no pictures by their names" in note and "notes.txt" in note for note in corpus.report.notes)


def test_pictures_of_many_sizes_need_one(root: Path) -> None:
    write_class(root / "dog", 29, 5, 17, 11)
    with pytest.raises(DataError, match=r"000\.png is 13 x 13, .*dog/000\.png is 11 x 17\. Choose a size"):
        load_pictures(own(root))
    corpus = load_pictures(own(root, size=5))
    assert (corpus.form.height, corpus.form.width, corpus.form.channels) == (5, 5, 3)


def test_a_folder_that_is_none_is_explained(root: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no folder .*mime\. Did you mean .*mine\?"):
        load_pictures(own(tmp_path / "mime"))
    with pytest.raises(DataError, match="is a file"):
        load_pictures(own(root / "ant" / "000.png"))
    with pytest.raises(DataError, match="has 0 folders"):
        load_pictures(own(root / "ant"))
    (root / "empty").mkdir()
    with pytest.raises(DataError, match=r"class .*empty holds no picture"):
        load_pictures(own(root))
    with pytest.raises(ConfigError, match="need its path"):
        load_pictures(PictureConfig(source="folder"))
    with pytest.raises(ConfigError, match="reads no folder"):
        load_pictures(PictureConfig(root=str(root)))


def test_folders_of_parts_are_checked(tmp_path: Path) -> None:
    for kind in CLASSES:
        write_class(tmp_path / "train" / kind, 5, 1)
        write_class(tmp_path / "valid" / kind.replace("cat", "cats"), 5, 2)
    with pytest.raises(DataError, match=r"valid/cats is no class of the training pictures\. Did you mean cat\?"):
        load_pictures(own(tmp_path))
    (tmp_path / "val").mkdir()
    with pytest.raises(DataError, match="both hold valid pictures"):
        load_pictures(own(tmp_path))
    (tmp_path / "train").rename(tmp_path / "other")
    (tmp_path / "val").rmdir()
    with pytest.raises(DataError, match="has valid, but no folder train"):
        load_pictures(own(tmp_path))


def test_a_class_too_small_to_hold_out(root: Path) -> None:
    write_class(root / "dog", 1, 5)
    with pytest.raises(DataError, match="The class 3 of the folder training pictures has 1 pictures"):
        load_pictures(own(root))


def test_the_form_is_measured_on_what_is_trained_on(root: Path) -> None:
    corpus = load_pictures(own(root))
    pixels = corpus.train.read(np.arange(75)).reshape(-1, 3) / 255
    assert corpus.form.mean == pytest.approx(pixels.mean(axis=0))
    assert corpus.form.std == pytest.approx(pixels.std(axis=0))
    images = corpus.form.normalise(corpus.train.read(np.arange(75)).transpose(0, 3, 1, 2))
    assert images.shape == (75, 3, 13, 13)
    assert images.mean(dim=(0, 2, 3)).abs().max() < 1e-5
    assert (images.std(dim=(0, 2, 3)) - 1).abs().max() < 1e-3
    assert np.array_equal(corpus.form.restore(images), corpus.train.read(np.arange(75)))


def test_one_grey_everywhere_is_not_blown_up() -> None:
    form = measured(ArrayPictures(np.full((3, 5, 7, 1), 51, np.uint8)), ("a", "b"))
    assert form.mean == pytest.approx((0.2,))
    assert form.std == (1 / 255,)
    assert form.normalise(np.full((1, 1, 5, 7), 52, np.uint8)).max() == pytest.approx(1, abs=1e-3)


def test_a_given_form_is_used_and_train_is_not_read(root: Path) -> None:
    form = PictureForm(13, 13, (0.5, 0.5, 0.5), (0.2, 0.2, 0.2), CLASSES)
    corpus = load_pictures(own(root), form, parts=("test",))
    assert corpus.form is form
    assert corpus.test.form is form
    with pytest.raises(AssertionError, match="train part was not asked for"):
        _ = corpus.train
    with pytest.raises(CheckpointError, match="reads pictures of 13 x 13 with 3 channels; those of test are 5 x 5 x 3"):
        load_pictures(own(root, size=5), form, parts=("test",))


def test_a_given_form_numbers_the_classes(root: Path) -> None:
    form = PictureForm(13, 13, (0.5,) * 3, (0.2,) * 3, ("cat", "ant", "bee"))
    one, other = (load_pictures(own(root), given, parts=("test",)).test for given in (None, form))
    assert contents(one)[:3] == contents(other)[:3]
    assert one.labels.tolist() == [0] * 3 + [1] * 3 + [2] * 3
    assert other.labels.tolist() == [1] * 3 + [2] * 3 + [0] * 3
    with pytest.raises(CheckpointError, match=r"knows 3 classes \(cat, ant, bee\), the pictures 10 others \(circle"):
        load_pictures(PictureConfig(num_pictures=10), form, parts=("test",))


def test_the_form_is_kept_as_json() -> None:
    form = PictureForm(5, 7, (0.25, 0.5, 0.75), (0.1, 0.2, 0.3), ("a", "b"))
    assert PictureForm.from_json(json.loads(json.dumps(form.to_json()))) == form
    assert (form.channels, form.num_classes) == (3, 2)
    for wrong in ({"height": "x"}, {"std": [0, 1, 1]}, {"mean": [0.1]}, {"width": 0}):
        with pytest.raises(CheckpointError):
            PictureForm.from_json({**form.to_json(), **wrong})
    with pytest.raises(CheckpointError, match="class_names"):
        PictureForm.from_json({"height": 5, "width": 7, "mean": [0.5], "std": [0.5]})


def test_a_form_fits_any_picture() -> None:
    grey = PictureForm(5, 7, (0.5,), (0.5,), ("a", "b"))
    assert grey.fit(np.full((31, 17, 3), 100, np.uint8)).tolist() == [[[100]] * 7] * 5
    assert torch.equal(grey.normalise(np.full((1, 1, 5, 7), 255, np.uint8)), torch.ones(1, 1, 5, 7))


def test_shapes_are_the_default() -> None:
    corpus: PictureCorpus = load_pictures(PictureConfig(num_pictures=211, size=17))
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [211, 21, 21]
    assert corpus.form.class_names[:3] == ("circle", "square", "triangle")
    assert corpus.train.pictures.shape == (17, 17, 3)
    assert corpus.report.notes == ()
    named = load_pictures(PictureConfig(num_pictures=50, size=17, classes="shape_and_colour"))
    assert named.form.num_classes == 100
    thin = load_pictures(PictureConfig(num_pictures=211, size=17, fraction=0.5))
    assert set(contents(thin.train)) < set(contents(corpus.train))


def test_config_round_trip_defaults_and_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = PictureConfig(source="folder", root="mine", size=64)
    assert config.absolute().root == f"{tmp_path}/mine"
    assert PictureConfig.model_validate_json(config.absolute().model_dump_json()) == config.absolute()
    assert PictureConfig().absolute() == PictureConfig()
    usual = {name: PictureConfig(source=name) for name in ("shapes", "cifar10", "mnist", "svhn")}
    assert {name: (config.padding, config.flips) for name, config in usual.items()} == {
        "shapes": (0, True),
        "cifar10": (4, True),
        "mnist": (2, False),
        "svhn": (2, False),
    }
    assert (config.padding, config.flips) == (8, True)
    assert (PictureConfig(source="cifar10", crop_padding=0, flip=False).padding) == 0
    for wrong in ({"fraction": 0}, {"size": 0}, {"batch_size": 0}, {"rand_augment_magnitude": 31}, {"source": "x"}):
        with pytest.raises(ValidationError):
            PictureConfig(**wrong)
