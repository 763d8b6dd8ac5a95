from __future__ import annotations

import itertools
import math

import pytest
import torch

from regard.data.special import BOS, EOS, PAD
from regard.tasks.decoding import DecodingConfig, Hypothesis, decode
from regard.tasks.decoding.beam import BeamSearch
from regard.tasks.decoding.scores import Candidates

from .fakes import HashModel, TableModel, log_probabilities_after, padded, random_sources


def reference_beam(
    model: HashModel, source: list[int], limit: int, width: int, penalty: float
) -> list[tuple[float, float, tuple[int, ...]]]:
    """One sentence, plain lists, straight from the rules: (score, log-probability, tokens with EOS)."""
    running: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    complete: list[tuple[float, float, tuple[int, ...]]] = []
    for length in range(1, limit + 1):
        candidates = []
        for total, prefix in running:
            for token, value in enumerate(log_probabilities_after(model, source, prefix).tolist()):
                if token not in (PAD, BOS):
                    candidates.append((total + value, (*prefix, token)))
        candidates = sorted(candidates, reverse=True)[: 2 * width]
        for total, tokens in candidates[:width]:
            if tokens[-1] == EOS or length == limit:
                complete.append((total / length**penalty, total, tokens))
        complete = sorted(complete, reverse=True)[:width]
        running = [candidate for candidate in candidates if candidate[1][-1] != EOS][:width]
        if len(complete) == width and running[0][0] / length**penalty <= complete[-1][0]:
            break
    return complete


def assert_matches(hypotheses: list[Hypothesis], expected: list[tuple[float, float, tuple[int, ...]]]) -> None:
    assert len(hypotheses) == len(expected)
    for hypothesis, (score, log_probability, tokens) in zip(hypotheses, expected, strict=True):
        assert hypothesis.finished == (tokens[-1] == EOS)
        assert hypothesis.tokens == (tokens[:-1] if hypothesis.finished else tokens)
        assert hypothesis.score == pytest.approx(score, abs=1e-4)
        assert hypothesis.log_probability == pytest.approx(log_probability, abs=1e-4)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("penalty", [-0.5, 0.0, 0.6, 1.0, 2.0])
def test_agrees_with_a_plain_search_of_one_sentence(width: int, penalty: float) -> None:
    finished = set()
    for eos_bias in (0.0, 3.0, 7.0):
        model = HashModel(vocabulary=31, eos_bias=eos_bias, seed=width)
        sources = random_sources(3, 5, 31, seed=width)
        config = DecodingConfig(
            beam_width=width, num_best=width, length_penalty=penalty, max_length_ratio=1.5, max_length_extra=4
        )
        for source, hypotheses in zip(sources, decode(model, padded(sources), config), strict=True):
            limit = math.ceil(1.5 * len(source)) + 4
            assert_matches(hypotheses, reference_beam(model, source, limit, width, penalty))
            finished |= {hypothesis.finished for hypothesis in hypotheses}
    assert finished == {True, False}


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_wide_beam_finds_everything_there_is(penalty: float) -> None:
    limit, words = 4, (1, 4, 5)
    model = HashModel(vocabulary=6, spread=3.0)
    source = [4, 5, 4]
    everything = [
        (*prefix, last)
        for length in range(limit)
        for prefix in itertools.product(words, repeat=length)
        for last in ((EOS,) if length < limit - 1 else (EOS, *words))
    ]
    ranked = []
    for tokens in everything:
        scores = [log_probabilities_after(model, source, tokens[:step])[token] for step, token in enumerate(tokens)]
        ranked.append((float(sum(scores)) / len(tokens) ** penalty, float(sum(scores)), tokens))
    config = DecodingConfig(
        beam_width=139, num_best=139, length_penalty=penalty, max_length_ratio=0, max_length_extra=limit
    )
    assert_matches(decode(model, torch.tensor([source]), config)[0], sorted(ranked, reverse=True))


def test_search_of_width_one_is_greedy() -> None:
    for eos_bias in (0.0, 5.0):
        model = HashModel(eos_bias=eos_bias)
        source = padded(random_sources(23, 11, 97, seed=1))
        greedy = decode(model, source, DecodingConfig(method="greedy"))
        assert decode(model, source, DecodingConfig(method="beam", beam_width=1)) == greedy


@pytest.mark.parametrize("tied", [(EOS, 5), (1, EOS), (5, 6)])
def test_search_of_width_one_is_greedy_where_scores_are_equal(tied: tuple[int, int]) -> None:
    logits = [0.0] * 701
    for token in tied:
        logits[token] = 4.0
    model, source = TableModel(logits), torch.tensor([[4, 4]])
    greedy = decode(model, source, DecodingConfig(method="greedy"))
    assert decode(model, source, DecodingConfig(method="beam", beam_width=1)) == greedy


def test_eos_counts_only_among_the_best_width() -> None:
    # Third of four candidates: seen, but outside a beam of two; the limit then ends what is running.
    model = TableModel([-9.0, -9.0, -9.0, 1.0, 3.0, 2.0, 0.0])
    config = DecodingConfig(beam_width=2, num_best=2, max_length_ratio=0, max_length_extra=1)
    hypotheses = decode(model, torch.tensor([[4]]), config)[0]
    assert [hypothesis.tokens for hypothesis in hypotheses] == [(4,), (5,)]
    assert not any(hypothesis.finished for hypothesis in hypotheses)


def test_stops_when_nothing_running_beats_the_worst_complete_one() -> None:
    model = HashModel(eos_bias=9.0)
    decode(model, padded(random_sources(5, 7, 97, seed=3)), DecodingConfig(max_length_ratio=0, max_length_extra=200))
    assert len(model.rows_seen) < 20


def test_hypotheses_are_distinct_and_ordered() -> None:
    source = padded(random_sources(13, 7, 97, seed=5))
    for hypotheses in decode(HashModel(eos_bias=4.0), source, DecodingConfig(beam_width=7, num_best=5)):
        assert len({hypothesis.tokens for hypothesis in hypotheses}) == 5
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in hypotheses:
            written = len(hypothesis.tokens) + hypothesis.finished
            assert hypothesis.score == pytest.approx(hypothesis.log_probability / written, rel=1e-6)


def test_a_sentence_that_is_done_finds_nothing_more_while_it_waits_to_leave() -> None:
    search = BeamSearch(torch.tensor([9]), width=2, vocabulary=6, length_penalty=0.0)
    ending = torch.tensor([[[-math.inf, -9.0, -math.inf, -0.1, -9.5, -math.inf]]])
    tokens, _ = search.advance(Candidates(ending))
    assert tokens.tolist() == [[1, 4]]
    assert not search.done.any()
    search.advance(Candidates(ending.expand(1, 2, 6)))
    assert search.done.all()
    found = search.hypotheses(2)
    # Not what any model can give, but better than all before, if it were looked at.
    search.advance(Candidates(ending.expand(1, 2, 6) + 100.0))
    assert search.done.all()
    assert search.hypotheses(2) == found
