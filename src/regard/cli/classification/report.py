"""How `train` and `eval` speak of classification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from regard.cli.output import count, table
from regard.data.pictures.batches import PictureBatches
from regard.data.pictures.config import PictureConfig
from regard.data.pictures.dataset import PictureSet
from regard.recipes.classifying import ClassificationRun, PreparedClassification
from regard.recipes.run import LOWER_IS_BETTER

NAMES = {
    "accuracy": "accuracy, per cent",
    "top5": "class among the first five, per cent",
    "calibration_error": "calibration error (15 bins)",
    "loss": "loss per picture",
}

CHECKED_PICTURES = 1000
"""So many validation pictures are classified after training, to give a first impression."""

SHOWN_CLASSES = 20


def measure(opened: ClassificationRun, part: str, configs: dict[str, Any]) -> tuple[PictureConfig, dict[str, Any]]:
    """What `regard eval` measures, and the data it did that on."""
    data = opened.config.model_copy(update={"data": configs["data"]}).with_source().data
    return data, opened.evaluate(part, data=data)


def size(measured: dict[str, Any]) -> str:
    return f"{measured['pictures']:,} pictures"


def summary(measured: dict[str, Any], expected: dict[str, float], outcome: dict[str, bool]) -> str:
    rows = []
    for name, title in NAMES.items():
        aim = ""
        if name in outcome:
            bound = "at most" if name in LOWER_IS_BETTER else "at least"
            aim = f"expected {bound} {expected[name]:g}: {'reached' if outcome[name] else 'MISSED'}"
        rows.append((title, f"{measured[name]:.{2 if name in ('accuracy', 'top5') else 4}f}", aim))
    confusion = np.array(measured["confusion"])
    names = measured["class_names"]
    by_class = [
        (name, int(row.sum()), "" if accuracy is None else accuracy, _mistaken(row, place, names))
        for place, (name, row, accuracy) in enumerate(zip(names, confusion, measured["accuracy_by_class"], strict=True))
    ]
    lines = [table(rows), "", table(by_class[:SHOWN_CLASSES], ("class", "pictures", "per cent", "most taken for"))]
    if len(by_class) > SHOWN_CLASSES:
        lines.append(f"and {len(by_class) - SHOWN_CLASSES} more classes; --json has them all")
    cost = f"{measured['parameters']:,} parameters, {measured['flops'] / 1e9:.3g} GFLOPs a picture"
    lines += ["", f"{cost}, {measured['pictures_per_second']:,.0f} pictures/s in {measured['precision']}"]
    return "\n".join(lines)


def announce(prepared: PreparedClassification) -> Iterator[str]:
    """What is going to be trained on."""
    corpus, form = prepared.corpus, prepared.corpus.form
    yield (
        f"data: {prepared.config.data.source}, {len(corpus.train):,} pictures to train on, {len(corpus.valid):,} to "
        f"validate; {form.num_classes} classes, {form.height} x {form.width} pixels"
    )
    if corpus.report.notes or any(part.skipped for part in corpus.report.parts.values()):
        yield corpus.report.summary()


def impression(prepared: PreparedClassification, trained: ClassificationRun) -> dict[str, Any]:
    """Some validation pictures, classified."""
    valid = prepared.corpus.valid
    chosen = np.arange(0, len(valid), -(-len(valid) // CHECKED_PICTURES))
    some = PictureSet(valid.pictures.select(chosen), valid.labels[chosen], valid.form)
    batches = PictureBatches(some, batch_size=trained.task.config.evaluation_batch, seed=0)
    return trained.task.evaluate(trained.model, batches)


def impression_line(measured: dict[str, Any]) -> str:
    return f"{count(measured['pictures'], 'validation picture')}: {measured['accuracy']:.1f} % right"


def next_step(prepared: PreparedClassification, trained: ClassificationRun) -> str:
    """A command that shows what the run can do."""
    return f"regard {'look' if trained.has_attention else 'predict'} {trained.folder.path} PICTURE.png"


def _mistaken(row: np.ndarray, place: int, names: list[str]) -> str:
    """The class that a class is most often taken for, with how often."""
    others = row.copy()
    others[place] = 0
    worst = int(others.argmax())
    return f"{names[worst]} ({int(others[worst])})" if others[worst] else ""
