"""What is heard and by whom: functions, threads, nesting, errors, layers that nobody hears."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard.attention import build_mechanism
from regard.core.errors import RecordingError
from regard.recording import Recording


class Attention(nn.Module):
    """The fused call, between projections."""

    def __init__(self, width: int = 10, heads: int = 2) -> None:
        super().__init__()
        self.project = nn.Linear(width, 3 * width)
        self.num_heads = heads

    def split(self, inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.project(inputs).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4))

    def forward(self, inputs: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(*self.split(inputs), is_causal=True).transpose(1, 2).flatten(2)


class AttentionByHand(Attention):
    """The same written out."""

    def forward(self, inputs: Tensor) -> Tensor:
        queries, keys, values = self.split(inputs)
        scores = queries @ keys.mT * queries.shape[-1] ** -0.5
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        weights = F.dropout(F.softmax(scores.masked_fill(later, float("-inf")), dim=-1), 0.5, self.training)
        return (weights @ values).transpose(1, 2).flatten(2)


class ByEinsum(AttentionByHand):
    """With letters, heads and examples on one axis, and a sink that is cut off."""

    def forward(self, inputs: Tensor) -> Tensor:
        queries, keys, values = (part.flatten(0, 1) for part in self.split(inputs))
        scores = torch.einsum("bqd,bkd->bqk", queries, keys) * queries.shape[-1] ** -0.5
        scores = torch.cat([scores, torch.zeros_like(scores[..., :1])], dim=-1)
        weights = scores.softmax(dim=2)[..., :-1].to(values.dtype)
        context = torch.einsum("bqk,bkd->bqd", weights, values)
        return context.unflatten(0, (-1, self.num_heads)).transpose(1, 2).flatten(2)


class LinearAttention(Attention):
    """Attention without a softmax: nothing to hear."""

    def forward(self, inputs: Tensor) -> Tensor:
        queries, keys, values = self.split(inputs)
        return (queries @ (keys.mT @ values)).transpose(1, 2).flatten(2)


class Stack(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, inputs: Tensor) -> Tensor:
        for layer in self.layers:
            inputs = inputs + layer(inputs)
        return inputs


def inputs(batch: int = 3, length: int = 7) -> Tensor:
    return torch.randn(batch, length, 10)


def recorded(model: nn.Module | Callable[[Tensor], Tensor], given: Tensor) -> Recording:
    plain = model(given)
    with regard.record(model) as recording:
        assert torch.equal(plain, model(given))
    return recording


def test_three_ways_to_write_the_same() -> None:
    fused, by_hand = Attention(), AttentionByHand()
    by_hand.load_state_dict(fused.state_dict())
    given = inputs()
    one = recorded(Stack(fused).eval(), given)["layers.0"]
    other = recorded(Stack(by_hand).eval(), given)["layers.0"]
    assert (one.relation.form, other.relation.form) == ("dot", "dense")
    torch.testing.assert_close(one.weights(), other.weights(), atol=1e-6, rtol=0)
    by_einsum = ByEinsum()
    by_einsum.load_state_dict(fused.state_dict())
    sunk = recorded(Stack(by_einsum).eval(), given)["layers.0"].weights()
    queries, keys, _ = by_einsum.split(given)
    scores = (queries @ keys.mT * 5**-0.5).exp()
    torch.testing.assert_close(sunk, (scores / (1 + scores.sum(-1, keepdim=True))).detach(), atol=1e-5, rtol=1e-5)


def test_written_out_weights_are_those_before_dropout() -> None:
    model = Stack(AttentionByHand()).train()
    with regard.record(model) as recording:
        model(inputs())
    torch.testing.assert_close(recording["layers.0"].weights().sum(-1), torch.ones(3, 2, 7))


def test_a_function_of_ones_own() -> None:
    def look(given: Tensor) -> Tensor:
        def twice(queries: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(queries, given, given, scale=0.5)

        return twice(twice(given))

    given = inputs()
    recording = recorded(look, given)
    first, second = recording.addresses
    assert (first[-7:], second[-7:]) == ("twice#1", "twice#2")
    torch.testing.assert_close(recording[first].weights(head=0), (0.5 * given @ given.mT).softmax(-1))


@pytest.mark.parametrize("shape", [(5, 4), (3, 5, 4), (2, 3, 5, 4), (2, 7, 3, 5, 4)])
def test_axes_in_front_are_examples_and_heads(shape: tuple[int, ...]) -> None:
    queries, mask = torch.randn(shape), torch.rand(5, 5) < 0.7
    mask[:, 0] = True

    def call(given: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(given, given, given, attn_mask=mask)

    weights = recorded(call, queries)[f"{call.__qualname__.replace('<locals>.', '')}"].weights()
    expected = (queries @ queries.mT / 2).masked_fill(~mask, float("-inf")).softmax(-1)
    torch.testing.assert_close(weights.flatten(0, 1), expected.reshape(-1, 5, 5))


def test_torch_aligns_its_causal_mask_at_the_start() -> None:
    queries, keys = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 7, 5)

    def call(given: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(given, keys, keys, is_causal=True)

    recording = recorded(call, queries)
    (address,) = recording.addresses
    assert torch.equal(recording[address].weights() > 0, torch.ones(4, 7).tril().bool().expand(2, 3, -1, -1))


def test_a_layer_that_is_attention_and_was_not_heard_is_named() -> None:
    model = Stack(Attention(), LinearAttention())
    with pytest.raises(RecordingError, match=r"taps of Stack stayed silent: layers\.1\."):
        recorded(model, inputs())
    assert recorded_part(model, "layers.0").addresses == ["layers.0"]


def recorded_part(model: nn.Module, taps: str) -> Recording:
    with regard.record(model, taps) as recording:
        model(inputs())
    return recording


def test_a_layer_that_was_not_called_is_named() -> None:
    model = Stack(Attention(), nn.MultiheadAttention(10, 2))
    with pytest.raises(RecordingError, match=r"stayed silent: layers\.0, layers\.1\."), regard.record(model):
        pass


def test_a_model_without_attention() -> None:
    class Doubling(nn.Module):
        def forward(self, given: Tensor) -> Tensor:
            return given + given

    with pytest.raises(RecordingError, match="No attention of Doubling was heard"):
        recorded(Doubling(), inputs())
    with pytest.raises(RecordingError, match=r"Its taps: layers\.0\."):
        regard.record(Stack(Attention()), taps="encoder.*").__enter__()


def test_models_beside_each_other_and_one_inside_another() -> None:
    model, other = Stack(Attention(), AttentionByHand()).eval(), Stack(Attention()).eval()
    given = inputs()
    with regard.record(model) as outer:
        with regard.record(model, taps="layers.1") as inner, regard.record(other) as second:
            other(inputs(batch=5))
            model(given)
        assert inner.addresses == ["layers.1"]
        assert second["layers.0"].shape[0] == 5
    assert outer.addresses == ["layers.0", "layers.1"]
    assert torch.equal(outer["layers.1"].weights(), inner["layers.1"].weights())


def test_models_of_ours_and_of_others_in_one() -> None:
    ours = build_mechanism("additive", 10, 10, 10, queries="target", keys="source")

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = Stack(Attention())
            self.decoder = ours
            self.dot = build_mechanism("dot", 10, 10, 10, queries="target", keys="source")

        def forward(self, given: Tensor) -> Tensor:
            memory = self.encoder(given)
            return self.decoder(given, memory, memory) + self.dot(given, memory, memory)

    recording = recorded(Both().eval(), inputs())
    assert recording.addresses == ["decoder", "dot", "encoder.layers.0"]


def test_every_thread_hears_itself() -> None:
    model = Stack(Attention(), AttentionByHand()).eval()
    found: dict[int, Recording] = {}
    plain = {size: inputs(batch=size) for size in range(2, 8)}
    ready = threading.Barrier(len(plain))

    def run(size: int) -> None:
        ready.wait()
        for _ in range(5):
            with torch.no_grad(), regard.record(model) as recording:
                model(plain[size])
            found[size] = recording

    threads = [threading.Thread(target=run, args=(size,)) for size in plain]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for size, given in plain.items():
        with torch.no_grad(), regard.record(model) as alone:
            model(given)
        for address in alone:
            assert torch.equal(found[size][address].weights(), alone[address].weights())


def test_everything_is_put_back_when_the_model_raises() -> None:
    class Failing(nn.Module):
        def forward(self, given: Tensor) -> Tensor:
            raise KeyError("mine")

    before = torch.overrides.has_torch_function
    heard = []

    def fail() -> None:
        model = Stack(Attention(), Failing())
        with regard.record(model) as recording:
            heard.append(recording)
            assert torch.overrides.has_torch_function is not before
            model(inputs())

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert len(heard[0]) == 0
    assert torch.overrides.has_torch_function is before
    assert torch._C._len_torch_function_stack() == 0


def test_tensors_that_are_written_into_later_are_copied_or_refused() -> None:
    buffer = torch.zeros(1, 2, 7, 5)

    def call(given: Tensor) -> Tensor:
        buffer[:, :, :3] = given
        return F.scaled_dot_product_attention(given, buffer[:, :, :3], buffer[:, :, :3])

    given = torch.randn(1, 2, 3, 5)
    with regard.record(call) as recording:
        call(given)
        buffer.zero_()
    weights = recording[recording.addresses[0]].weights()
    torch.testing.assert_close(weights, (given @ given.mT * 5**-0.5).softmax(-1))


def test_a_recording_of_a_foreign_model_is_saved_and_read(tmp_path: object) -> None:
    recording = recorded(Stack(Attention(), AttentionByHand()).eval(), inputs())
    again = Recording.load(recording.save(f"{tmp_path}/foreign.regard"))
    for address in recording:
        assert torch.equal(again[address].weights(), recording[address].weights())
    assert again.roles == recording.roles
