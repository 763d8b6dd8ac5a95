"""`regard data` for a classifier: what a recipe reads, before any time is spent on training with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from regard.cli.choosing import chosen_config, parse_recipe
from regard.cli.options import Shared
from regard.cli.output import say, show, show_json, table
from regard.data.pictures.batches import PictureBatches
from regard.data.pictures.config import PictureConfig
from regard.data.pictures.dataset import PictureCorpus, load_pictures
from regard.data.sources import PARTS

DESCRIPTION = """Reads the pictures of a recipe, or your own, and tells what is in them: sizes, classes, how they are
normalised and varied, files that cannot be read.

examples:
  regard data vit-shapes
  regard data vit-shapes --data.source folder --data.root my_pictures --data.size 64
  regard data cnn-cifar10 --json"""


@dataclass(frozen=True)
class DataOptions(Shared):
    """Nothing of its own."""


def run(argv: list[str]) -> int:
    options, recipe, values = parse_recipe(DataOptions, argv, prog="data", description=DESCRIPTION)
    config = chosen_config(recipe, values).data
    assert isinstance(config, PictureConfig)
    say(f"reading the pictures of {config.source}")
    corpus = load_pictures(config)
    described = _described(config, corpus)
    if options.json:
        show_json(described)
        return 0
    _show(described, corpus)
    return 0


def _described(config: PictureConfig, corpus: PictureCorpus) -> dict[str, Any]:
    return {
        "source": config.source,
        "form": corpus.form.to_json(),
        "parts": {
            name: {"pictures": len(corpus.part(name)), "classes": corpus.part(name).counts.tolist()} for name in PARTS
        },
        "batches": len(PictureBatches.of(config, corpus.train).epoch(0)),
        "crop_padding": config.padding,
        "flip": config.flips,
        "report": corpus.report.to_json(),
    }


def _show(described: dict[str, Any], corpus: PictureCorpus) -> None:
    form = corpus.form
    show(
        f"{described['source']}: {form.height} x {form.width} pixels, {form.channels} channels, "
        f"{form.num_classes} classes"
    )
    mean, std = (", ".join(f"{value:.4f}" for value in values) for values in (form.mean, form.std))
    show(f"normalised by the mean {mean} and the standard deviation {std} of the training pictures")
    show()
    counts = [part["classes"] for part in described["parts"].values()]
    rows = [(name, *numbers) for name, *numbers in zip(form.class_names, *counts, strict=True)]
    rows.append(("all", *(part["pictures"] for part in described["parts"].values())))
    show(table(rows, ("class", *PARTS)))
    show()
    show(
        f"training batches: {described['batches']:,} an epoch; moved by up to {described['crop_padding']} pixels, "
        f"{'mirrored' if described['flip'] else 'never mirrored'}"
    )
    show(corpus.report.summary())
