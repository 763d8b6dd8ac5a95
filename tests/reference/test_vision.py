"""Vision transformers of timm, torchvision and `transformers` with random weights, copied into ours: equal logits.

At the picture size they are made for, and at another where the peer takes one.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import timm
import torch
import transformers
from timm.models.deit import VisionTransformerDistilled
from timm.models.swin_transformer import SwinTransformer
from timm.models.swin_transformer_v2 import SwinTransformerV2
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torchvision.models import SwinTransformer as TorchvisionSwin
from torchvision.models import VisionTransformer as TorchvisionViT
from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformerBlockV2

from regard.core.classifier import ClassifierOutput
from regard.core.models import ModelConfig, models, sizes
from regard.pretrained.timm_swin import timm_to_swin, timm_to_swinv2
from regard.pretrained.timm_vit import timm_to_deit, timm_to_vit
from regard.pretrained.torchvision_swin import torchvision_to_swin, torchvision_to_swinv2
from regard.pretrained.torchvision_vit import torchvision_to_vit
from regard.pretrained.transformers_swin import transformers_to_swin, transformers_to_swinv2
from regard.pretrained.transformers_vit import transformers_to_deit, transformers_to_vit

BATCH, CLASSES = 2, 7
Read = tuple[ModelConfig, dict[str, Tensor]]


def shaken(peer: nn.Module, seed: int = 0) -> nn.Module:
    """At the usual weights attention is nearly uniform, and positions hardly matter."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in peer.named_parameters():
            is_scale = weight.dim() == 1 and name.endswith("weight")
            weight.normal_(1.0 if is_scale else 0.0, 0.2, generator=generator)
            if "logit_scale" in name:
                weight.add_(2.0)
    return peer.eval()


def built(read: Read) -> nn.Module:
    config, weights = read
    channels = weights["patches.projection.weight"].shape[1]
    ours = models[config.kind].build(config, CLASSES, channels)
    ours.load_state_dict(weights)
    return ours.eval()


def assert_same_logits(
    peer: Callable[[Tensor], Tensor], ours: nn.Module, height: int, width: int, channels: int = 3
) -> ClassifierOutput:
    images = torch.randn(BATCH, channels, height, width, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        theirs, output = peer(images), ours(images)
    assert (theirs[0] - theirs[1]).abs().max() > 0.01, "the picture should matter"
    torch.testing.assert_close(output.logits, theirs, rtol=1e-5, atol=1e-5)
    return output


TIMM_VIT = {"patch_size": 8, "embed_dim": 48, "depth": 3, "num_heads": 3, "mlp_ratio": 2, "num_classes": CLASSES}


@pytest.mark.parametrize(("height", "width"), [(40, 40), (24, 56)])
@pytest.mark.parametrize("pooling", ["token", "mean"])
def test_vit_of_timm(pooling: str, height: int, width: int) -> None:
    token = pooling == "token"
    options = {} if token else {"class_token": False, "global_pool": "avg", "fc_norm": False}
    peer = shaken(VisionTransformer(img_size=40, in_chans=2, dynamic_img_size=True, **TIMM_VIT, **options))
    ours = built(timm_to_vit(peer.state_dict(), num_heads=3))
    assert ours.extra_names == (("class",) if token else ())
    assert_same_logits(peer, ours, height, width, channels=2)


@pytest.mark.parametrize(("height", "width"), [(40, 40), (64, 16)])
def test_distilled_deit_of_timm(height: int, width: int) -> None:
    peer = shaken(VisionTransformerDistilled(img_size=40, dynamic_img_size=True, **TIMM_VIT))
    ours = built(timm_to_deit(peer.state_dict(), num_heads=3))
    output = assert_same_logits(peer, ours, height, width)
    for block in ours.encoder:
        block.attention_residual.depth_rate = block.feed_forward_residual.depth_rate = 0.0
    ours.train()
    peer.set_distilled_training(True)
    peer.train()
    images = torch.randn(BATCH, 3, height, width)
    trained, (theirs, distilled) = ours(images), peer(images)
    torch.testing.assert_close(trained.logits, theirs, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(trained.auxiliary["distillation"], distilled, rtol=1e-5, atol=1e-5)
    assert output.auxiliary["distillation"].shape == (BATCH, CLASSES)


def test_vit_of_torchvision() -> None:
    peer = shaken(TorchvisionViT(40, 8, 3, 3, 48, 97, num_classes=CLASSES))
    assert_same_logits(peer, built(torchvision_to_vit(peer.state_dict(), num_heads=3)), 40, 40)


TRANSFORMERS_VIT = {
    "image_size": 40,
    "patch_size": 8,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 97,
    "num_labels": CLASSES,
}


@pytest.mark.parametrize(("height", "width"), [(40, 40), (24, 56), (80, 48)])
@pytest.mark.parametrize("name", ["vit", "deit"])
def test_vit_and_deit_of_transformers(name: str, height: int, width: int) -> None:
    if name == "vit":
        config = transformers.ViTConfig(**TRANSFORMERS_VIT, hidden_act="relu")
        peer = shaken(transformers.ViTForImageClassification(config))
        ours = built(transformers_to_vit(peer.state_dict(), config.to_dict()))
    else:
        config = transformers.DeiTConfig(**TRANSFORMERS_VIT)
        peer = shaken(transformers.DeiTForImageClassificationWithTeacher(config))
        ours = built(transformers_to_deit(peer.state_dict(), config.to_dict()))
    assert_same_logits(lambda images: peer(images, interpolate_pos_encoding=True).logits, ours, height, width)


TIMM_SWIN = {"embed_dim": 24, "depths": (2, 2, 1), "num_heads": (2, 3, 4), "num_classes": CLASSES, "mlp_ratio": 3.0}


@pytest.mark.parametrize("window_size", [5, 10])
def test_swin_of_timm(window_size: int) -> None:
    """Windows of 10 are cut down to 5 in the last stage, whose grid has no more."""
    peer = shaken(SwinTransformer(img_size=80, window_size=window_size, **TIMM_SWIN))
    assert_same_logits(peer, built(timm_to_swin(peer.state_dict())), 80, 80)


@pytest.mark.parametrize(("window_size", "measures"), [(5, ()), (10, ()), (10, (7, 6, 3))])
def test_swinv2_of_timm(window_size: int, measures: tuple[int, ...]) -> None:
    """Windows of 10 are cut down to 5 in the last stage, whose grid has no more."""
    pretrained = {"pretrained_window_sizes": measures} if measures else {"pretrained_window_sizes": (0, 0, 0)}
    peer = shaken(SwinTransformerV2(img_size=80, window_size=window_size, **TIMM_SWIN, **pretrained))
    ours = built(timm_to_swinv2(peer.state_dict(), 80, window_size, measures))
    assert_same_logits(peer, ours, 80, 80)


@pytest.mark.parametrize(("height", "width"), [(80, 80), (68, 100), (12, 84), (60, 20)])
@pytest.mark.parametrize("version", [1, 2])
def test_swin_of_torchvision(version: int, height: int, width: int) -> None:
    """Pictures that fill no whole windows too, and such as are smaller than one."""
    options = {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2} if version == 2 else {}
    peer = TorchvisionSwin([4, 4], 24, [2, 2, 1], [2, 3, 4], [5, 5], mlp_ratio=3.0, num_classes=CLASSES, **options)
    reader = torchvision_to_swinv2 if version == 2 else torchvision_to_swin
    ours = built(reader(shaken(peer).state_dict()))
    assert_same_logits(peer, ours, height, width)


TRANSFORMERS_SWIN = {
    "image_size": 80,
    "patch_size": 4,
    "embed_dim": 24,
    "depths": [2, 2, 1],
    "num_heads": [2, 3, 4],
    "window_size": 5,
    "mlp_ratio": 3.0,
    "num_labels": CLASSES,
}


@pytest.mark.parametrize(("height", "width"), [(80, 80), (93, 101)])
@pytest.mark.parametrize("version", [1, 2])
def test_swin_of_transformers(version: int, height: int, width: int) -> None:
    """Pictures that fill no whole patches too, nor even pairs of them."""
    if version == 1:
        config = transformers.SwinConfig(**TRANSFORMERS_SWIN)
        peer = shaken(transformers.SwinForImageClassification(config))
        ours = built(transformers_to_swin(peer.state_dict(), config.to_dict()))
    else:
        config = transformers.Swinv2Config(**TRANSFORMERS_SWIN)
        peer = shaken(transformers.Swinv2ForImageClassification(config))
        ours = built(transformers_to_swinv2(peer.state_dict(), config.to_dict()))
    assert_same_logits(lambda images: peer(images).logits, ours, height, width)


PUBLISHED = {
    "vit_tiny_patch16_224": 5_717_416,
    "vit_base_patch16_224": 86_567_656,
    "deit_tiny_patch16_224": 5_717_416,
    "swin_tiny_patch4_window7_224": 28_288_354,
}
IN_TIMM = [name for name in sizes if timm.is_model(name)]


def num_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def of_size(name: str) -> nn.Module:
    config = sizes[name]()
    with torch.device("meta"):
        return models[config.kind].build(config, 1000, 3)


@pytest.mark.parametrize("name", IN_TIMM)
def test_a_size_has_as_many_parameters_as_timms(name: str) -> None:
    with torch.device("meta"):
        theirs = timm.create_model(name, num_classes=1000)
    assert num_parameters(of_size(name)) == num_parameters(theirs)


@pytest.mark.parametrize(("name", "count"), PUBLISHED.items())
def test_published_numbers_of_parameters(name: str, count: int) -> None:
    assert num_parameters(of_size(name)) == count
