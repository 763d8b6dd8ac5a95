"""The same hypotheses as `transformers` finds, with a random Marian that reads its whole prefix at every step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import MarianConfig, MarianMTModel

from regard.data.special import BOS, EOS, PAD
from regard.tasks.decoding import DecodingConfig, Hypothesis, decode

from .fakes import MarianAsSeq2Seq, padded, random_sources

VOCABULARY, LIMIT = 53, 13


def random_marian(seed: int, eos_bias: float) -> MarianMTModel:
    torch.manual_seed(seed)
    config = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=24,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=28,
        decoder_ffn_dim=28,
        max_position_embeddings=64,
        init_std=0.5,
        scale_embedding=False,
        pad_token_id=PAD,
        eos_token_id=EOS,
        bos_token_id=BOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    marian = MarianMTModel(config).eval()
    marian.final_logits_bias[0, EOS] = eos_bias
    return marian


def generated(marian: MarianMTModel, source: torch.Tensor, **options: Any) -> list[list[Hypothesis]]:
    """What `generate` finds for each sentence, as our hypotheses."""
    found = marian.generate(
        input_ids=source,
        attention_mask=source != PAD,
        do_sample=False,
        bad_words_ids=[[PAD], [BOS]],
        max_length=None,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )
    scores = getattr(found, "sequences_scores", None)
    hypotheses = []
    for row, tokens in enumerate(found.sequences[:, 1:].tolist()):
        finished = EOS in tokens
        written = tokens[: tokens.index(EOS)] if finished else [token for token in tokens if token != PAD]
        score = float("nan") if scores is None else float(scores[row])
        hypotheses.append(Hypothesis(tuple(written), float("nan"), score, finished))
    num_best = len(hypotheses) // len(source)
    return [hypotheses[start : start + num_best] for start in range(0, len(hypotheses), num_best)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("eos_bias", [0.0, 4.0, 7.0])
@pytest.mark.parametrize("width", [1, 2, 4, 7])
def test_same_hypotheses_as_generate(seed: int, eos_bias: float, width: int) -> None:
    marian = random_marian(seed, eos_bias)
    source = padded(random_sources(11, 9, VOCABULARY, seed))
    config = DecodingConfig(
        method="greedy" if width == 1 else "beam",
        beam_width=width,
        num_best=width,
        max_length_ratio=0.0,
        max_length_extra=LIMIT,
    )
    beams = {"length_penalty": 1.0, "early_stopping": False} if width > 1 else {}
    expected = generated(marian, source, num_beams=width, num_return_sequences=width, max_new_tokens=LIMIT, **beams)
    found = decode(MarianAsSeq2Seq(marian), source, config)
    assert [[one.tokens for one in hypotheses] for hypotheses in found] == [
        [one.tokens for one in hypotheses] for hypotheses in expected
    ]
    assert [[one.finished for one in hypotheses] for hypotheses in found] == [
        [one.finished for one in hypotheses] for hypotheses in expected
    ]
    if width > 1:
        for ours, theirs in zip(found, expected, strict=True):
            assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-5)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
def test_same_hypotheses_with_other_penalties_and_limits_of_their_own(penalty: float) -> None:
    marian = random_marian(17, 6.0)
    sources = random_sources(7, 9, VOCABULARY, 17)
    config = DecodingConfig(num_best=4, length_penalty=penalty, max_length_ratio=1.0, max_length_extra=2)
    found = decode(MarianAsSeq2Seq(marian), padded(sources), config)
    for source, hypotheses in zip(sources, found, strict=True):
        (expected,) = generated(
            marian,
            torch.tensor([source]),
            num_beams=4,
            num_return_sequences=4,
            length_penalty=penalty,
            early_stopping=False,
            max_new_tokens=len(source) + 2,
        )
        assert [one.tokens for one in hypotheses] == [one.tokens for one in expected]
        assert [one.score for one in hypotheses] == pytest.approx([one.score for one in expected], abs=1e-5)
