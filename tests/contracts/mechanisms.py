"""Contracts of attention mechanisms. The subject is a function that makes one with equal widths, `WIDTH` each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from regard.attention import Mechanism
from regard.core.bias import OffsetBias
from regard.core.masks import Allow, allow_causal, allow_padding, allow_window
from regard.recording import record

BATCH, HEADS, QUERIES, KEYS, WIDTH, VALUE_WIDTH = 2, 3, 5, 7, 11, 13

Make = Callable[[], Mechanism]


def inputs(queries: int = QUERIES, keys: int = KEYS, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, several heads each."""
    generator = torch.Generator().manual_seed(seed)
    sizes = (BATCH, HEADS, queries, WIDTH), (BATCH, HEADS, keys, WIDTH), (BATCH, HEADS, keys, VALUE_WIDTH)
    first, second, third = (torch.randn(size, generator=generator) for size in sizes)
    return first, second, third


def masks(queries: int = QUERIES, keys: int = KEYS) -> Iterator[Allow]:
    """Every kind of condition, together with rows that are left without any key."""
    generator = torch.Generator().manual_seed(1)
    present = torch.ones(BATCH, keys, dtype=torch.bool)
    present[0, 2:] = False
    nobody = present.clone()
    nobody[1] = False
    pairs = torch.rand(BATCH, HEADS, queries, keys, generator=generator) < 0.5
    pairs[0, 1, 2] = False
    yield Allow()
    yield allow_causal()
    yield allow_window(1)
    yield allow_padding(present)
    yield allow_padding(nobody)
    yield Allow(pairs=pairs)
    yield Allow(pairs=pairs) & allow_causal() & allow_padding(present)


def seen(mechanism: Mechanism, *tensors: Tensor, **options: object) -> tuple[Tensor, Tensor]:
    """The context and the weights that were recorded."""
    with record(mechanism) as recording:
        context = mechanism(*tensors, **options)
    return context, recording["attention"].relation.weights()


def full(allow: Allow, queries: int = QUERIES, keys: int = KEYS) -> Tensor:
    mask = allow.matrix(queries, keys)
    whole = torch.ones(BATCH, HEADS, queries, keys, dtype=torch.bool)
    return whole if mask is None else mask.expand(whole.shape)


def check_rows_sum_to_one(make: Make) -> None:
    mechanism = make()
    for allow in masks():
        _, weights = seen(mechanism, *inputs(), allow=allow)
        assert (weights >= 0).all(), "a weight is negative"
        somebody = full(allow).any(dim=-1).float()
        torch.testing.assert_close(weights.sum(dim=-1), somebody, rtol=0, atol=1e-5)


def check_masked_weights_are_zero(make: Make) -> None:
    """Exactly zero, in what is recorded and in what the context is made of."""
    mechanism = make()
    queries, keys, values = inputs()
    for allow in masks():
        _, weights = seen(mechanism, queries, keys, values, allow=allow)
        assert not weights[~full(allow)].any(), "a masked weight is not exactly zero"
    present = torch.ones(BATCH, KEYS, dtype=torch.bool)
    present[:, 3:] = False
    planted_keys, planted_values = keys.clone(), values.clone()
    planted_keys[:, :, 3:] *= 100
    planted_values[:, :, 3:] = 1e6
    context = mechanism(queries, keys, values, allow=allow_padding(present))
    planted = mechanism(queries, planted_keys, planted_values, allow=allow_padding(present))
    torch.testing.assert_close(planted, context, rtol=0, atol=1e-5)


def check_empty_rows_are_zero(make: Make) -> None:
    """Zero and not NaN: context, recorded weights and gradients. Also where causality alone leaves no key."""
    mechanism = make()
    for num_queries, num_keys in ((QUERIES, KEYS), (KEYS, QUERIES)):
        for allow in masks(num_queries, num_keys):
            tensors = [tensor.requires_grad_() for tensor in inputs(num_queries, num_keys)]
            context, weights = seen(mechanism, *tensors, allow=allow)
            empty = ~full(allow, num_queries, num_keys).any(dim=-1)
            assert not context[empty].any(), "a row without keys has a context"
            assert not weights[empty].any(), "a row without keys has weights"
            mechanism.zero_grad()
            context.square().sum().backward()
            for tensor in (*tensors, *mechanism.parameters()):
                assert tensor.grad is None or tensor.grad.isfinite().all(), "a row without keys spoils the gradient"
            assert not tensors[0].grad[empty].any(), "a row without keys has a gradient"


def check_ignores_the_future(make: Make) -> None:
    mechanism = make()
    queries, keys, values = inputs(KEYS, KEYS)
    context = mechanism(queries, keys, values, allow=allow_causal())
    place, changed = 4, False
    for sign in (1, -1):
        planted_keys, planted_values = keys.clone(), values.clone()
        planted_keys[:, :, place] = sign * 10 * queries[:, :, place - 1]
        planted_values[:, :, place] = 1e6
        planted = mechanism(queries, planted_keys, planted_values, allow=allow_causal())
        torch.testing.assert_close(planted[:, :, :place], context[:, :, :place], rtol=0, atol=1e-5)
        changed |= not torch.allclose(planted[:, :, place:], context[:, :, place:])
    assert changed, "what was planted is not seen by anybody"


def check_one_query_at_a_time(make: Make) -> None:
    """A decoder that goes step by step gets what training computes for all positions at once."""
    mechanism = make()
    queries, keys, values = inputs(KEYS, KEYS)
    whole = mechanism(queries, keys, values, allow=allow_causal())
    prepared = mechanism.prepare(keys)
    for step in range(KEYS):
        now, past = slice(step, step + 1), slice(0, step + 1)
        context = mechanism.attend(queries[:, :, now], prepared[:, :, past], values[:, :, past], allow=allow_causal())
        torch.testing.assert_close(context, whole[:, :, now], rtol=1e-5, atol=1e-5)


def check_alone_equals_batch(make: Make) -> None:
    mechanism = make()
    queries, keys, values = inputs()
    present = torch.ones(BATCH, KEYS, dtype=torch.bool)
    present[1, 4:] = False
    context = mechanism(queries, keys, values, allow=allow_padding(present))
    torch.testing.assert_close(mechanism(queries[:1], keys[:1], values[:1]), context[:1], rtol=1e-5, atol=1e-5)
    alone = mechanism(queries[1:], keys[1:, :, :4], values[1:, :, :4])
    torch.testing.assert_close(alone, context[1:], rtol=1e-5, atol=1e-5)


def check_without_heads(make: Make) -> None:
    """(batch, positions, width) is the same as one head."""
    mechanism = make()
    queries, keys, values = (tensor[:, 0] for tensor in inputs())
    beside = mechanism(*(tensor[:, None] for tensor in (queries, keys, values)), allow=allow_window(2))
    torch.testing.assert_close(mechanism(queries, keys, values, allow=allow_window(2)), beside[:, 0])


def check_every_parameter_gets_a_gradient(make: Make) -> None:
    mechanism = make()
    mechanism(*(tensor.requires_grad_() for tensor in inputs())).square().sum().backward()
    for name, parameter in mechanism.named_parameters():
        assert parameter.grad is not None, f"{name} gets no gradient"
        assert parameter.grad.any(), f"{name} gets no gradient"


def check_recorded_weights_give_the_context(make: Make) -> None:
    mechanism = make()
    queries, keys, values = inputs()
    for allow in masks():
        context, weights = seen(mechanism, queries, keys, values, allow=allow)
        torch.testing.assert_close(weights @ values, context, rtol=1e-5, atol=1e-5)


def check_recording_changes_nothing(make: Make) -> None:
    """Bit for bit: contexts, gradients and the random numbers that come after."""
    for training, autocast in ((False, False), (True, False), (True, True)):
        results = []
        for recorded in (False, True):
            torch.manual_seed(5)
            mechanism = make().train(training)
            mechanism.dropout_rate = 0.3
            tensors = [tensor.requires_grad_() for tensor in inputs()]
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                if recorded:
                    context, _ = seen(mechanism, *tensors, allow=allow_window(2))
                else:
                    context = mechanism(*tensors, allow=allow_window(2))
            context.float().square().sum().backward()
            gradients = [tensor.grad for tensor in (*tensors, *mechanism.parameters())]
            results.append([context, *gradients, torch.get_rng_state()])
        for without, with_recording in zip(*results, strict=True):
            assert torch.equal(without, with_recording), "recording changes what is computed"


def check_bias_is_added_to_the_scores(make: Make) -> None:
    """A bias so low that it hides a pair does what a mask does; one number a distance is one number a pair."""
    mechanism = make()
    queries, keys, values = inputs()
    for allow in masks():
        hidden = torch.rand(HEADS, QUERIES + KEYS - 1, generator=torch.Generator().manual_seed(2)) < 0.3
        by_distance = OffsetBias(torch.where(hidden, -1e5, 0.0))
        by_pair = by_distance.block(0, QUERIES, QUERIES, KEYS)[None]
        both = full(allow) & (by_pair == 0)
        some_left = both.any(dim=-1, keepdim=True)
        expected = mechanism(queries, keys, values, allow=both)
        for bias in (by_distance, by_pair.expand(BATCH, -1, -1, -1)):
            context, weights = seen(mechanism, queries, keys, values, allow=allow, bias=bias)
            torch.testing.assert_close(context * some_left, expected, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(weights @ values, context, rtol=1e-5, atol=1e-5)


def check_nothing_is_left_behind(make: Make) -> None:
    """No tensor on the module, and a second call is not changed by the first."""
    mechanism = make()
    once = mechanism(*inputs(seed=3))
    mechanism(*inputs(seed=4))
    left = [name for name, value in vars(mechanism).items() if isinstance(value, Tensor)]
    assert not left, f"tensors are left on the module: {left}"
    assert torch.equal(mechanism(*inputs(seed=3)), once), "a call depends on the one before"


def check_state_dict_holds_everything(make: Make) -> None:
    torch.manual_seed(6)
    one = make()
    torch.manual_seed(7)
    other = make()
    other.load_state_dict(one.state_dict())
    assert torch.equal(other(*inputs()), one(*inputs())), "something learned is not in the state"


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}
