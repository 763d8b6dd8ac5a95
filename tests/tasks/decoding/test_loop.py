from __future__ import annotations

import math

import pytest
import torch

from regard.core.errors import ConfigError, RegardError
from regard.core.seq2seq import DecoderState, Seq2Seq
from regard.data.special import BOS, EOS, PAD, UNK
from regard.tasks.decoding import DecodingConfig, Hypothesis, decode, decode_all

from .fakes import HashModel, TableModel, log_probabilities_after, padded, random_sources

EMPTY = [Hypothesis((), 0.0, 0.0, True)]
CONFIGS = [
    DecodingConfig(method="greedy"),
    DecodingConfig(method="beam", beam_width=3, num_best=3),
    DecodingConfig(method="sample", num_best=2, temperature=0.7),
    DecodingConfig(method="sample", top_k=5),
    DecodingConfig(method="sample", top_p=0.8, num_best=3),
]
every_method = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.method}-{config.num_best}")


def test_the_fake_offers_what_models_offer() -> None:
    assert isinstance(HashModel(), Seq2Seq)
    assert callable(DecoderState.keep)


@every_method
def test_a_batch_is_each_sentence_alone(config: DecodingConfig) -> None:
    model = HashModel(eos_bias=2.0)
    sources = random_sources(29, 13, 97, seed=2)
    together = decode(model, padded(sources), config)
    for position, source in enumerate(sources):
        assert decode(model, torch.tensor([source]), config, [position]) == [together[position]]
    assert len({len(hypotheses[0].tokens) for hypotheses in together}) > 3


@every_method
@pytest.mark.parametrize("token_budget", [1, 37, 1000])
def test_all_sentences_come_back_in_their_order(config: DecodingConfig, token_budget: int) -> None:
    model = HashModel(eos_bias=2.0)
    sources = [*random_sources(19, 17, 97, seed=4), []]
    seen: list[int] = []
    found = decode_all(model, sources, config, token_budget=token_budget, progress=seen.append)
    for position, source in enumerate(sources[:-1]):
        assert [found[position]] == decode(model, torch.tensor([source]), config, [position])
    assert found[-1] == EMPTY
    assert seen == sorted(set(seen))
    assert seen[-1] == 20


def test_batches_stay_within_the_budget() -> None:
    model = HashModel(eos_bias=9.0)
    sizes = []
    encode = model.encode
    model.encode = lambda source: (sizes.append(source.shape), encode(source))[1]
    lengths = [3, 11, 2, 7, 5, 30, 2, 1]
    decode_all(model, [[4] * length for length in lengths], DecodingConfig(), token_budget=12)
    assert all(rows * columns <= 12 for rows, columns in sizes if rows > 1)
    assert [columns for _, columns in sizes] == sorted((columns for _, columns in sizes), reverse=True)
    assert sum(rows for rows, _ in sizes) == len(lengths)
    assert len(sizes) < len(lengths)


def test_nothing_to_decode() -> None:
    assert decode_all(HashModel(), [], DecodingConfig()) == []
    assert decode(HashModel(), torch.zeros(0, 3, dtype=torch.long), DecodingConfig()) == []


@every_method
def test_empty_sentences_are_empty_and_not_shown_to_the_model(config: DecodingConfig) -> None:
    model = HashModel()
    source = torch.tensor([[PAD, PAD, PAD], [EOS, PAD, PAD], [7, 8, EOS], [BOS, EOS, PAD]])
    found = decode(model, source, config)
    assert [found[0], found[1], found[3]] == [EMPTY, EMPTY, EMPTY]
    assert set(model.rows_seen) == {1}
    assert [found[2]] == decode(model, source[2:3], config, [2])
    model.rows_seen.clear()
    assert decode(model, torch.zeros(2, 0, dtype=torch.long), config) == [EMPTY, EMPTY]
    assert model.rows_seen == []


def test_unknown_words_are_words() -> None:
    model = HashModel()
    found = decode(model, torch.tensor([[UNK, UNK]]), DecodingConfig(max_length_ratio=1, max_length_extra=0))
    assert len(found[0][0].tokens) + found[0][0].finished <= 2
    assert model.rows_seen


@every_method
def test_each_sentence_has_its_own_limit(config: DecodingConfig) -> None:
    config = config.model_copy(
        update={"max_length_ratio": 1.1, "max_length_extra": 1, "max_length": 14, "forbidden": (PAD, BOS, EOS)}
    )
    lengths = [1, 10, 11, 3, 12, 40]
    model = HashModel()
    found = decode(model, padded([[5] * length for length in lengths]), config)
    for length, hypotheses in zip(lengths, found, strict=True):
        assert len(hypotheses) == config.num_best
        for hypothesis in hypotheses:
            assert len(hypothesis.tokens) == min(14, math.ceil(11 * length / 10) + 1)
            assert not hypothesis.finished
    assert len(model.rows_seen) == 14


@every_method
def test_finished_sentences_leave_the_batch(config: DecodingConfig) -> None:
    talkative, curt = [0.0] * 4 + [9.0] * 3, [0.0] * 3 + [30.0] + [0.0] * 3
    model = TableModel(talkative, {4: curt, 5: curt})
    rows, step = [], model.step
    model.step = lambda tokens, state: (rows.append(len(tokens)), step(tokens, state))[1]
    source = torch.tensor([[4, 4, 4], [6, 4, 4], [5, 4, 4], [4, 4, 4]])
    found = decode(model, source, config.model_copy(update={"forbidden": (PAD, BOS, UNK), "num_best": 1}))
    assert [hypotheses[0].finished for hypotheses in found] == [True, False, True, True]
    assert rows[0] == 4
    assert rows[-1] == 1
    assert sum(rows) < 2 * len(rows)


def test_log_probabilities_are_the_models_own_and_forbidden_tokens_leave_the_rest_alone() -> None:
    model = HashModel(eos_bias=4.0)
    sources = random_sources(7, 5, 97, seed=6)
    for config in CONFIGS:
        config = config.model_copy(update={"forbidden": (PAD, BOS, *range(10, 60))})
        for source, hypotheses in zip(sources, decode(model, padded(sources), config), strict=True):
            for hypothesis in hypotheses:
                assert not set(hypothesis.tokens) & set(config.forbidden)
                tokens = (*hypothesis.tokens, EOS) if hypothesis.finished else hypothesis.tokens
                total = sum(
                    float(log_probabilities_after(model, source, tokens[:step])[token])
                    for step, token in enumerate(tokens)
                )
                assert hypothesis.log_probability == pytest.approx(total, abs=1e-4)


@every_method
def test_scores_are_float32_for_bfloat16_models(config: DecodingConfig) -> None:
    config = config.model_copy(update={"temperature": 0.01})
    model = HashModel(spread=300.0).bfloat16()
    source = [5, 9, 11]
    hypothesis = decode(model, torch.tensor([source]), config)[0][0]
    total = 0.0
    for step, token in enumerate((*hypothesis.tokens, EOS)[: len(hypothesis.tokens) + hypothesis.finished]):
        logits = model(torch.tensor([source]), torch.tensor([[BOS, *hypothesis.tokens[:step]]])).logits[0, -1].detach()
        assert logits.dtype == torch.bfloat16
        total += float(logits.float().log_softmax(-1)[token])
    assert hypothesis.log_probability == pytest.approx(total, abs=1e-4)


def test_dropout_is_off_while_decoding_and_modes_come_back() -> None:
    model = HashModel()
    model.readout.eval()
    decode(model, torch.tensor([[4]]), DecodingConfig())
    assert model.modes_seen == {False}
    assert model.training
    assert not model.readout.training


@every_method
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_scores_that_are_no_numbers_are_reported_with_the_sentence(config: DecodingConfig, bad: float) -> None:
    model = TableModel([0.0] * 7, {6: [0.0, 0.0, 0.0, 0.0, bad, 0.0, 0.0]})
    with pytest.raises(RegardError, match=r"Sentence 12 .* finite"):
        decode(model, torch.tensor([[4], [6]]), config, [11, 12])


@every_method
def test_forbidding_everything_is_reported(config: DecodingConfig) -> None:
    with pytest.raises(RegardError, match="every token is forbidden"):
        decode(TableModel([0.0] * 5), torch.tensor([[4]]), config.model_copy(update={"forbidden": tuple(range(5))}))


@pytest.mark.parametrize("token", [97, -1])
def test_a_forbidden_token_has_to_exist(token: int) -> None:
    with pytest.raises(ConfigError, match=rf"forbidden token {token} .* 97 tokens"):
        decode(HashModel(), torch.tensor([[4]]), DecodingConfig(forbidden=(token,)))


def test_a_budget_has_room() -> None:
    with pytest.raises(ConfigError, match="token_budget is 0"):
        decode_all(HashModel(), [[4]], DecodingConfig(), token_budget=0)
