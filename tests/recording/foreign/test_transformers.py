"""Models of `transformers` with random weights: recordings equal their own maps, outputs are the same bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils import _pytree

import regard
from regard.core.errors import RecordingError
from regard.core.grouped import GroupedRelation
from regard.recording import Recording
from regard.recording.foreign.transformers_models import related

from .transformers_subjects import SUBJECTS, Subject, awake, own_maps, text

T = pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def quiet() -> None:
    T.logging.set_verbosity_error()


def tensors(output: Any) -> list[Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(output) if isinstance(leaf, Tensor)]


def with_implementation(subject: Subject, implementation: str) -> nn.Module:
    model = awake(subject.build())
    try:
        model.set_attn_implementation(implementation)  # type: ignore[operator]
    except ValueError:
        pytest.skip(f"this model has no {implementation}")
    return model


def of_windows(recording: Recording, address: str) -> Tensor:
    """The map as the model has it: inside its windows, if it has any."""
    relation = recording.relations[address]
    return relation.inner.weights() if isinstance(relation, GroupedRelation) else relation.weights()


def belongs(address: str, part: str) -> bool:
    if part == "decoder.self":
        return "decoder." in address and "self_attn" in address
    if part == "decoder.cross":
        return "encoder_attn" in address
    return ("decoder." in address) == part.startswith("layer.") and part in address


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", SUBJECTS)
def test_recordings_equal_the_models_own_maps(name: str, implementation: str) -> None:
    subject = SUBJECTS[name]
    model, inputs = with_implementation(subject, implementation), subject.inputs()
    with torch.no_grad():
        plain = model(**inputs)
        with regard.record(model) as recording:
            recorded = model(**inputs)
        again = model(**inputs)
        model.set_attn_implementation("eager")  # type: ignore[operator]
        maps = own_maps(subject, model(**inputs, output_attentions=True))
    for one, other, third in zip(tensors(plain), tensors(recorded), tensors(again), strict=True):
        assert torch.equal(one, other), "recording changes nothing"
        assert torch.equal(one, third), "and leaves nothing behind"
    compared = 0
    for part, own in maps.items():
        addresses = [address for address in recording if belongs(address, part)]
        # Swin gives the maps of the last block of each stage only.
        step = len(addresses) // len(own)
        assert len(addresses) == step * len(own), (addresses, len(own))
        for address, expected in zip(addresses[step - 1 :: step], own, strict=True):
            found = of_windows(recording, address)
            if "attention_mask" in inputs and found.shape[2] == found.shape[3] == inputs["attention_mask"].shape[1]:
                # A padded query that may see nothing is uniform in eager attention, and nothing in sdpa.
                present = inputs["attention_mask"].bool()[:, None, :, None]
                found, expected = found * present, expected * present
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
            compared += 1
    assert compared == sum(len(own) for own in maps.values()) > 0


def test_a_block_mask_of_flex_attention_is_read() -> None:
    from torch.nn.attention.flex_attention import create_block_mask

    present = text()["attention_mask"].bool()
    mask = create_block_mask(
        lambda b, h, q, k: (k <= q) & present[b, k], B=2, H=None, Q_LEN=13, KV_LEN=13, device="cpu"
    )
    queries, keys = torch.randn(2, 6, 13, 5), torch.randn(2, 3, 13, 5)
    values = torch.randn(2, 3, 13, 7)
    pairs = present[:, None, None] & torch.ones(13, 13, dtype=torch.bool).tril()
    context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=pairs, enable_gqa=True)
    given = ("flex_attention", nn.Identity(), queries, keys, values, mask, {})
    relation = related(*given, (context.transpose(1, 2), None))
    assert (relation.allow.causal, relation.allow.pairs) == (True, None)
    with pytest.raises(RecordingError, match="what its function 'flex_attention' returned does not follow"):
        related(*given, (context.transpose(1, 2) + 0.1, None))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:_compile flag on create_block_mask:DeprecationWarning")
def test_flex_attention_with_its_block_masks() -> None:
    subject = SUBJECTS["llama"]
    model, inputs = with_implementation(subject, "flex_attention"), subject.inputs()
    with torch.no_grad():
        with regard.record(model, taps="layers.1.*") as recording:
            model(**inputs)
        model.set_attn_implementation("eager")  # type: ignore[operator]
        own = model(**inputs, output_attentions=True).attentions[1]
    present = inputs["attention_mask"].bool()[:, None, :, None]
    torch.testing.assert_close(recording["layers.1.self_attn"].weights() * present, own * present, atol=1e-5, rtol=0)


def test_masks_and_biases_are_kept_in_their_smallest_form() -> None:
    forms = {}
    for name in ("bert", "gpt2", "mistral", "t5"):
        model, inputs = with_implementation(SUBJECTS[name], "sdpa"), SUBJECTS[name].inputs()
        with torch.no_grad(), regard.record(model) as recording:
            model(**inputs)
        for address in recording:
            relation = recording.relations[address]
            assert relation.allow.pairs is None, f"{name}: {address}"
            forms[name] = (relation.allow.causal, relation.allow.window, set(relation.tensors()))
        if name == "t5":
            assert "bias_offsets" in recording.relations["encoder.block.1.layer.0.SelfAttention"].tensors()
    assert forms["bert"] == (False, None, {"queries", "keys", "allow_keys", "value_norms"})
    assert forms["gpt2"] == (True, None, {"queries", "keys", "allow_keys", "value_norms"})
    assert forms["mistral"] == (True, 4, {"queries", "keys", "allow_keys", "value_norms"})


def test_heads_that_share_keys_share_them_in_the_recording() -> None:
    model = with_implementation(SUBJECTS["llama"], "sdpa")
    with torch.no_grad(), regard.record(model) as recording:
        model(**text(padded=0))
    relation = recording.relations["layers.0.self_attn"]
    assert (relation.queries.shape[1], relation.keys.shape[1]) == (6, 3)


def test_layers_that_share_weights_are_told_apart_by_number() -> None:
    model = with_implementation(SUBJECTS["albert"], "sdpa")
    shared = "encoder.albert_layer_groups.0.albert_layers.0.attention"
    with torch.no_grad():
        with regard.record(model) as recording:
            model(**text())
        assert recording.addresses == [f"{shared}#{number}" for number in range(1, 6)]
        with regard.record(model, taps="*#3") as third:
            model(**text())
    assert third.addresses == [f"{shared}#3"]


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("left", [False, True])
def test_steps_of_generate_are_one_causal_map(cache: str, left: bool) -> None:
    model = T.LlamaForCausalLM(SUBJECTS["llama"].build().config)
    awake(model)
    inputs = text(left=True, padded=4 if left else 0)
    options = {"max_new_tokens": 7, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    with torch.no_grad():
        plain = model.generate(**inputs, **options, cache_implementation=cache)
        with regard.record(model) as recording:
            found = model.generate(**inputs, **options, cache_implementation=cache)
        present = torch.cat([inputs["attention_mask"], torch.ones(2, 6, dtype=torch.int64)], dim=1)
        model.set_attn_implementation("eager")
        positions = (present.cumsum(1) - 1).clamp(min=0)
        own = model(found[:, :-1], attention_mask=present, position_ids=positions, output_attentions=True).attentions
    assert torch.equal(plain, found)
    for layer, expected in enumerate(own):
        weights = recording[f"model.layers.{layer}.self_attn"].weights()
        rows = present.bool()[:, None, :, None]
        torch.testing.assert_close(weights[..., :19] * rows, expected * rows, atol=1e-5, rtol=0)
        assert not weights[..., 19:].any(), "the empty end of a cache of fixed size"


def test_steps_of_an_encoder_decoder() -> None:
    model = T.MarianMTModel(SUBJECTS["marian"].build().config)
    awake(model)
    inputs = text()
    with torch.no_grad():
        with regard.record(model) as recording:
            found = model.generate(**inputs, max_new_tokens=5, num_beams=1, do_sample=False)
        model.set_attn_implementation("eager")
        own = model(**inputs, decoder_input_ids=found[:, :-1], output_attentions=True)
    steps = found.shape[1] - 1
    for layer in range(2):
        cross = recording[f"model.decoder.layers.{layer}.encoder_attn"]
        assert (cross.queries, cross.keys, cross.shape) == ("target", "source", (2, 11, steps, 13))
        torch.testing.assert_close(cross.weights(), own.cross_attentions[layer], atol=1e-5, rtol=0)
        steps_of_own = recording[f"model.decoder.layers.{layer}.self_attn"].weights()
        torch.testing.assert_close(steps_of_own, own.decoder_attentions[layer], atol=1e-5, rtol=0)


def test_a_beam_search_that_moves_its_hypotheses_is_an_error() -> None:
    model = T.MarianMTModel(SUBJECTS["marian"].build().config)
    awake(model)

    def search() -> None:
        with torch.no_grad(), regard.record(model, taps="*decoder*self_attn"):
            model.generate(**text(), max_new_tokens=11, num_beams=5, do_sample=False)

    with pytest.raises(RecordingError, match=r"model\.decoder\.layers\.0\.self_attn: .*a beam search has moved"):
        search()


def test_two_calls_of_an_encoder_are_not_steps() -> None:
    model = with_implementation(SUBJECTS["bert"], "sdpa")

    def twice() -> None:
        with torch.no_grad(), regard.record(model):
            model(**text())
            model(**text())

    with pytest.raises(
        RecordingError, match=r"encoder\.layer\.0\.attention\.self: .*called twice with whole sequences"
    ):
        twice()


def test_an_attention_function_that_cannot_be_read_is_an_error_with_the_layers_name() -> None:
    """Its maps are queries times keys, but not what the layer goes on with: a picture of them would be a lie."""

    def negative(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, **options: Any) -> Any:
        weights = (-scaling * query @ key.transpose(2, 3)).softmax(-1)
        return (weights @ value).transpose(1, 2), None

    T.AttentionInterface.register("negative", negative)
    model = with_implementation(SUBJECTS["bert"], "negative")

    def call() -> None:
        with torch.no_grad(), regard.record(model):
            model(**text(padded=0))

    with pytest.raises(RecordingError, match=r"encoder\.layer\.1\.attention\.self: what its function 'negative'"):
        call()


def test_in_training_with_dropout_and_gradients() -> None:
    model = with_implementation(SUBJECTS["bert"], "sdpa").train()
    inputs = text()

    def loss(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return model(**inputs).last_hidden_state.square().mean()

    expected = loss(3)
    with regard.record(model) as recording:
        found = loss(3)
    found.backward()
    assert torch.equal(expected, found)
    weights = recording["encoder.layer.1.attention.self"].weights()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 11, 13))
    assert not weights.requires_grad


def test_gradient_checkpoints_are_heard_once() -> None:
    model = with_implementation(SUBJECTS["bert"], "sdpa").train()
    model.activation_checkpointing_enable({"use_reentrant": False})  # type: ignore[operator]
    with regard.record(model) as recording:
        model(**text()).last_hidden_state.sum().backward()
    assert [recording[address].shape for address in recording] == [(2, 11, 13, 13)] * 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_short_floats(dtype: torch.dtype) -> None:
    model = with_implementation(SUBJECTS["llama"], "sdpa").to(dtype)
    inputs = text(padded=0)
    with torch.no_grad(), regard.record(model) as recording:
        model(**inputs)
    assert recording.relations["layers.0.self_attn"].queries.dtype == dtype
    with torch.no_grad():
        model.set_attn_implementation("eager")  # type: ignore[operator]
        own = model(**inputs, output_attentions=True).attentions[0]
    torch.testing.assert_close(recording["layers.0.self_attn"].weights(), own.float(), atol=0.02, rtol=0)
