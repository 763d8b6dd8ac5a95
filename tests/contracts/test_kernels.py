"""Plain, fused and blocked give the numbers of the definition; broken paths are rejected."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from regard.attention import attend, kernels
from regard.core.bias import OffsetBias
from regard.core.masks import Allow, allow_causal
from regard.core.tap import Tap

from .kernels import CASES, CLOSENESS, Case, check_all_cases, check_path

DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in CLOSENESS}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks, the last of them shorter, from a few queries."""
    monkeypatch.setattr(kernels, "BLOCK_ROWS", 7)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("path", kernels.PATHS)
def test_path_gives_the_numbers_of_the_definition(path: str, case: Case, dtype: torch.dtype) -> None:
    check_path(path, case, dtype)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_chosen_path_does_too(case: Case) -> None:
    check_path(None, case, torch.float32)


def mutant(**changes: Callable) -> Callable[..., Tensor]:
    """The plain path with some arguments replaced."""

    def path(queries, keys, values, allow, bias, scale, dropout_rate) -> Tensor:
        given = {"queries": queries, "keys": keys, "values": values, "allow": allow, "bias": bias, "scale": scale}
        given |= {name: change(given[name]) for name, change in changes.items()}
        return kernels._plain(**given, dropout_rate=dropout_rate)

    return path


def without(name: str) -> Callable[[Allow], Allow]:
    return lambda allow: Allow(**{**vars(allow), name: False if name == "causal" else None})


def nan_for_nobody(queries, keys, values, allow, bias, scale, dropout_rate) -> Tensor:
    scores = scale * queries @ keys.transpose(-1, -2)
    mask = allow.block(0, queries.shape[2], queries.shape[2], keys.shape[2])
    return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(dim=-1) @ values


def forwards_only(queries, keys, values, allow, bias, scale, dropout_rate) -> Tensor:
    return kernels._plain(queries, keys.detach() + 0 * keys, values, allow, bias, scale, dropout_rate)


MUTANTS = {
    "no causality": mutant(allow=without("causal")),
    "no window": mutant(allow=without("window")),
    "no padding": mutant(allow=without("keys")),
    "no pairs": mutant(allow=without("pairs")),
    "no bias": mutant(bias=lambda bias: None),
    "bias turned round": mutant(
        bias=lambda bias: OffsetBias(bias.values.flip(1)) if isinstance(bias, OffsetBias) else bias
    ),
    "bias without gradient": mutant(bias=lambda bias: bias.detach() + 0 * bias if isinstance(bias, Tensor) else bias),
    "own scale": mutant(scale=lambda scale: 0.3),
    "keys of another group": mutant(keys=lambda keys: keys.roll(1, dims=1)),
    "values of another key": mutant(values=lambda values: values.roll(1, dims=2)),
    "NaN for nobody": nan_for_nobody,
    "no gradient of the keys": forwards_only,
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_rejected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernels.PATHS, "mutant", MUTANTS[name])
    with pytest.raises(AssertionError):
        check_all_cases("mutant")


def test_an_unbroken_mutant_would_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernels.PATHS, "mutant", mutant())
    check_all_cases("mutant")


@pytest.mark.parametrize("path", kernels.PATHS)
@pytest.mark.parametrize("allow", [None, allow_causal(), Allow(keys=torch.zeros(2, 7, dtype=torch.bool))])
def test_gradients_agree_with_differences(path: str, allow: Allow | None) -> None:
    sizes = (2, 1, 5, 3), (2, 1, 7, 3), (2, 1, 7, 2)
    tensors = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]
    assert torch.autograd.gradcheck(lambda *given: attend(*given, allow=allow, path=path), tensors)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_no_keys_give_zeros_and_no_queries_nothing(dtype: torch.dtype) -> None:
    some, none = torch.randn(2, 3, 5, 7, dtype=dtype), torch.randn(2, 3, 0, 7, dtype=dtype)
    assert torch.equal(attend(some, none, none), torch.zeros_like(some))
    assert attend(none, some, some, allow=allow_causal()).shape == none.shape


@pytest.mark.parametrize("path", ["plain", "blocked"])
def test_dropout_keeps_the_mean(path: str) -> None:
    ones = torch.ones(1, 1, 1, 3)
    queries, keys, values = ones.expand(1, 1, 4001, 3), ones.expand(1, 1, 5, 3), ones.expand(1, 1, 5, 3)
    context = attend(queries, keys, values, dropout_rate=0.4, path=path)
    assert context.mean() == pytest.approx(1, abs=0.03)
    assert context.std() > 0.1
    torch.manual_seed(1)
    once = attend(queries, keys, values, dropout_rate=0.4, path=path)
    torch.manual_seed(1)
    assert torch.equal(attend(queries, keys, values, dropout_rate=0.4, path=path), once)


def test_blocks_drop_the_same_in_both_directions() -> None:
    """A block's weights are made again for the backward pass: with the same ones dropped."""
    queries, keys = (torch.randn(1, 1, length, 3).requires_grad_() for length in (17, 5))
    values = torch.randn(1, 1, 5, 2, requires_grad=True)
    context = attend(queries, keys, values, dropout_rate=0.5, path="blocked")
    context.sum().backward()
    # The context is linear in the values: the gradient says which weights were there.
    assert (values.grad * values).sum().item() == pytest.approx(context.sum().item(), rel=1e-5)


def test_what_is_recorded_does_not_depend_on_the_path() -> None:
    case = Case("recorded", heads=6, groups=2, causal=True, bias="offsets")
    bias, _ = case.biases()
    heard = []

    class Ear:
        def hear(self, tap: Tap, relation) -> None:
            heard.append(relation.weights())

    from regard.core.tap import listening

    with listening(Ear()):
        for path in kernels.PATHS:
            attend(*case.tensors(), allow=case.allow(), bias=bias, path=path, tap=Tap("queries", "keys"))
    assert len(heard) == len(kernels.PATHS)
    assert all(torch.equal(weights, heard[0]) for weights in heard)


def test_the_choice_is_made_by_dtype_size_and_dropout() -> None:
    small, large = torch.zeros(1, 1, 16, 8), torch.zeros(1, 1, 1024, 8)
    assert kernels.choose(small, small, small, 0.0) == "fused"
    assert kernels.choose(small, small, small, 0.1) == "plain"
    assert kernels.choose(small.bfloat16(), small.bfloat16(), small.bfloat16(), 0.0) == "plain"
    assert kernels.choose(large.bfloat16(), large.bfloat16(), large.bfloat16(), 0.0) == "blocked"
