"""Readers of vision transformers: both spellings of `transformers`, and what does not fit is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torchvision.models import VisionTransformer as TorchvisionViT

from regard.core.errors import CheckpointError
from regard.pretrained.timm_swin import timm_to_swin
from regard.pretrained.timm_vit import timm_to_deit, timm_to_vit
from regard.pretrained.torchvision_vit import torchvision_to_vit
from regard.pretrained.transformers_swin import transformers_to_swin, transformers_to_swinv2
from regard.pretrained.transformers_vit import transformers_to_deit, transformers_to_vit

SMALL = {"img_size": 40, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3, "num_classes": 7}


def state(**options: object) -> dict[str, Tensor]:
    return dict(VisionTransformer(**SMALL, **options).state_dict())


def read(tensors: dict[str, Tensor], num_heads: int | None = 3):
    return timm_to_vit(tensors, num_heads)


def test_sizes_are_read_off_the_tensors() -> None:
    config, weights = read(state(mlp_ratio=3))
    assert (config.image_size, config.patch_size, config.width, config.num_blocks) == (40, 8, 24, 2)
    assert (config.feed_forward_width, config.num_heads, config.pooling) == (72, 3, "token")
    assert weights["head.weight"].shape == (7, 24)


def test_heads_have_64_numbers_unless_told() -> None:
    with pytest.raises(CheckpointError, match="width of 24 cannot be seen in the tensors; pass `num_heads`"):
        read(state(), None)
    wide = VisionTransformer(**{**SMALL, "embed_dim": 192, "depth": 1}).state_dict()
    assert read(wide, None)[0].num_heads == 3


def test_a_missing_tensor_is_named() -> None:
    tensors = state()
    tensors["blocks.1.attn.qkv_weight"] = tensors.pop("blocks.1.attn.qkv.weight")
    with pytest.raises(
        CheckpointError,
        match=r"holds no 'blocks\.1\.attn\.qkv\.weight', which our 'encoder\.1\.attention\.projection\.weight' is made "
        r"of: it is not timm's ViT, or not a whole one\. Perhaps it is 'blocks\.1\.attn\.qkv_weight' of shape "
        r"\[72, 24\]",
    ):
        read(tensors)


def test_what_is_left_over_is_named() -> None:
    tensors = {**state(), "blocks.0.attn.q_norm.weight": torch.ones(8)}
    with pytest.raises(
        CheckpointError,
        match=r"'vit' has no place for these of timm's ViT: 'blocks\.0\.attn\.q_norm\.weight' of shape \[8\] \(most "
        r"like 'blocks\.0\.[a-z0-9_.]+', which becomes 'encoder\.0\.",
    ):
        read(tensors)


def test_a_wrong_shape_is_named() -> None:
    tensors = state()
    tensors["blocks.1.mlp.fc2.bias"] = torch.ones(23)
    with pytest.raises(
        CheckpointError,
        match=r"'encoder\.1\.feed_forward\.contract\.bias' of our 'vit' has the shape \[24\], but timm's ViT gives it "
        r"\[23\] \(from 'blocks\.1\.mlp\.fc2\.bias'\)",
    ):
        read(tensors)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"init_values": 0.1}, r"no place for .*'blocks\.0\.ls1\.gamma' of shape \[24\]"),
        ({"reg_tokens": 4}, r"no place for .*'reg_token'|make no square"),
        ({"global_pool": "avg"}, r"holds no 'norm\.weight'.*Perhaps it is 'fc_norm\.weight'"),
        ({"qkv_bias": False}, r"holds no 'blocks\.0\.attn\.qkv\.bias'"),
        ({"num_classes": 0}, r"holds no 'head\.weight'"),
    ],
)
def test_what_we_have_no_place_for(options: dict, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        read(dict(VisionTransformer(**{**SMALL, **options}).state_dict()))


def test_a_picture_that_is_no_square() -> None:
    with pytest.raises(CheckpointError, match="table of positions has 15 places, which make no square"):
        read(dict(VisionTransformer(**{**SMALL, "img_size": (40, 24)}).state_dict()))


def test_another_peers_checkpoint() -> None:
    theirs = TorchvisionViT(40, 8, 2, 3, 24, 48, num_classes=7).state_dict()
    with pytest.raises(CheckpointError, match=r"holds no 'patch_embed\.proj\.weight'"):
        read(theirs)
    with pytest.raises(CheckpointError, match=r"'conv_proj\.weight'.*not torchvision's ViT"):
        torchvision_to_vit(state(), 3)
    with pytest.raises(CheckpointError, match=r"not timm's Swin"):
        timm_to_swin(state())
    with pytest.raises(CheckpointError, match=r"holds no 'dist_token', which our 'extras' is made of"):
        timm_to_deit(state(), 3)
    with pytest.raises(CheckpointError, match=r"no place for these of timm's ViT: 'dist_token' of shape"):
        read(
            dict(VisionTransformerDistilled(**{**SMALL, "img_size": 8}).state_dict())
            | {"pos_embed": torch.ones(1, 2, 24)}
        )


TRANSFORMERS = {
    "vit": (transformers.ViTConfig, transformers.ViTForImageClassification, transformers_to_vit),
    "deit": (transformers.DeiTConfig, transformers.DeiTForImageClassificationWithTeacher, transformers_to_deit),
    "swin": (transformers.SwinConfig, transformers.SwinForImageClassification, transformers_to_swin),
    "swinv2": (transformers.Swinv2Config, transformers.Swinv2ForImageClassification, transformers_to_swinv2),
}


def of_transformers(name: str, **options: object) -> tuple[nn.Module, dict]:
    """A small model and its config's dictionary."""
    make, build, _ = TRANSFORMERS[name]
    if name.startswith("swin"):
        sizes = {"image_size": 40, "embed_dim": 24, "depths": [1, 2], "num_heads": [2, 3], "window_size": 5}
    else:
        sizes = {"image_size": 40, "patch_size": 8, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
        sizes["intermediate_size"] = 31
    config = make(**{**sizes, **options})
    return build(config), config.to_dict()


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_files_spell_names_as_the_hub_does(name: str, tmp_path: Path) -> None:
    peer, config = of_transformers(name)
    peer.save_pretrained(tmp_path)
    written = load_file(tmp_path / "model.safetensors")
    reader = TRANSFORMERS[name][2]
    ours, weights = reader(peer.state_dict(), config)
    from_file, weights_from_file = reader(written, config)
    assert any("attention.output.dense" in key for key in written), "the hub's spelling"
    assert from_file == ours
    assert weights.keys() == weights_from_file.keys()
    assert all(torch.equal(weights[name], weights_from_file[name]) for name in weights)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "vit",
            {"hidden_act": "gelu_new"},
            "hidden_act = 'gelu_new'; our model can be 'gelu' or 'relu'",
        ),
        ("swin", {"use_absolute_embeddings": True}, "use_absolute_embeddings = True; our model can be False only"),
        ("swinv2", {"qkv_bias": False}, "qkv_bias = False; our model can be True only"),
    ],
)
def test_configs_that_we_have_no_place_for(name: str, options: dict, message: str) -> None:
    peer, config = of_transformers(name, **options)
    with pytest.raises(CheckpointError, match=message):
        TRANSFORMERS[name][2](peer.state_dict(), config)


def test_vit_without_biases_of_queries_keys_and_values() -> None:
    peer, config = of_transformers("vit", qkv_bias=False)
    _, weights = transformers_to_vit(peer.state_dict(), config)
    assert not weights["encoder.0.attention.projection.bias"].any()


def test_deit_without_teacher_has_no_second_head() -> None:
    config = transformers.DeiTConfig(hidden_size=24, num_hidden_layers=1, num_attention_heads=3)
    with torch.device("meta"):
        peer = transformers.DeiTForImageClassification(config)
    with pytest.raises(CheckpointError, match=r"holds no 'cls_classifier\.weight'"):
        transformers_to_deit(peer.state_dict(), config.to_dict())
