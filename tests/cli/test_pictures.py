"""The commands on runs whose task is classification."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
import torchvision
from PIL import Image
from timm.models import save_for_hf
from torchvision.models.resnet import BasicBlock

from regard.recording import Recording

from .conftest import Command


@pytest.fixture
def run(trained: dict[str, Path]) -> Path:
    return trained["vit-shapes"]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "cat.png"
    pixels = np.random.default_rng(0).integers(0, 256, (37, 53, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def test_training_on_a_folder_of_ones_own(regard: Command, tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    for name in ("cats", "dogs"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        for number in range(20):
            pixels = generator.integers(0, 256, (41, 31, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "mine" / name / f"{number}.jpg")
    options = ("--data.root", "mine", "--data.size", "32", "--data.batch-size", "8", "--training.max-steps", "2")
    sizes = ("--model.width", "16", "--model.num-blocks", "1", "--model.image-size", "32", "--run", "own")
    result = regard("train", "vit-shapes", *options, *sizes, "--json")
    assert result.code == 0, result.err
    assert "--data.source is folder and no longer shapes" in result.err
    assert result.json["validation"]["class_names"] == ["cats", "dogs"]
    assert json.loads(Path("own/config.json").read_text())["config"]["data"]["root"] == str(tmp_path / "mine")
    assert regard("predict", "own", "mine/cats/0.jpg", "--json").json["class"] in ("cats", "dogs")


def test_measuring(regard: Command, run: Path) -> None:
    measured = regard("eval", run, "--json").json
    assert measured["part"] == "test"
    assert sum(map(sum, measured["confusion"])) == measured["pictures"]
    text = regard("eval", run, "--part", "valid").out
    assert "accuracy, per cent" in text
    assert "most taken for" in text


def test_predicting(regard: Command, run: Path, picture: Path) -> None:
    found = regard("predict", run, picture, "--top", "3", "--json").json
    assert found["picture"] == str(picture)
    probabilities = [each["probability"] for each in found["classes"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert len(probabilities) == 3
    two = regard("predict", run, picture, picture).out.splitlines()
    assert len(two) == 2
    assert two[0] == two[1]


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA", "CMYK", "1"])
def test_pictures_of_every_kind(regard: Command, run: Path, picture: Path, tmp_path: Path, mode: str) -> None:
    path = tmp_path / ("other.tif" if mode == "CMYK" else "other.png")
    Image.open(picture).convert(mode).save(path)
    assert regard("predict", run, path).code == 0
    assert regard("look", run, path, "--out", "look.png").code == 0


def test_a_look(regard: Command, run: Path, picture: Path) -> None:
    found = regard("look", run, picture, "--out", "a.png", "b.svg", "c.regard", "--json").json
    assert found["files"] == ["a.png", "b.svg", "c.regard"]
    assert all(Path(name).stat().st_size > 1000 for name in found["files"])
    recording = Recording.load("c.regard")
    assert recording.addresses == found["taps"]
    assert recording.outputs["predictions"][0]["class"] == found["class"]


def test_the_picture_goes_into_the_run_without_a_name(
    regard: Command, trained: dict[str, Path], picture: Path, tmp_path: Path
) -> None:
    own = shutil.copytree(trained["vit-shapes"], tmp_path / "moved")
    assert regard("look", own, picture, "--query", "3", "--dark").code == 0
    assert (own / "look" / "cat.png").exists()
    assert regard("look", own, picture, "--tap", "encoder.*", "--out", "all.pdf").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--tap", "encoder.0.atention"], 1, "Did you mean 'encoder.0.attention'?"),
        (["--out", "a.bmp"], 2, ".png, .svg, .pdf, .html, .regard"),
        (["--query", "65000"], 1, "There is no query 65000"),
    ],
)
def test_looks_that_cannot_be(
    regard: Command, run: Path, picture: Path, arguments: list[str], code: int, said: str
) -> None:
    result = regard("look", run, picture, *arguments)
    assert result.code == code, result.err
    assert said in result.err


@pytest.mark.parametrize("content", [b"", b"no picture", b"\x89PNG\r\n\x1a\n"])
@pytest.mark.parametrize("command", ["predict", "look"])
def test_what_is_no_picture_is_named(regard: Command, run: Path, tmp_path: Path, command: str, content: bytes) -> None:
    (tmp_path / "bad.png").write_bytes(content)
    result = regard(command, run, tmp_path / "bad.png")
    assert result.code == 1
    assert "bad.png" in result.err


@pytest.mark.parametrize("command", ["predict", "look"])
def test_a_file_that_is_not_there(regard: Command, run: Path, command: str) -> None:
    result = regard(command, run, "nowhere.png")
    assert result.code == 1
    assert "nowhere.png" in result.err


def test_a_model_without_attention(regard: Command, trained: dict[str, Path], picture: Path) -> None:
    result = regard("look", trained["resnet-cifar10"], picture)
    assert result.code == 2
    assert "no attention" in result.err


def test_patches_that_do_not_fit_are_refused_before_training(regard: Command) -> None:
    result = regard("train", "vit-shapes", "--model.patch-size", "7", "--data.num-pictures", "40")
    assert result.code == 1
    assert "cannot be cut into patches of 7 x 7" in result.err
    assert not Path("runs").exists()


def test_what_a_recipe_reads(regard: Command) -> None:
    arguments = ("data", "vit-shapes", "--data.num-pictures", "40")
    described = regard(*arguments, "--json").json
    assert described["parts"]["train"]["pictures"] == 40
    assert described["form"]["height"] == 64
    assert "64 x 64 pixels" in regard(*arguments).out


def test_a_damaged_form_is_named(regard: Command, run: Path, picture: Path, tmp_path: Path) -> None:
    own = shutil.copytree(run, tmp_path / "moved")
    (own / "picture_form.json").write_text("{")
    assert "picture_form.json" in regard("predict", own, picture).err
    (own / "picture_form.json").unlink()
    assert "picture_form.json" in regard("predict", own, picture).err


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with attention, one without."""
    root = tmp_path_factory.mktemp("checkpoints")
    save_for_hf(
        timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2, num_classes=3), root / "vit", {}, None, True
    )
    torch.save(torchvision.models.ResNet(BasicBlock, [1, 1, 1, 1], num_classes=3).state_dict(), root / "resnet.pth")
    return root


@pytest.mark.parametrize("name", ["vit", "resnet.pth"])
def test_checkpoints_of_other_libraries(regard: Command, checkpoints: Path, picture: Path, name: str) -> None:
    found = regard("predict", checkpoints / name, picture, "--json").json
    assert [sorted(each["class"] for each in found["classes"])] == [["class 0", "class 1", "class 2"]]
    looked = regard("look", checkpoints / name, picture, "--json", "--out", "a.png", "a.regard").json
    assert looked["class"] == found["class"]
    recording = Recording.load("a.regard")
    seen = recording[looked["taps"][-1]]
    if name == "vit":
        assert looked["taps"] == ["encoder.0.attention", "encoder.1.attention"]
    else:
        assert looked["taps"] == ["occlusion"]
        assert seen.query_axes[0].label(0) == found["class"]
        sums = seen.weights(example=0).sum(-1)
        assert ((sums - 1).abs() < 1e-5).logical_or(sums == 0).all()
    assert regard("look", checkpoints / name, picture).code == 0
    assert Path("cat-look.png").exists()


def test_weights_are_those_of_a_run(regard: Command, checkpoints: Path, picture: Path) -> None:
    result = regard("look", checkpoints / "vit", picture, "--weights", "last")
    assert result.code == 2
    assert "is no run" in result.err


def test_a_checkpoint_that_cannot_be_read(regard: Command, picture: Path, tmp_path: Path) -> None:
    (tmp_path / "weights.pth").write_bytes(b"no weights")
    result = regard("predict", tmp_path / "weights.pth", picture)
    assert result.code == 1
    assert "weights.pth" in result.err
