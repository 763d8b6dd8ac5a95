"""The contract of kernels: every path gives the numbers of the definition, forwards and backwards.

The definition is written out in float64 from a matrix of who may attend to whom that is made pair by pair, without
`regard.core.masks`. How close a path has to be, as a share of the largest number:

    float64   1e-12
    float32   1e-5
    bfloat16  0.02     (its numbers have 8 bits: about 0.004 of their size, and a sum of products several of those)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention import attend, kernels
from regard.core.bias import OffsetBias
from regard.core.masks import Allow

CLOSENESS = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.02}
BATCH, WIDTH, VALUE_WIDTH = 2, 11, 13


@dataclass(frozen=True)
class Case:
    """One call of `attend`. `pairs` is the number of axes of a mask that is given pair by pair."""

    name: str
    heads: int = 3
    groups: int = 3
    queries: int = 17
    keys: int = 19
    causal: bool = False
    window: int | None = None
    padding: bool = False
    pairs: int = 0
    bias: str = ""
    scale: float | None = None

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        generator = torch.Generator().manual_seed(len(self.name))
        sizes = (
            (BATCH, self.heads, self.queries, WIDTH),
            (BATCH, self.groups, self.keys, WIDTH),
            (BATCH, self.groups, self.keys, VALUE_WIDTH),
        )
        first, second, third = (torch.randn(size, generator=generator) for size in sizes)
        return first, second, third

    def present(self) -> Tensor:
        """The first example has two keys that are there, the second has none."""
        return (torch.arange(self.keys) < torch.tensor([[2], [0]])).expand(BATCH, self.keys)

    def pair_mask(self) -> Tensor:
        shape = (BATCH, self.heads, self.queries, self.keys)
        size = shape if self.pairs == 4 else (BATCH, *shape[2:]) if self.pairs == 3 else shape[2:]
        mask = torch.rand(size, generator=torch.Generator().manual_seed(1)) < 0.4
        mask[..., 5, :] = False
        return mask

    def allow(self) -> Allow:
        return Allow(
            keys=self.present() if self.padding else None,
            causal=self.causal,
            window=self.window,
            pairs=self.pair_mask() if self.pairs else None,
        )

    def biases(self) -> tuple[OffsetBias | Tensor | None, Tensor | None]:
        """As it is handed in, and its numbers, with a gradient."""
        generator = torch.Generator().manual_seed(2)
        if self.bias == "offsets":
            values = torch.randn(self.heads, self.queries + self.keys - 1, generator=generator).requires_grad_()
            return OffsetBias(values), values
        sizes = {"dense": (BATCH, self.heads), "broadcast": (1, 1)}
        if self.bias:
            values = torch.randn(*sizes[self.bias], self.queries, self.keys, generator=generator).requires_grad_()
            return values, values
        return None, None

    def allowed(self) -> Tensor:
        """Who may attend to whom, from the definition."""
        allowed = torch.ones(BATCH, self.heads, self.queries, self.keys, dtype=torch.bool)
        for query in range(self.queries):
            for key in range(self.keys):
                distance = key - (query + self.keys - self.queries)
                outside = self.window is not None and abs(distance) > self.window
                if outside or (self.causal and distance > 0):
                    allowed[:, :, query, key] = False
        if self.padding:
            for example in range(BATCH):
                allowed[example, :, :, ~self.present()[example]] = False
        if self.pairs:
            mask = self.pair_mask()
            allowed &= mask[:, None] if self.pairs == 3 else mask
        return allowed


CASES = [
    Case("everything"),
    Case("causal", queries=17, keys=17, causal=True),
    Case("causal, more keys", causal=True),
    Case("causal, more queries", queries=19, keys=17, causal=True),
    Case("one query", queries=1, causal=True),
    Case("padding", padding=True),
    Case("padding and causal", padding=True, causal=True),
    Case("window", window=2),
    Case("window, more queries", queries=19, keys=7, window=2),
    Case("window and causal", queries=17, keys=17, window=3, causal=True),
    Case("pairs of all", pairs=2),
    Case("pairs of an example", pairs=3),
    Case("pairs of a head", pairs=4, padding=True),
    Case("bias", bias="dense"),
    Case("bias of all", bias="broadcast", causal=True),
    Case("bias by distance", bias="offsets"),
    Case("bias by distance, masked", bias="offsets", causal=True, padding=True),
    Case("groups", heads=6, groups=2),
    Case("groups, masked", heads=6, groups=3, pairs=4, bias="offsets"),
    Case("one group", heads=3, groups=1, causal=True, queries=17, keys=17),
    Case("scale", scale=0.7),
]


def definition(case: Case, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
    """softmax(scale * Q K^T + bias) V over what is allowed, one head and example after the other."""
    scale = WIDTH**-0.5 if case.scale is None else case.scale
    allowed, contexts = case.allowed(), []
    for example in range(BATCH):
        for head in range(case.heads):
            group = head * case.groups // case.heads
            scores = scale * queries[example, head] @ keys[example, group].T
            if bias is not None and case.bias == "offsets":
                for query in range(case.queries):
                    last = case.queries - 1 - query
                    added = torch.zeros_like(scores)
                    added[query] = 1
                    scores = scores + added * bias[head, last : last + case.keys]
            elif bias is not None:
                scores = scores + bias[example % len(bias), head % bias.shape[1]]
            exponentials = (scores - scores.detach().amax(dim=1, keepdim=True)).exp() * allowed[example, head]
            sums = exponentials.sum(dim=1, keepdim=True)
            weights = exponentials / torch.where(sums == 0, 1.0, sums)
            contexts.append(weights @ values[example, group])
    return torch.stack(contexts).unflatten(0, (BATCH, case.heads))


def results(case: Case, path: str | None, dtype: torch.dtype) -> Iterator[tuple[str, Tensor, Tensor]]:
    """What a path gives and what it should give, by name: the context and every gradient."""
    rounded = [tensor.to(dtype) for tensor in case.tensors()]
    ours = [tensor.clone().requires_grad_() for tensor in rounded]
    theirs = [tensor.double().requires_grad_() for tensor in rounded]
    bias, ours_added = case.biases()
    _, drawn = case.biases()
    theirs_added = None if drawn is None else drawn.detach().double().requires_grad_()
    if dtype == torch.float64 and isinstance(bias, Tensor):
        bias = ours_added = drawn.detach().double().requires_grad_()
    elif dtype == torch.float64 and ours_added is not None:
        ours_added = drawn.detach().double().requires_grad_()
        bias = OffsetBias(ours_added)
    context = attend(*ours, allow=case.allow(), bias=bias, scale=case.scale, path=path)
    expected = definition(case, *theirs, theirs_added)
    yield "context", context, expected
    direction = torch.randn(context.shape, generator=torch.Generator().manual_seed(3))
    (context * direction.to(dtype)).sum().backward()
    (expected * direction.to(dtype)).sum().backward()
    for name, one, other in zip(("queries", "keys", "values"), ours, theirs, strict=True):
        yield f"gradient of the {name}", one.grad, other.grad
    if ours_added is not None:
        yield "gradient of the bias", ours_added.grad, theirs_added.grad


def check_path(path: str | None, case: Case, dtype: torch.dtype) -> None:
    assert path is None or path in kernels.PATHS
    for name, ours, theirs in results(case, path, dtype):
        assert ours.isfinite().all(), f"the {name} is not finite"
        distance = (ours.double() - theirs).abs().max() / theirs.abs().max().clamp(min=1)
        assert distance <= CLOSENESS[dtype], f"the {name} is {distance:.1e} away, with {dtype}"


def check_all_cases(path: str) -> None:
    """For mutants: some case has to find them."""
    for case in CASES:
        check_path(path, case, torch.float32)
