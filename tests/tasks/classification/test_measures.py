from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.classification.measures import calibration_error, measure


def test_by_hand() -> None:
    """Three classes; the second picture is mistaken, the third right by a tie that the earlier class wins."""
    probabilities = np.array([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8]])
    measured = measure(probabilities, np.array([0, 2, 0, 2]))
    assert measured.accuracy == 75.0
    assert measured.confusion.tolist() == [[2, 0, 0], [0, 0, 0], [0, 1, 1]]
    assert measured.to_json()["accuracy_by_class"] == [100.0, None, 50.0]
    # Confidences 0.9, 0.5, 0.4 and 0.8 lie in bins of their own: |1 - .9| + |0 - .5| + |1 - .4| + |1 - .8|, over 4.
    assert measured.calibration_error == pytest.approx(1.4 / 4)


def test_pictures_in_one_bin_make_up_for_each_other() -> None:
    assert calibration_error(np.array([0.61, 0.61]), np.array([True, False])) == pytest.approx(0.11)
    assert calibration_error(np.array([1.0, 1.0]), np.array([True, True])) == 0.0


def test_edges_belong_to_the_bin_below() -> None:
    """0.2 is the end of the first of five bins, so the two confidences share it."""
    two = calibration_error(np.array([0.2, 0.1]), np.array([True, False]), num_bins=5)
    assert two == pytest.approx(abs(1 - 0.3) / 2)


@given(st.integers(2, 13), st.integers(1, 41), st.integers(0, 10**6))
def test_it_agrees_with_torch(num_classes: int, count: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, num_classes, generator=generator)
    labels = torch.randint(num_classes, (count,), generator=generator)
    measured = measure(logits.softmax(dim=1).numpy(), labels.numpy())
    among = (logits.topk(min(5, num_classes)).indices == labels[:, None]).any(dim=1)
    assert measured.accuracy == pytest.approx(100 * (logits.argmax(dim=1) == labels).double().mean().item())
    assert measured.top5 == pytest.approx(100 * among.double().mean().item())
    assert measured.confusion.sum() == count
    assert 0.0 <= measured.calibration_error <= 1.0
