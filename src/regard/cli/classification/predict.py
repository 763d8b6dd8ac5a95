"""`regard predict` for a classifier: pictures in, classes out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from regard.cli.classification.opening import open_classifier, parse_place
from regard.cli.options import Shared
from regard.cli.output import show
from regard.core.errors import ConfigError
from regard.recipes.checkpoints import PretrainedClassifier
from regard.recipes.classifying import ClassificationRun, decoded

CHUNK = 256

DESCRIPTION = """Says what is in pictures: the likeliest classes of each, with their probabilities. A file that is no
picture ends the work and is named; nothing is skipped. RUN may be a checkpoint of timm, transformers or torchvision: a
folder, a file, or hf-hub:OWNER/MODEL.

examples:
  regard predict RUN cat.jpg dog.png
  regard predict RUN *.png --top 3 --json
  regard predict downloads/vit cat.jpg"""


@dataclass(frozen=True)
class PredictOptions(Shared):
    """What to look at, and how much to say."""

    pictures: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="PICTURE")]] = ()
    """Files of pictures: PNG, JPEG and whatever else Pillow reads."""

    top: int = 5
    """So many classes of each."""

    weights: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """best, averaged, last, the name of a checkpoint, or auto, which is best."""


def run(argv: list[str]) -> int:
    options, place = parse_place(PredictOptions, argv, prog="predict", description=DESCRIPTION)
    if not options.pictures:
        raise ConfigError("Name the pictures to look at: `regard predict RUN PICTURE.png ...`.")
    if options.top < 1:
        raise ConfigError(f"--top is {options.top}, but at least one class has to be said.")
    opened = open_classifier(place, options.weights)
    for line in _lines(opened, options):
        show(line)
    return 0


def _lines(opened: ClassificationRun | PretrainedClassifier, options: PredictOptions) -> Iterator[str]:
    for start in range(0, len(options.pictures), CHUNK):
        chunk = options.pictures[start : start + CHUNK]
        predictions = opened.classify([decoded(path) for path in chunk], options.top)
        for path, prediction in zip(chunk, predictions, strict=True):
            if options.json:
                yield json.dumps({"picture": str(path), **prediction.to_json()}, ensure_ascii=False)
            else:
                said = ", ".join(
                    f"{name} {100 * probability:.1f} %"
                    for name, probability in zip(prediction.names, prediction.probabilities, strict=True)
                )
                yield f"{path}: {said}"
