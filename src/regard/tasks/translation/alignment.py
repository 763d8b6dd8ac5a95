"""From attention weights to word alignments: who translates whom.

Weights of tokens become weights of words: a source word has the sum of its tokens' weights, a target word the mean
over its tokens. Every target word is linked to the source word with the largest weight. The end-of-sentence token
takes part (it is where attention rests when a word has no counterpart), and a word whose largest weight is there
stays without a link.

    AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)        (Och and Ney 2003; sure links S, possible links P >= S)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Float

Links = Collection[tuple[int, int]]


def word_weights(
    weights: Float[np.ndarray, "targets sources"], target_words: Sequence[int], source_words: Sequence[int]
) -> Float[np.ndarray, "target_words source_words_and_end"]:
    """Token weights joined to words; tokens of no word (index -1, such as EOS) make up the last column."""
    num_targets, num_sources = max(target_words, default=-1) + 1, max(source_words, default=-1) + 1
    columns = np.zeros((len(source_words), num_sources + 1))
    columns[np.arange(len(source_words)), source_words] = 1.0  # -1 is the last column
    rows = np.zeros((num_targets, len(target_words)))
    for token, word in enumerate(target_words):
        if word >= 0:
            rows[word, token] = 1.0
    rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
    return rows @ weights @ columns


def links_from_weights(weights: Float[np.ndarray, "target_words source_words_and_end"]) -> frozenset[tuple[int, int]]:
    """(source, target) for each target word whose largest weight is on a word."""
    if not len(weights):
        return frozenset()
    best = weights.argmax(axis=1)
    return frozenset((int(source), target) for target, source in enumerate(best) if source < weights.shape[1] - 1)


def pharaoh(links: Links) -> str:
    """Links as the Moses tools write them: `0-0 1-2`, source first."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links, key=lambda link: (link[1], link[0])))


def alignment_error_rate(predicted: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links]) -> float:
    """AER over a corpus; 0 is perfect."""
    right_sure = right_possible = total = 0
    for guessed, certain, allowed in zip(predicted, sure, possible, strict=True):
        guessed, certain = set(guessed), set(certain)
        right_sure += len(guessed & certain)
        right_possible += len(guessed & (set(allowed) | certain))
        total += len(guessed) + len(certain)
    return 1.0 - (right_sure + right_possible) / total if total else 0.0
