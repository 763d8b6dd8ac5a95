"""`load_pretrained` reads what timm, `transformers` and torchvision write: equal logits, or a name for the fault."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import timm
import torch
import torchvision
import transformers
from safetensors.torch import load_file, save_file
from timm.models import save_for_hf
from torch import Tensor, nn
from torchvision.models.convnext import CNBlockConfig
from torchvision.models.resnet import Bottleneck
from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformerBlockV2

import regard
from regard.core.errors import CheckpointError
from regard.pretrained.load import read_checkpoint

CLASSES = 7


def shaken(peer: nn.Module) -> nn.Module:
    """Every weight and running statistic random, such that what runs through stays of ordinary size."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in peer.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if "logit_scale" in name:
                weight.add_(0.2 * noise)
            elif weight.dim() > 1:
                weight.copy_(noise * weight[0].numel() ** -0.5)
            else:
                weight.copy_(0.2 * noise + (1.0 if name.endswith(("weight", "gamma", "scale")) else 0.0))
        for name, buffer in peer.named_buffers():
            if name.endswith("running_var"):
                buffer.copy_(0.5 + torch.rand(buffer.shape, generator=generator))
    return peer.eval()


def assert_same(peer: Callable[[Tensor], Tensor], path: Path, sizes: list[tuple[int, int]], **options: object) -> None:
    ours = regard.load_pretrained(path, **options)
    assert not ours.training
    for height, width in sizes:
        images = torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            theirs = peer(images)
            torch.testing.assert_close(ours(images).logits, theirs, rtol=1e-4, atol=1e-4)
        assert (theirs[0] - theirs[1]).abs().max() > 1e-2, "the picture should matter"


TIMM = {
    "vit_tiny_patch16_224": ({"img_size": 48, "depth": 2, "dynamic_img_size": True}, [(48, 48), (32, 80)]),
    "vit_small_patch32_224": ({"img_size": 64, "depth": 1, "embed_dim": 48, "num_heads": 3}, [(64, 64)]),
    "deit_tiny_patch16_224": ({"img_size": 32, "depth": 1}, [(32, 32)]),
    "deit_tiny_distilled_patch16_224": ({"img_size": 32, "depth": 1}, [(32, 32)]),
    "swin_tiny_patch4_window7_224": (
        {"img_size": 80, "window_size": 5, "embed_dim": 24, "depths": (2, 2, 1), "num_heads": (2, 3, 4)},
        [(80, 80)],
    ),
    "swinv2_tiny_window8_256": (
        {"img_size": 64, "window_size": 4, "embed_dim": 24, "depths": (2, 2), "num_heads": (2, 3)},
        [(64, 64)],
    ),
    "swinv2_base_window12to16_192to256": ({"embed_dim": 16, "depths": (1, 1, 1, 1), "num_heads": (1, 1, 2, 2)}, []),
    "convnext_tiny": ({"depths": (1, 1, 2, 1), "dims": (8, 16, 32, 64)}, [(64, 64), (37, 53)]),
    "convnext_atto": ({"depths": (1, 1, 2, 1), "dims": (8, 16, 32, 64)}, [(64, 64), (37, 53)]),
    "mixer_s32_224": ({"img_size": 64}, [(64, 64)]),
    "resnet18": ({}, [(64, 64), (37, 53)]),
    "resnetv2_50x1_bit": ({}, [(64, 64)]),
}


@pytest.mark.parametrize("name", [name for name, (_, sizes) in TIMM.items() if sizes])
@pytest.mark.parametrize("safe", [True, False], ids=["safetensors", "pickle"])
def test_folders_of_timm(name: str, safe: bool, tmp_path: Path) -> None:
    options, sizes = TIMM[name]
    peer = shaken(timm.create_model(name, num_classes=CLASSES, **options))
    save_for_hf(peer, tmp_path, safe_serialization=safe)
    assert_same(peer, tmp_path, sizes)


SWIN = ([4, 4], 24, [2, 2, 1], [2, 3, 4], [5, 5])
TORCHVISION = {
    "vit": (lambda: torchvision.models.VisionTransformer(40, 8, 2, 1, 64, 97, num_classes=CLASSES), [(40, 40)]),
    "swin": (lambda: torchvision.models.SwinTransformer(*SWIN, num_classes=CLASSES), [(80, 80), (68, 100)]),
    "swinv2": (
        lambda: torchvision.models.SwinTransformer(
            *SWIN, num_classes=CLASSES, block=SwinTransformerBlockV2, downsample_layer=PatchMergingV2
        ),
        [(80, 80), (68, 100)],
    ),
    "convnext": (
        lambda: torchvision.models.ConvNeXt(
            [CNBlockConfig(8, 16, 1), CNBlockConfig(16, 32, 2), CNBlockConfig(32, None, 1)], num_classes=CLASSES
        ),
        [(64, 64), (37, 53)],
    ),
    "resnet18": (lambda: torchvision.models.resnet18(num_classes=CLASSES), [(37, 53)]),
    "resnet of bottlenecks": (
        lambda: torchvision.models.ResNet(Bottleneck, [1, 2, 1, 1], num_classes=CLASSES),
        [(64, 64), (37, 53)],
    ),
}


@pytest.mark.parametrize("ending", ["pth", "safetensors"])
@pytest.mark.parametrize("name", TORCHVISION)
def test_state_dicts_of_torchvision(name: str, ending: str, tmp_path: Path) -> None:
    build, sizes = TORCHVISION[name]
    peer, path = shaken(build()), tmp_path / f"weights.{ending}"
    save_file(peer.state_dict(), path) if ending == "safetensors" else torch.save(peer.state_dict(), path)
    assert_same(peer, path, sizes)


def transformers_peer(name: str) -> nn.Module:
    made = {
        "vit": (transformers.ViTConfig, transformers.ViTForImageClassification),
        "deit": (transformers.DeiTConfig, transformers.DeiTForImageClassificationWithTeacher),
        "deit without teacher": (transformers.DeiTConfig, transformers.DeiTForImageClassification),
        "swin": (transformers.SwinConfig, transformers.SwinForImageClassification),
        "swinv2": (transformers.Swinv2Config, transformers.Swinv2ForImageClassification),
        "convnext": (transformers.ConvNextConfig, transformers.ConvNextForImageClassification),
        "resnet": (transformers.ResNetConfig, transformers.ResNetForImageClassification),
    }
    if "swin" in name:
        sizes = {"image_size": 40, "embed_dim": 24, "depths": [1, 2], "num_heads": [2, 3], "window_size": 5}
    elif "it" in name:
        sizes = {"image_size": 40, "patch_size": 8, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
        sizes["intermediate_size"] = 31
    else:
        sizes = {"depths": [1, 2, 1, 1], "hidden_sizes": [16, 32, 64, 128]}
        sizes |= {"embedding_size": 16} if name == "resnet" else {}
        sizes |= {"hidden_sizes": [64, 128, 256, 512]} if name == "resnet" else {}
    config, build = made[name]
    return shaken(build(config(**sizes, num_labels=CLASSES)))


@pytest.mark.parametrize("shards", ["1GB", "20KB"], ids=["whole", "shards"])
@pytest.mark.parametrize("name", ["vit", "deit", "deit without teacher", "swin", "swinv2", "convnext", "resnet"])
def test_folders_of_transformers(name: str, shards: str, tmp_path: Path) -> None:
    peer = transformers_peer(name)
    peer.save_pretrained(tmp_path, max_shard_size=shards)
    sizes = [(40, 40)] if "it" in name else [(64, 64), (36, 60), (91, 101)]
    sizes = [(40, 40), (91, 101), (40, 91)] if "swin" in name else sizes
    # A copy for each picture: their Swin goes on with smaller windows and no shifts after one small picture.
    assert_same(lambda images: copy.deepcopy(peer)(images).logits, tmp_path, sizes)


def test_classes_and_preparation_of_transformers(tmp_path: Path) -> None:
    config = transformers.SwinConfig(
        image_size=40, embed_dim=24, depths=[1], num_heads=[2], window_size=5, id2label={1: "dog", 0: "cat"}
    )
    transformers.SwinForImageClassification(config).save_pretrained(tmp_path)
    beside = {"size": {"shortest_edge": 44}, "image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(beside))
    found = read_checkpoint(tmp_path)
    assert found.class_names == ("cat", "dog")
    assert (found.preparation.height, found.preparation.width) == (44, 44)
    assert (found.preparation.mean, found.preparation.std) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))


def test_classes_and_preparation_of_timm(tmp_path: Path) -> None:
    peer = timm.create_model("vit_tiny_patch16_224", img_size=48, depth=1, num_classes=2)
    save_for_hf(peer, tmp_path, {"label_names": ["cat", "dog"]}, safe_serialization=True)
    found = read_checkpoint(tmp_path)
    assert found.class_names == ("cat", "dog")
    assert (found.preparation.height, found.preparation.width) == (48, 48)
    assert found.preparation.mean == (0.5, 0.5, 0.5)
    assert found.origin == "vit_tiny_patch16_224 of timm"


def test_heads_and_windows_that_tensors_do_not_show(tmp_path: Path) -> None:
    peer = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=1, embed_dim=48, num_classes=3)
    save_file(peer.state_dict(), tmp_path / "vit.safetensors")
    with pytest.raises(CheckpointError, match=r"heads share the width of 48 cannot be seen.*`num_heads`"):
        regard.load_pretrained(tmp_path / "vit.safetensors")
    assert_same(shaken(peer), _saved(peer, tmp_path / "vit.safetensors"), [(32, 32)], num_heads=3)
    name = "swinv2_base_window12to16_192to256"
    swin = shaken(timm.create_model(name, num_classes=3, **TIMM[name][0]))
    path = _saved(swin, tmp_path / "swin.safetensors")
    with pytest.raises(CheckpointError, match=r"windows of timm's Swin V2 leave no trace.*architecture="):
        regard.load_pretrained(path)
    assert_same(swin, path, [(256, 256)], architecture=name)
    assert read_checkpoint(path, architecture=name).config.pretrained_window_size == (12, 12, 12, 6)


def _saved(peer: nn.Module, path: Path) -> Path:
    save_file(peer.state_dict(), path)
    return path


def test_what_training_scripts_save(tmp_path: Path) -> None:
    peer = shaken(timm.create_model("resnet18", num_classes=CLASSES))
    wrapped = {f"module.{name}": tensor.half() for name, tensor in peer.state_dict().items()}
    torch.save({"epoch": 3, "model": wrapped, "best": 0.5}, tmp_path / "last.pth")
    assert next(regard.load_pretrained(tmp_path / "last.pth").parameters()).dtype == torch.float32
    assert_same(peer.half().float(), tmp_path / "last.pth", [(64, 64)])


class Anything:
    pass


@pytest.mark.parametrize(
    ("save", "message"),
    [
        (lambda path: torch.save({"model": {}, "by": Anything()}, path), "more than tensors.*could run code"),
        (lambda path: torch.save([1, 2], path), "holds no state dict, but a list"),
        (lambda path: torch.save({"epoch": 1}, path), "holds no state dict, but epoch"),
        (lambda path: torch.save({"odd.weight": torch.ones(2)}, path), "of no model that Regard knows: 'odd.weight'"),
        (lambda path: torch.save({}, path), "holds no tensors"),
        (lambda path: path.write_bytes(b"no weights"), "weights.pth"),
    ],
)
def test_files_that_are_no_checkpoint(save: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    save(tmp_path / "weights.pth")
    with pytest.raises(CheckpointError, match=message):
        regard.load_pretrained(tmp_path / "weights.pth")


def test_a_damaged_safetensors_file(tmp_path: Path) -> None:
    (tmp_path / "weights.safetensors").write_bytes(b"1234567890")
    with pytest.raises(CheckpointError, match=r"weights\.safetensors cannot be read as weights"):
        regard.load_pretrained(tmp_path / "weights.safetensors")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, r"config\.json is not there, so what .* holds cannot be told"),
        ({"hidden_size": 3}, "names no architecture and no model_type"),
        ({"model_type": "bert"}, "reads no 'bert' of transformers.*vit, deit, swin"),
        ({"architecture": "resnetaa50"}, "'resnetaa50' computes something else"),
        ({"architecture": "resnet18", "model_args": {"output_stride": 8}}, "output_stride = 8"),
        ({"architecture": "resnet18", "global_pool": "max"}, "global_pool = 'max'; our model can be 'avg' or 'token'"),
    ],
)
def test_folders_that_we_have_no_place_for(config: dict | None, message: str, tmp_path: Path) -> None:
    _saved(timm.create_model("resnet18", num_classes=CLASSES), tmp_path / "model.safetensors")
    if config is not None:
        (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=message):
        regard.load_pretrained(tmp_path)


def test_a_folder_without_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architecture": "resnet18"}')
    with pytest.raises(CheckpointError, match=r"holds none of model\.safetensors.*it has: none"):
        regard.load_pretrained(tmp_path)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    transformers_peer("vit").save_pretrained(tmp_path, max_shard_size="20KB")
    first = sorted(tmp_path.glob("model-0*.safetensors"))[0]
    first.unlink()
    with pytest.raises(CheckpointError, match=first.name):
        regard.load_pretrained(tmp_path)


def test_a_key_that_does_not_fit_is_named_with_its_likely_place(tmp_path: Path) -> None:
    peer = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=1, num_classes=3)
    save_for_hf(peer, tmp_path, safe_serialization=True)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["blocks.0.attn.qkv.weights"] = tensors.pop("blocks.0.attn.qkv.weight")
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(
        CheckpointError,
        match=r"holds no 'blocks\.0\.attn\.qkv\.weight', which our 'encoder\.0\.attention\.projection\.weight'.*"
        r"Perhaps it is 'blocks\.0\.attn\.qkv\.weights'",
    ):
        regard.load_pretrained(tmp_path)


def test_a_place_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError, match="no name on a hub"):
        regard.load_pretrained("nowhere")
    with pytest.raises(CheckpointError, match="no file or folder owner/model here, and no model of that name could be"):
        regard.load_pretrained("owner/model")


def test_a_name_on_the_hub_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is needed is asked for; old formats where nothing else is there."""
    peer = shaken(timm.create_model("resnet18", num_classes=CLASSES))
    save_for_hf(peer, tmp_path, safe_serialization=False)
    asked = []

    def snapshot(name: str, allow_patterns: list[str]) -> str:
        asked.append((name, "pytorch_model*.bin" in allow_patterns))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    ours = regard.load_pretrained("hf-hub:timm/resnet18.a1_in1k")
    assert asked == [("timm/resnet18.a1_in1k", False), ("timm/resnet18.a1_in1k", True)]
    assert ours.head.out_features == CLASSES
