"""timm and torchvision: fused and written-out attention, windows on their grid, axes of pictures."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard.core.axes import Grid
from regard.core.grouped import GroupedRelation
from regard.recording import Recording

timm = pytest.importorskip("timm")
torchvision = pytest.importorskip("torchvision")

VIT = {"img_size": (14, 21), "patch_size": 7, "embed_dim": 33, "depth": 2, "num_heads": 11, "num_classes": 3}
SWIN = {
    "img_size": (28, 20),
    "patch_size": 2,
    "embed_dim": 12,
    "depths": (2, 2),
    "num_heads": (2, 3),
    "window_size": 5,
    "num_classes": 3,
}


def awake(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(5)
    return model.eval()


def fused(model: nn.Module, on: bool) -> nn.Module:
    for module in model.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = on
    return model


def recorded(model: nn.Module, images: Tensor) -> Recording:
    with torch.no_grad():
        plain = model(images)
        with regard.record(model) as recording:
            assert torch.equal(plain, model(images))
    return recording


class Spy:
    """What timm's attention multiplies with its values, caught by its dropout, which does nothing in evaluation."""

    def __init__(self, model: nn.Module) -> None:
        self.maps: list[Tensor] = []
        for module in model.modules():
            if hasattr(module, "attn_drop"):
                module.attn_drop = self.Drop(self)

    class Drop(nn.Identity):
        def __init__(self, spy: Spy) -> None:
            super().__init__()
            self.spy = [spy]
            self.p = 0.0

        def forward(self, weights: Tensor) -> Tensor:
            self.spy[0].maps.append(weights)
            return weights


def own_maps(model: nn.Module, images: Tensor) -> list[Tensor]:
    spy = Spy(fused(model, False))
    with torch.no_grad():
        model(images)
    return spy.maps


@pytest.mark.parametrize("on", [True, False])
def test_vit_of_timm(on: bool) -> None:
    model = awake(timm.models.VisionTransformer(**VIT, reg_tokens=3))
    images = torch.randn(2, 3, 14, 21)
    recording = recorded(fused(model, on), images)
    assert recording.addresses == ["blocks.0.attn", "blocks.1.attn"]
    assert [recording[address].relation.form for address in recording] == ["dot" if on else "dense"] * 2
    assert recording.axes["image"] == [Grid(2, 3, 14, 21, ("class", "register 1", "register 2", "register 3"))] * 2
    for address, own in zip(recording, own_maps(model, images), strict=True):
        torch.testing.assert_close(recording[address].weights(), own, atol=1e-5, rtol=0)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("size", [(28, 20), (20, 20)])
def test_swin_of_timm_over_its_grid(on: bool, size: tuple[int, int]) -> None:
    model = awake(timm.models.SwinTransformer(**(SWIN | {"img_size": size})))
    images = torch.randn(2, 3, *size)
    recording = recorded(fused(model, on), images)
    maps = own_maps(model, images)
    assert len(recording) == len(maps) == 4
    for address, own in zip(recording, maps, strict=True):
        relation = recording[address].relation
        assert isinstance(relation, GroupedRelation)
        torch.testing.assert_close(relation.inner.weights(), own, atol=1e-5, rtol=0)


@pytest.mark.parametrize("library", ["timm", "torchvision", "transformers"])
def test_windows_lie_where_the_picture_says(library: str) -> None:
    """A place of the grid is changed: only maps of those that can see it change, and these are its neighbours."""
    rows, columns, window = 7, 9, 4
    model, address = _one_shifted_block(library, rows, columns, window)
    grid = torch.randn(1, rows, columns, 12)
    relation = _record_grid(model, library, grid).relations[address]
    assert isinstance(relation, GroupedRelation)
    weights = relation.weights()[0, 0]
    extras = weights.shape[0] - rows * columns
    assert extras == 1, "there is a filling"
    place = 3 * columns + 5
    grid[0, 3, 5] += torch.randn(12)
    changed = _record_grid(model, library, grid).relations[address].weights()[0, 0]
    moved = ((changed - weights).abs().amax(dim=1) > 1e-10)[extras:].nonzero()[:, 0].tolist()
    # What an additive mask of -100 leaves is no number that a float of 32 bits can hold well.
    seeing = (weights[extras:, extras + place] > 1e-20).nonzero()[:, 0].tolist()
    assert set(moved) == set(seeing)
    assert place in moved
    if library != "timm":
        # timm rolls before it fills up, so that places from both edges of the grid may share a window.
        assert all(abs(one // columns - 3) < window and abs(one % columns - 5) < window for one in moved)
    torch.testing.assert_close(weights[extras:].sum(-1), torch.ones(rows * columns))


def _one_shifted_block(library: str, rows: int, columns: int, window: int) -> tuple[nn.Module, str]:
    if library == "timm":
        block = timm.models.swin_transformer.SwinTransformerBlock
        return block(12, (rows, columns), num_heads=2, window_size=window, shift_size=2).eval(), "attn"
    if library == "torchvision":
        layer = torchvision.models.swin_transformer.ShiftedWindowAttention(12, [window, window], [2, 2], num_heads=2)
        return layer.eval(), "attention"
    T = pytest.importorskip("transformers")
    from transformers.models.swin.modeling_swin import SwinLayer

    config = T.SwinConfig(window_size=window, attn_implementation="sdpa")
    return SwinLayer(config, 12, (rows, columns), 2, shift_size=2).eval(), "attention"


def _record_grid(model: nn.Module, library: str, grid: Tensor) -> Recording:
    given: tuple[Any, ...] = (grid,)
    if library == "transformers":
        given = (grid.flatten(1, 2), grid.shape[1:3])
    with torch.no_grad(), regard.record(model) as recording:
        model(*(tuple(one) if isinstance(one, torch.Size) else one for one in given))
    return recording


@pytest.mark.parametrize("version", [1, 2])
def test_swin_of_torchvision(version: int) -> None:
    parts = torchvision.models.swin_transformer
    options = {"block": parts.SwinTransformerBlockV2, "downsample_layer": parts.PatchMergingV2} if version == 2 else {}
    model = parts.SwinTransformer([2, 2], 12, [2, 2], [2, 3], [5, 5], num_classes=3, **options).eval()
    recording = recorded(model, torch.randn(2, 3, 26, 34))
    assert [recording[address].relation.form for address in recording] == ["grouped"] * 4
    assert {recording[address].queries for address in recording} == {"stage1", "stage2"}
    assert recording.axes["stage1"][0] == Grid(13, 17, 26, 34, ("padding",))
    assert recording.axes["stage2"][0] == Grid(7, 9, 28, 36, ("padding",))
    for address in recording:
        rows = recording[address].weights()[:, :, 1:].sum(-1)
        torch.testing.assert_close(rows, torch.ones_like(rows))


def test_vit_of_torchvision_on_the_fast_path() -> None:
    model = torchvision.models.VisionTransformer(21, 7, 2, 2, 22, 37, num_classes=3).eval()
    recording = recorded(model, torch.randn(2, 3, 21, 21))
    assert recording.axes["image"][0] == Grid(3, 3, 21, 21, ("class",))
    assert recording["encoder.layers.encoder_layer_1.self_attention"].shape == (2, 2, 10, 10)


def test_a_hybrid_says_where_its_features_lie() -> None:
    class Hybrid(nn.Module):
        """A convolution that overlaps, then attention over its places, then over three object queries."""

        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 3, stride=4, padding=1)
            self.encoder_attn = nn.MultiheadAttention(8, 2, batch_first=True)
            self.objects = nn.Parameter(torch.randn(1, 3, 8))

        def forward(self, images: Tensor) -> Tensor:
            places = self.stem(images).flatten(2).mT
            places = places + F.scaled_dot_product_attention(places, places, places)
            return self.encoder_attn(self.objects.expand(len(images), -1, -1), places, places)[0]

    recording = recorded(Hybrid().eval(), torch.randn(2, 3, 20, 28))
    assert recording.roles == {"attention": ("image", "image"), "encoder_attn": ("queries", "image")}
    assert recording.axes == {"image": [Grid(5, 7, 20, 28)] * 2}
    assert recording["encoder_attn"].weights(example=1, head=0).shape == (3, 35)


def test_positions_whose_order_is_not_known_are_no_grid() -> None:
    """YOLOS has its detection tokens behind the patches; a grid would put every patch in the wrong place."""
    T = pytest.importorskip("transformers")
    sizes = {"hidden_size": 22, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 37}
    model = T.YolosModel(T.YolosConfig(image_size=[14, 21], patch_size=7, num_detection_tokens=5, **sizes)).eval()
    with torch.no_grad(), regard.record(model) as recording:
        model(pixel_values=torch.randn(2, 3, 14, 21))
    (address,) = recording.addresses
    assert recording[address].shape == (2, 2, 12, 12)
    assert recording.roles[address] == ("tokens", "tokens")
    assert not recording.axes
