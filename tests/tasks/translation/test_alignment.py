"""Word alignments from attention, and their error rate by hand-worked numbers."""

import numpy as np
import pytest

from regard.tasks.translation.alignment import alignment_error_rate, links_from_weights, pharaoh, word_weights


def test_tokens_are_joined_to_words() -> None:
    weights = np.array(
        [
            [0.5, 0.2, 0.1, 0.2],  # word 0, first piece
            [0.1, 0.2, 0.3, 0.4],  # word 0, second piece
            [0.0, 0.0, 0.9, 0.1],  # word 1
            [0.0, 0.0, 0.0, 1.0],  # end of sentence
        ]
    )
    joined = word_weights(weights, target_words=[0, 0, 1, -1], source_words=[0, 0, 1, -1])
    np.testing.assert_allclose(joined, [[0.5, 0.2, 0.3], [0.0, 0.9, 0.1]])


def test_a_word_that_looks_at_the_end_has_no_link() -> None:
    weights = np.array([[0.5, 0.2, 0.3], [0.1, 0.2, 0.7]])
    assert links_from_weights(weights) == {(0, 0)}


def test_nothing_written_has_no_links() -> None:
    empty = word_weights(np.zeros((1, 3)), target_words=[-1], source_words=[0, 1, -1])
    assert empty.shape == (0, 3)
    assert links_from_weights(empty) == frozenset()


def test_pharaoh_goes_along_the_target() -> None:
    assert pharaoh({(2, 0), (0, 1), (1, 1)}) == "2-0 0-1 1-1"


def test_error_rate_by_hand() -> None:
    sure, possible = {(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 1)}
    # A = {00, 21}: |A and S| = 1, |A and P| = 2, |A| = 2, |S| = 2
    assert alignment_error_rate([{(0, 0), (2, 1)}], [sure], [possible]) == pytest.approx(1 - 3 / 4)
    assert alignment_error_rate([sure], [sure], [possible]) == 0.0
    assert alignment_error_rate([{(5, 5)}], [sure], [possible]) == 1.0


def test_error_rate_is_of_the_corpus_not_of_sentences() -> None:
    good, bad = {(0, 0)}, {(7, 7)}
    sure = [{(0, 0)}, {(0, 0), (1, 1), (2, 2)}]
    # 1 right of 1 proposed and 1 sure; 0 right of 1 proposed and 3 sure
    assert alignment_error_rate([good, bad], sure, sure) == pytest.approx(1 - 2 / 6)
