"""How good translations are, by the field's own tool, with the signature that makes a number comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

LENGTH_BINS = (10, 20, 30, 40, 50)
"""Sentences of up to so many source words, as in the length curves of Bahdanau et al."""


@dataclass(frozen=True)
class Quality:
    """Corpus scores with their signatures."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str

    def to_json(self) -> dict[str, Any]:
        return {name: round(value, 2) if isinstance(value, float) else value for name, value in vars(self).items()}


def quality(translations: Sequence[str], references: Sequence[str], *, tokenized: bool = False) -> Quality:
    """BLEU and chrF of detokenised, cased text; `tokenized` text has its tokens apart already."""
    bleu = BLEU(tokenize="none", force=True) if tokenized else BLEU()
    chrf = CHRF()
    bleu_score = bleu.corpus_score(list(translations), [list(references)])
    chrf_score = chrf.corpus_score(list(translations), [list(references)])
    return Quality(bleu_score.score, str(bleu.get_signature()), chrf_score.score, str(chrf.get_signature()))


def bleu_by_length(
    sources: Sequence[str], translations: Sequence[str], references: Sequence[str], *, tokenized: bool = False
) -> dict[str, dict[str, float]]:
    """BLEU of the sentences in each bin of source length, with their number: `{"1-10": {...}, ...}`."""
    bins: dict[str, list[int]] = {}
    lower = 1
    for upper in LENGTH_BINS:
        bins[f"{lower}-{upper}"] = []
        lower = upper + 1
    bins[f"{lower}+"] = []
    names = list(bins)
    for index, source in enumerate(sources):
        length = len(source.split())
        place = next((place for place, upper in enumerate(LENGTH_BINS) if length <= upper), len(LENGTH_BINS))
        bins[names[place]].append(index)
    scores = {}
    for name, members in bins.items():
        if members:
            chosen = quality(
                [translations[index] for index in members],
                [references[index] for index in members],
                tokenized=tokenized,
            )
            scores[name] = {"bleu": round(chosen.bleu, 2), "sentences": len(members)}
    return scores
