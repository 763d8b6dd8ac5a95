"""How good a classifier is: how often it is right, and whether it knows when it is.

top-k accuracy           share of pictures whose class is among the k highest scores
calibration error        sum over bins of confidence: |bin| / n * |accuracy of the bin - its mean confidence|
                         (Guo et al. 2017, expected calibration error, 15 bins of equal width)
confusion[i, j]          how many pictures of class i were taken for class j
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

NUM_BINS = 15


@dataclass(frozen=True)
class Measured:
    """What `measure` found; accuracies are in per cent."""

    accuracy: float
    top5: float
    calibration_error: float
    confusion: Int[np.ndarray, "classes classes"]

    def to_json(self) -> dict[str, Any]:
        rows = self.confusion.sum(axis=1)
        by_class = np.divide(100.0 * np.diag(self.confusion), rows, out=np.full(len(rows), np.nan), where=rows > 0)
        return {
            "accuracy": round(self.accuracy, 2),
            "top5": round(self.top5, 2),
            "calibration_error": round(self.calibration_error, 4),
            "accuracy_by_class": [None if np.isnan(value) else round(float(value), 2) for value in by_class],
            "confusion": self.confusion.tolist(),
        }


def measure(probabilities: Float[np.ndarray, "pictures classes"], labels: Int[np.ndarray, "pictures"]) -> Measured:
    """All of it, from what the model gave each class."""
    num_classes = probabilities.shape[1]
    # Of equal scores the earlier class counts as higher, as argmax has it.
    order = np.argsort(-probabilities, axis=1, kind="stable")
    chosen = order[:, 0]
    among = (order[:, :5] == labels[:, None]).any(axis=1)
    confusion = np.bincount(labels * num_classes + chosen, minlength=num_classes**2).reshape(num_classes, num_classes)
    confidence = probabilities[np.arange(len(labels)), chosen]
    return Measured(
        100 * float((chosen == labels).mean()),
        100 * float(among.mean()),
        calibration_error(confidence, chosen == labels),
        confusion,
    )


def calibration_error(confidence: Float[np.ndarray, "pictures"], right: np.ndarray, num_bins: int = NUM_BINS) -> float:
    """Bins are (0, 1/n], (1/n, 2/n], ..."""
    bins = np.clip(np.ceil(confidence * num_bins).astype(int) - 1, 0, num_bins - 1)
    counts = np.bincount(bins, minlength=num_bins)
    gaps = np.bincount(bins, weights=right - confidence, minlength=num_bins)
    return float(np.abs(gaps).sum() / max(counts.sum(), 1))
