"""MViTv2 of timm, and MViT of torchvision for films of one picture, with random weights copied into ours."""

from __future__ import annotations

import pytest
import timm
import torch
from timm.models.mvitv2 import MultiScaleVit, MultiScaleVitCfg
from torch import Tensor, nn
from torchvision.models.video.mvit import MSBlockConfig
from torchvision.models.video.mvit import MViT as TorchvisionMViT

from regard.blocks.pooling_attention import offset_vectors
from regard.core.errors import CheckpointError
from regard.core.models import models, sizes
from regard.pretrained.mvit import timm_to_mvitv2, torchvision_to_mvit
from regard.recording import record

CLASSES = 7


def shaken(peer: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in peer.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if "rel_pos" in name or "pos" in name:
                weight.copy_(0.5 * noise)
            elif weight.dim() > 1:
                weight.copy_(noise * weight[0].numel() ** -0.5)
            else:
                weight.copy_(0.2 * noise + (1.0 if name.endswith("weight") else 0.0))
    return peer.eval()


def built(config, weights: dict[str, Tensor]) -> nn.Module:
    ours = models[config.kind].build(config, CLASSES, 3)
    ours.load_state_dict(weights)
    return ours.eval()


@pytest.mark.parametrize(
    ("options", "image_size"),
    [
        ({}, 64),
        ({"use_cls_token": True}, 64),
        ({"expand_attn": False, "num_heads": 2}, 64),
        ({"expand_attn": False, "use_cls_token": True, "mlp_ratio": 3.0}, 96),
    ],
)
def test_mvitv2_of_timm(options: dict, image_size: int) -> None:
    config = MultiScaleVitCfg(depths=(2, 1, 2), embed_dim=12, stride_q=((1, 1), (2, 2), (2, 2)), **options)
    peer = shaken(MultiScaleVit(config, img_size=image_size, num_classes=CLASSES))
    ours = built(*timm_to_mvitv2(peer.state_dict()))
    images = torch.randn(2, 3, image_size, image_size)
    with torch.no_grad():
        theirs = peer(images)
        torch.testing.assert_close(ours(images).logits, theirs, rtol=1e-4, atol=1e-5)
    assert (theirs[0] - theirs[1]).abs().max() > 1e-2


@pytest.mark.parametrize("name", ["mvitv2_tiny", "mvitv2_small"])
def test_whole_sizes_of_timm(name: str) -> None:
    peer = shaken(timm.create_model(name, num_classes=CLASSES))
    config, weights = timm_to_mvitv2(peer.state_dict())
    assert config == sizes[name]()
    images = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        torch.testing.assert_close(built(config, weights)(images).logits, peer(images), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in sizes if name.startswith("mvitv2_")])
def test_as_many_parameters_as_timms(name: str) -> None:
    config = sizes[name]()
    with torch.device("meta"):
        ours, theirs = models[config.kind].build(config, 1000, 3), timm.create_model(name, num_classes=1000)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


def torchvision_mvit(num_blocks: tuple[int, ...], width: int, side: int, times: int = 1) -> nn.Module:
    settings = []
    for stage, count in enumerate(num_blocks):
        for index in range(count):
            own, last = width * 2**stage, index == count - 1 and stage < len(num_blocks) - 1
            pools = stage > 0 and index == 0
            stride = max(1, 4 // 2**stage)
            settings.append(
                MSBlockConfig(
                    num_heads=2**stage,
                    input_channels=own,
                    output_channels=2 * own if last else own,
                    kernel_q=[3, 3, 3] if pools else [],
                    kernel_kv=[3, 3, 3],
                    stride_q=[1, 2, 2] if pools else [],
                    stride_kv=[1, stride, stride],
                )
            )
    return TorchvisionMViT(
        (side, side),
        times,
        settings,
        residual_pool=False,
        residual_with_cls_embed=True,
        rel_pos_embed=False,
        proj_after_attn=False,
        num_classes=CLASSES,
        patch_embed_kernel=(1, 7, 7),
        patch_embed_stride=(1, 4, 4),
        patch_embed_padding=(0, 3, 3),
    )


def test_mvit_of_torchvision() -> None:
    peer = shaken(torchvision_mvit((1, 2, 2), 12, 60))
    ours = built(*torchvision_to_mvit(peer.state_dict()))
    images = torch.randn(2, 3, 60, 60)
    with torch.no_grad():
        theirs = peer(images[:, :, None])
        torch.testing.assert_close(ours(images).logits, theirs, rtol=1e-4, atol=1e-5)
    assert (theirs[0] - theirs[1]).abs().max() > 1e-2


def test_films_are_refused() -> None:
    with pytest.raises(CheckpointError, match="films of 4 pictures"):
        torchvision_to_mvit(torchvision_mvit((1, 1), 12, 32, times=4).state_dict())


def test_recorded_scores_are_those_of_the_paper() -> None:
    """Weights from the small form against a softmax with E written out for all pairs."""
    config = models["mvitv2"].config(image_size=24, width=8, num_blocks=(1, 1), tokens=("class",))
    torch.manual_seed(0)
    model = models["mvitv2"].build(config, CLASSES, 3).eval()
    attention = model.stages[1][0].attention
    nn.init.normal_(attention.offsets.rows)
    nn.init.normal_(attention.offsets.columns)
    images = torch.randn(1, 3, 20, 28)
    with torch.no_grad(), record(model) as recording:
        model(images)
    weights = recording["stages.1.0.attention"].weights(example=0)
    relation = recording.relations["stages.1.0.attention"]
    width = 8  # of one of two heads of 16 numbers
    queries, keys = relation.queries[..., :width] / attention.scale, relation.keys[..., :width]
    axes = model.axes(20, 28)
    asking, asked = axes["stage2"], axes["stage2_first_keys"]
    assert (asking.rows, asking.columns, asked.rows, asked.columns) == (3, 4, 3, 4)
    scores = attention.scale * queries @ keys.transpose(-1, -2)
    rows = offset_vectors(attention.offsets.rows, 3, 3)
    columns = offset_vectors(attention.offsets.columns, 4, 4)
    for i in range(12):
        for j in range(12):
            vector = rows[i // 4, j // 4] + columns[i % 4, j % 4]
            scores[0, :, 1 + i, 1 + j] += queries[0, :, 1 + i] @ vector
    torch.testing.assert_close(weights, scores.softmax(-1)[0], rtol=1e-4, atol=1e-5)


def test_with_a_class_token_only_the_last_queries_reach_nothing() -> None:
    config = models["mvitv2"].config(image_size=48, width=8, num_blocks=(1, 2), tokens=("class",))
    model = models["mvitv2"].build(config, CLASSES, 3)
    model(torch.randn(2, 3, 48, 48)).logits.square().sum().backward()
    still = {name for name, parameter in model.named_parameters() if not parameter.grad.any()}
    last = "stages.1.1.attention"
    assert still == {f"{last}.query_pooling.convolution.weight", f"{last}.offsets.rows", f"{last}.offsets.columns"}
