"""A training that starts from a checkpoint: weights taken over, a new head, other sizes, frozen or slower layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torchvision
from timm.models import save_for_hf
from torchvision.models.resnet import BasicBlock

from regard.core.errors import CheckpointError, ConfigError
from regard.recipes import recipes
from regard.recipes.classifying import ClassificationRunConfig
from regard.recipes.run import open_run, prepare
from regard.recipes.starting import StartConfig
from regard.training import RunFolder

DATA = {"source": "shapes", "num_pictures": 40, "size": 48, "batch_size": 10}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("checkpoints")
    torch.manual_seed(1)
    vit = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2, num_classes=3)
    save_for_hf(vit, root / "vit", safe_serialization=True)
    torch.save(torchvision.models.ResNet(BasicBlock, [1, 1, 1, 1], num_classes=3).state_dict(), root / "resnet.pth")
    return root


def config(place: Path, **changes: Any) -> ClassificationRunConfig:
    full = recipes["finetune"]()
    quick = {"max_steps": 2, "precision": "float32", "tensorboard": False, "warmup_steps": 0, "learning_rate": 1e-2}
    return full.model_copy(
        update={
            "data": full.data.model_copy(update=DATA),
            "training": full.training.model_copy(update=quick | changes.pop("training", {})),
            "start": StartConfig(checkpoint=str(place), **changes),
        }
    ).with_source()


@pytest.mark.parametrize(("name", "kind"), [("vit", "vit"), ("resnet.pth", "resnet")])
def test_weights_are_taken_over_and_the_head_is_new(checkpoints: Path, name: str, kind: str) -> None:
    chosen = config(checkpoints / name)
    assert chosen.model.kind == kind
    prepared = prepare(chosen)
    with torch.no_grad():
        logits = prepared.model.eval()(torch.randn(2, 3, 48, 48)).logits
    assert logits.shape == (2, prepared.corpus.form.num_classes)
    if kind == "vit":
        theirs = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2, num_classes=3)
        theirs.load_state_dict(torch.load(_bin(checkpoints / name), weights_only=True))
        assert torch.equal(prepared.model.norm.weight, theirs.norm.weight)
        assert torch.equal(prepared.model.encoder[1].attention.projection.weight, theirs.blocks[1].attn.qkv.weight)
        assert prepared.corpus.form.mean == prepared.task.form.mean == (0.5, 0.5, 0.5)
        assert prepared.corpus.train.form == prepared.corpus.form


def _bin(folder: Path) -> Path:
    """The tensors of timm, for timm."""
    from safetensors.torch import load_file

    path = folder / "copy.pth"
    torch.save(load_file(folder / "model.safetensors"), path)
    return path


def test_frozen_below_the_head(checkpoints: Path, tmp_path: Path) -> None:
    chosen = config(checkpoints / "resnet.pth", frozen=True)
    prepared = prepare(chosen)
    before = {name: tensor.clone() for name, tensor in prepared.model.state_dict().items()}
    folder = RunFolder.create_at(tmp_path / "run", chosen.recipe, chosen.model_dump(mode="json"))
    run, _ = prepared.train(folder)
    changed = {name for name, tensor in run.model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {"head.weight", "head.bias"}
    again = open_run(folder.path)
    assert torch.equal(again.model.head.weight, run.model.head.weight)
    # The run can be started from in its turn; its classes are the same, so the head comes along.
    second = prepare(config(folder.path))
    assert second.config.model == chosen.model
    assert torch.equal(second.model.head.weight, run.model.head.weight)


def test_a_run_goes_on_without_the_checkpoint(checkpoints: Path, tmp_path: Path) -> None:
    chosen = config(checkpoints / "vit")
    folder = RunFolder.create_at(tmp_path / "run", chosen.recipe, chosen.model_dump(mode="json"))
    prepare(chosen).train(folder)
    gone = chosen.model_copy(
        update={
            "start": StartConfig(checkpoint=str(tmp_path / "gone")),
            "training": chosen.training.model_copy(update={"max_steps": 3}),
        }
    )
    _, result = prepare(gone, resume=folder).train(folder, resume=True)
    assert result.steps == 3


def test_only_rates_of_the_model_can_be_chosen(checkpoints: Path) -> None:
    full = recipes["finetune"]()
    place = StartConfig(checkpoint=str(checkpoints / "vit"))
    rate = full.model.model_copy(update={"stochastic_depth_rate": 0.2})
    assert full.model_copy(update={"model": rate, "start": place}).with_source().model.stochastic_depth_rate == 0.2
    wide = full.model.model_copy(update={"width": 256})
    with pytest.raises(ConfigError, match=r"--model\.width cannot be given with --start\.checkpoint"):
        full.model_copy(update={"model": wide, "start": place}).with_source()


def test_a_checkpoint_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no file or folder"):
        config(tmp_path / "nowhere")
