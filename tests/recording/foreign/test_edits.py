"""Edits of other people's models: what a muted, kept or replaced head leaves of the output, beside plain torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard import edits
from regard.core.errors import EditError

from .test_calls import Attention, AttentionByHand, ByEinsum, LinearAttention, Stack, inputs

LENGTH, HEADS, WIDTH = 7, 2, 10


def by_weights(layer: Attention, given: Tensor, weights: Tensor) -> Tensor:
    return (weights @ layer.split(given)[2]).transpose(1, 2).flatten(2)


def maps_of(layer: nn.Module, given: Tensor) -> Tensor:
    with regard.record(layer) as recording:
        layer(given)
    return recording["attention"].weights()


@pytest.mark.parametrize("kind", [Attention, AttentionByHand])
def test_each_edit_beside_the_same_done_by_hand(kind: type[Attention]) -> None:
    layer, given = kind().eval(), inputs()
    weights = maps_of(layer, given)
    seen = weights > 0
    row = torch.tensor([0.5, 0.25, 0.25, 0, 0, 0, 0])
    muted, kept, even, swapped, replaced = (weights.clone() for _ in range(5))
    muted[:, 1] = 0.0
    kept[:, 1] = 0.0
    even[:, 0] = (seen / seen.sum(-1, keepdim=True))[:, 0]
    swapped = weights.flip(1)
    replaced[:, 1, 4] = row
    cases: list[tuple[edits.Edit, Tensor]] = [
        (edits.mute(1), muted),
        (edits.keep(0), kept),
        (edits.swap(0, 1), swapped),
        (edits.replace(4, row.tolist(), head=1), replaced),
    ]
    if kind is Attention:
        cases.append((edits.uniform(0), even))  # weights that were written out do not say what was allowed
    for change, expected in cases:
        with regard.edit(layer, {"attention": change}), regard.record(layer) as recording:
            found = layer(given)
        torch.testing.assert_close(found, by_weights(layer, given, expected), atol=1e-5, rtol=0)
        torch.testing.assert_close(recording["attention"].weights(), expected, atol=1e-6, rtol=0)


def test_recordings_outside_and_inside_of_edits_hear_what_was_edited() -> None:
    model, given = Stack(Attention(), AttentionByHand()).eval(), inputs()
    with (
        regard.record(model) as outside,
        regard.edit(model, {"layers.0": edits.mute(0)}),
        regard.record(model) as inside,
        regard.edit(model, {"layers.0": edits.mute(1)}),
    ):
        model(given)
    for recording in (outside, inside):
        assert not recording["layers.0"].weights().any()
    before = model(given)
    with regard.edit(model, {"layers.0": edits.mute()}):
        assert not torch.equal(model(given), before)
    assert torch.equal(model(given), before), "nothing is left behind"


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 11, "vdim": 13}])
def test_multihead_attention_of_torch(options: dict[str, Any], grad: bool) -> None:
    module = nn.MultiheadAttention(22, 2, batch_first=True, **options).eval()
    if options.get("add_bias_kv"):
        nn.init.normal_(module.bias_v)
    queries = torch.randn(3, 5, 22)
    keys, values = torch.randn(3, 7, options.get("kdim", 22)), torch.randn(3, 7, options.get("vdim", 22))
    muting = regard.edit(module, {"attention": edits.mute(0)})
    with torch.set_grad_enabled(grad), muting:
        found, weights = module(queries, keys, values, average_attn_weights=False)
        only, nothing = module(queries, keys, values, need_weights=False)
    assert nothing is None
    assert torch.equal(found, only)
    assert not weights[:, 0].any()
    plain = module(queries, keys, values, average_attn_weights=False)[1]
    torch.testing.assert_close(weights[:, 1], plain[:, 1], atol=1e-6, rtol=0)
    with torch.no_grad():
        module.out_proj.weight[:, :11] = 0.0  # what the first head has written
    torch.testing.assert_close(found, module(queries, keys, values)[0], atol=1e-5, rtol=0)


def test_layers_that_torch_would_run_as_one_operation() -> None:
    layer = nn.TransformerEncoderLayer(22, 2, 37, batch_first=True).eval()
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    given = torch.randn(3, 5, 22)
    with torch.no_grad():
        with regard.edit(model, {"layers.1.self_attn": edits.mute(1)}), regard.record(model) as recording:
            found = model(given)
        model.layers[1].self_attn.out_proj.weight[:, 11:] = 0.0
        torch.testing.assert_close(found, model(given), atol=1e-5, rtol=0)
    assert not recording["layers.1.self_attn"].weights(head=1).any()
    assert recording["layers.0.self_attn"].weights(head=1).any()


def test_models_of_transformers() -> None:
    pytest.importorskip("transformers")
    from .transformers_subjects import SUBJECTS, awake

    for name in ("bert", "llama", "t5"):
        model = awake(SUBJECTS[name].build())
        given = SUBJECTS[name].inputs()
        address = {"bert": "encoder.layer.1.attention.self", "llama": "layers.1.self_attn"}.get(
            name, "decoder.block.1.layer.1.EncDecAttention"
        )
        output = {"bert": "encoder.layer.1.attention.output.dense", "llama": "layers.1.self_attn.o_proj"}.get(
            name, "decoder.block.1.layer.1.EncDecAttention.o"
        )
        with torch.no_grad():
            with regard.edit(model, {address: edits.mute(2)}), regard.record(model) as recording:
                found = model(**given).last_hidden_state
            heads = recording[address].shape[1]
            assert not recording[address].weights(head=2).any()
            weight = model.get_submodule(output).weight
            width = weight.shape[1] // heads
            weight[:, 2 * width : 3 * width] = 0.0
            torch.testing.assert_close(found, model(**given).last_hidden_state, atol=1e-4, rtol=0)


def test_one_pass_of_a_layer_that_runs_several_times() -> None:
    pytest.importorskip("transformers")
    from .transformers_subjects import SUBJECTS, awake

    model, given = awake(SUBJECTS["albert"].build()), SUBJECTS["albert"].inputs()
    with torch.no_grad():
        with regard.edit(model, {"*attention#3": edits.mute()}), regard.record(model) as one:
            model(**given)
        with regard.edit(model, {"*attention": edits.mute(1)}), regard.record(model) as all_of_them:
            model(**given)
    silent = [not one[address].weights().any() for address in one]
    assert silent == [False, False, True, False, False]
    assert not any(all_of_them[address].weights(head=1).any() for address in all_of_them)


def test_steps_of_generate() -> None:
    T = pytest.importorskip("transformers")
    from .transformers_subjects import SUBJECTS, awake, text

    model = awake(T.LlamaForCausalLM(SUBJECTS["llama"].build().config))
    given = text(padded=0)
    change = {"model.layers.*": edits.mute(0), "model.layers.1.*": edits.uniform(3)}
    with torch.no_grad(), regard.edit(model, change):
        with regard.record(model) as recording:
            found = model.generate(**given, max_new_tokens=5, do_sample=False, pad_token_id=0, eos_token_id=None)
        again = model(found).logits.argmax(-1)
    assert torch.equal(again[:, 12:-1], found[:, 13:]), "steps behind a cache are edited as the whole is"
    weights = recording["model.layers.1.self_attn"].weights()
    assert not weights[:, 0].any()
    torch.testing.assert_close(weights[0, 3, -1], torch.full((17,), 1 / 17))


@pytest.mark.parametrize("fused", [True, False])
def test_a_row_of_a_grid_with_windows(fused: bool) -> None:
    """Positions are those of the grid behind the padding, not those inside a window."""
    timm = pytest.importorskip("timm")
    block = timm.models.swin_transformer.SwinTransformerBlock(12, (7, 9), num_heads=2, window_size=4, shift_size=2)
    block.eval().attn.fused_attn = fused
    grid = torch.randn(1, 7, 9, 12)
    with torch.no_grad():
        with regard.record(block) as unchanged:
            plain = block(grid)
        weights = torch.zeros(64)
        visible = unchanged["attn"].weights(example=0, head=0)[5].nonzero()[:, 0]
        weights[int(visible[-1])] = 1.0
        with regard.edit(block, {"attn": edits.replace(5, weights.tolist())}), regard.record(block) as recording:
            changed = block(grid)
    moved = ((changed - plain).abs() > 1e-5).any(-1).flatten().nonzero()[:, 0].tolist()
    assert moved == [4], "place 4 is position 5, behind the padding"
    assert torch.equal(recording["attn"].weights(example=0, head=1)[5], weights)


def test_weights_that_are_multiplied_by_letters() -> None:
    layer, given = ByEinsum().eval(), inputs()
    with regard.record(layer) as recording:
        layer(given)
    (address,) = recording.addresses
    weights = recording[address].weights()
    with regard.edit(layer, {address: edits.keep(1)}):
        found = layer(given)
    weights[:, 0] = 0.0
    torch.testing.assert_close(found, by_weights(layer, given, weights), atol=1e-5, rtol=0)


def test_a_layer_that_cannot_be_edited_is_named() -> None:
    model = Stack(Attention(), LinearAttention()).eval()

    def change() -> None:
        with regard.edit(model, {"layers.1": edits.mute(0)}):
            model(inputs())

    with pytest.raises(EditError, match=r"never took effect: mute at layers\.1"):
        change()


def test_gradients_reach_values_of_an_edited_layer() -> None:
    layer, given = Attention(), inputs().requires_grad_()
    with regard.edit(layer, {"attention": edits.uniform()}):
        layer(given).sum().backward()
    assert given.grad is not None
    assert F.l1_loss(given.grad, torch.zeros_like(given)) > 0
