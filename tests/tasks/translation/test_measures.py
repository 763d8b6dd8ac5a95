"""Scores are sacrebleu's, and say how they were made."""

import pytest
import sacrebleu

from regard.tasks.translation.measures import bleu_by_length, quality

REFERENCES = ["Un homme en rouge dort.", "Deux chiens courent dans la neige blanche.", "Elle lit."]
TRANSLATIONS = ["Un homme en rouge dort.", "Deux chiens jouent dans la neige.", "Elle lit."]


def test_scores_and_signature_are_sacrebleus() -> None:
    scores = quality(TRANSLATIONS, REFERENCES)
    assert scores.bleu == pytest.approx(sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES]).score)
    assert scores.chrf == pytest.approx(sacrebleu.corpus_chrf(TRANSLATIONS, [REFERENCES]).score)
    assert "tok:13a" in scores.bleu_signature
    assert "case:mixed" in scores.bleu_signature
    assert sacrebleu.__version__ in scores.bleu_signature


def test_tokenised_text_is_not_cut_again() -> None:
    assert "tok:none" in quality(["L' accord ."], ["L' accord ."], tokenized=True).bleu_signature


def test_lengths_fall_into_their_bins() -> None:
    sources = ["w " * 10, "w " * 11, "w " * 51]
    bins = bleu_by_length(sources, REFERENCES, REFERENCES)
    assert {name: entry["sentences"] for name, entry in bins.items()} == {"1-10": 1, "11-20": 1, "51+": 1}
    assert all(entry["bleu"] == pytest.approx(100.0) for name, entry in bins.items() if name != "51+")
