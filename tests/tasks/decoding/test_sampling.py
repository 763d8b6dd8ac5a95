from __future__ import annotations

import pytest
import torch

from regard.data.special import BOS, EOS, PAD
from regard.tasks.decoding import DecodingConfig, decode

from .fakes import HashModel, TableModel, padded, random_sources

LOGITS = [5.0, 0.2, 3.0, 0.9, 1.4, 0.0, -1.0]
ALLOWED = [token for token in range(7) if token not in (PAD, BOS)]


def drawn(config: DecodingConfig, count: int) -> torch.Tensor:
    """How often each token is the first, as a share of `count` sentences."""
    config = config.model_copy(update={"method": "sample", "max_length_ratio": 0.0, "max_length_extra": 1})
    found = decode(TableModel(LOGITS), torch.full((count, 1), 4), config)
    tokens = [(*hypotheses[0].tokens, EOS)[0] for hypotheses in found]
    return torch.bincount(torch.tensor(tokens), minlength=7) / count


def expected(temperature: float, tokens: list[int]) -> torch.Tensor:
    shares = torch.zeros(7)
    shares[tokens] = (torch.tensor(LOGITS)[tokens] / temperature).softmax(0)
    return shares


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_tokens_are_as_frequent_as_they_are_likely(temperature: float) -> None:
    shares = drawn(DecodingConfig(temperature=temperature), 4001)
    assert (shares - expected(temperature, ALLOWED)).abs().max() < 0.025


def test_top_k_draws_among_the_likeliest() -> None:
    shares = drawn(DecodingConfig(top_k=3), 4001)
    assert (shares - expected(1.0, [1, 3, 4])).abs().max() < 0.025
    assert shares.count_nonzero() == 3


def test_top_p_draws_among_the_fewest_that_reach_it() -> None:
    # Of the allowed tokens 4, 3, 1, 5, 6 have about 0.43, 0.26, 0.13, 0.11, 0.04: two reach 0.6, one does not.
    shares = drawn(DecodingConfig(top_p=0.6), 4001)
    assert (shares - expected(1.0, [3, 4])).abs().max() < 0.025
    assert shares.count_nonzero() == 2
    assert drawn(DecodingConfig(top_p=0.01), 101)[4] == 1.0


def test_top_p_comes_after_temperature_and_top_k() -> None:
    # Among the best two, 4 and 3 have 0.62 and 0.38; at temperature 0.2 the first alone has 0.92.
    assert drawn(DecodingConfig(top_k=2, top_p=0.7), 401).count_nonzero() == 2
    assert drawn(DecodingConfig(top_k=2, top_p=0.7, temperature=0.2), 401).count_nonzero() == 1


def test_top_k_of_one_is_greedy() -> None:
    model, source = HashModel(eos_bias=4.0), padded(random_sources(11, 7, 97, seed=0))
    sampled = decode(model, source, DecodingConfig(method="sample", top_k=1))
    assert sampled == decode(model, source, DecodingConfig(method="greedy"))


def test_the_seed_and_the_position_fix_the_draw() -> None:
    model = HashModel(spread=2.0)
    source = torch.full((3, 4), 5)

    def draw(seed: int, positions: list[int]) -> list[tuple[int, ...]]:
        found = decode(model, source, DecodingConfig(method="sample", seed=seed), positions)
        return [hypotheses[0].tokens for hypotheses in found]

    assert draw(1, [0, 1, 2]) == draw(1, [0, 1, 2])
    assert draw(1, [2, 0, 1]) == [draw(1, [0, 1, 2])[position] for position in (2, 0, 1)]
    assert len({*draw(1, [0, 1, 2]), *draw(2, [0, 1, 2])}) == 6


def test_each_step_has_its_own_draw() -> None:
    config = DecodingConfig(method="sample", max_length_ratio=0, max_length_extra=2, forbidden=(PAD, BOS, EOS, 5, 6))
    found = decode(TableModel(LOGITS), torch.full((4001, 1), 4), config)
    pairs = torch.zeros(7, 7)
    for hypotheses in found:
        pairs[hypotheses[0].tokens] += 1 / 4001
    shares = expected(1.0, [1, 4])
    assert (pairs - torch.outer(shares, shares)).abs().max() < 0.025


def test_draws_of_one_sentence_are_independent_and_the_first_stays() -> None:
    model, source = HashModel(spread=2.0), torch.full((2, 4), 5)
    forbidden = (PAD, BOS, EOS)
    many = decode(model, source, DecodingConfig(method="sample", num_best=5, forbidden=forbidden))
    assert all(len({hypothesis.tokens for hypothesis in hypotheses}) == 5 for hypotheses in many)
    one = decode(model, source, DecodingConfig(method="sample", forbidden=forbidden))
    assert all(single[0] in hypotheses for single, hypotheses in zip(one, many, strict=True))
