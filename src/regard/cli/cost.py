"""`regard cost`: what a recording of a model will take, before it is made, beside its attention matrices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import tyro
from torch import nn

from regard.cli.options import Shared, import_plugins, parse
from regard.cli.output import count, show, show_json, size, table
from regard.core.errors import ConfigError, RegardError, UnknownNameError
from regard.core.models import ModelConfig, models, sizes
from regard.recipes.run import read_config
from regard.recording import Recording, recording_cost
from regard.recording.cost import DECK_CASES, Cost, binary, dense_cost
from regard.training import RunFolder

DESCRIPTION = """Says what a recording keeps and what all attention matrices would take in float32, tap by tap,
without computing either. Without a model it counts the cases of the lecture deck.

examples:
  regard cost
  regard cost vit_base_patch16_224 --image-size 512
  regard cost transformer --tokens 512 400 --batch 8 --precision bfloat16
  regard cost runs/rnnsearch/20260101-120000
  regard cost pair.regard --json"""

VOCABULARY = 100
CLASSES = 10


@dataclass(frozen=True)
class CostOptions(Shared):
    """Of what, and how large."""

    model: tyro.conf.Positional[Annotated[str | None, tyro.conf.arg(metavar="MODEL")]] = None
    """A published size (`regard list sizes`), a model (`regard list models`), a run folder or a .regard file."""

    image_size: tuple[int, ...] = ()
    """Pixels of a side, or height and width; the model's own size when left out."""

    tokens: tuple[int, ...] = (50,)
    """Tokens of source and target, or of both."""

    batch: int = 1
    """Examples that are recorded together."""

    precision: Literal["float32", "bfloat16"] = "float32"
    """The numbers that the model computes with."""

    channels: int = 3
    """Channels of a picture."""


def run(argv: list[str]) -> int:
    import_plugins(argv)
    options, _ = parse(CostOptions, argv, prog="cost", description=DESCRIPTION)
    if options.model is None:
        _show_decks(options.json)
        return 0
    cost = _cost(options)
    if options.json:
        show_json({"model": options.model, "recorded": cost.recorded, "maps": cost.maps, "taps": _taps(cost)})
        return 0
    rows = [
        (tap.address, tap.form, " x ".join(f"{part:,}" for part in tap.shape), size(tap.recorded), size(tap.maps))
        for tap in cost.taps
    ]
    show(table(rows, header=("tap", "form", "examples x heads x queries x keys", "recorded", "matrices")))
    show()
    show(f"recorded: {size(cost.recorded)} for {count(len(cost.taps), 'map')} in {options.precision}")
    show(f"all attention matrices in float32: {size(cost.maps)} ({binary(cost.maps)})")
    return 0


def _show_decks(as_json: bool) -> None:
    """The deck counts in float32 and in units of 1,024."""
    cases = [
        (name, tokens, layers, heads, dense_cost(tokens, layers, heads))
        for name, (tokens, layers, heads) in DECK_CASES.items()
    ]
    if as_json:
        show_json(
            {
                "cases": [
                    {"case": name, "tokens": tokens, "layers": layers, "heads": heads, "matrix": cost.taps[0].matrix}
                    | {"matrices": cost.maps}
                    for name, tokens, layers, heads, cost in cases
                ]
            }
        )
        return
    rows = [
        (name, tokens, layers, heads, binary(cost.taps[0].matrix), binary(cost.maps))
        for name, tokens, layers, heads, cost in cases
    ]
    show(table(rows, header=("deck", "tokens", "layers", "heads", "one matrix", "all matrices")))
    show()
    show("Four bytes a number; 1 KiB = 1,024 bytes, cut off, as the deck has it. `regard cost MODEL` counts a model.")


def _taps(cost: Cost) -> list[dict[str, Any]]:
    return [
        {"address": tap.address, "form": tap.form, "shape": list(tap.shape), "recorded": tap.recorded, "maps": tap.maps}
        for tap in cost.taps
    ]


def _cost(options: CostOptions) -> Cost:
    name = str(options.model)
    if name.endswith(".regard"):
        return Recording.load(name).cost
    config = _config(name)
    entry = models[config.kind]
    dtype = getattr(torch, options.precision)
    with torch.device("meta"):
        if entry.family == "classifier":
            height, width = _picture(options, config)
            model = entry.build(config, CLASSES, options.channels)
            inputs: tuple[Any, ...] = (torch.empty(options.batch, options.channels, height, width, dtype=dtype),)
        elif entry.family == "translator":
            model = entry.build(config, VOCABULARY, VOCABULARY)
            lengths = _one_or_two(options.tokens, "--tokens")
            inputs = tuple(torch.empty(options.batch, length, dtype=torch.int64) for length in lengths)
        else:
            raise ConfigError(f"The cost of a {entry.family} is not known here; record a small input and look at it.")
    return _rehearsed(model.to(dtype).eval(), inputs, name)


def _rehearsed(model: nn.Module, inputs: tuple[Any, ...], name: str) -> Cost:
    try:
        return recording_cost(model, *inputs)
    except RegardError as error:
        if "No attention" in str(error) or "no attention" in str(error):
            raise ConfigError(f"{name} has no attention, so there is nothing to record.") from error
        raise


def _config(name: str) -> ModelConfig:
    """Of a run folder, a published size, or a model as it is by default."""
    if Path(name).is_dir():
        return read_config(RunFolder.open(name)).model
    if name in sizes:
        return sizes[name]()
    if name in models:
        return models[name].config()  # type: ignore[call-arg]
    raise UnknownNameError("model, size, run folder or recording", name, [*models, *sizes])


def _picture(options: CostOptions, config: ModelConfig) -> tuple[int, int]:
    given = options.image_size or (getattr(config, "image_size", 224),)
    return _one_or_two(given, "--image-size")


def _one_or_two(given: tuple[int, ...], option: str) -> tuple[int, int]:
    if len(given) not in (1, 2) or min(given) < 1:
        raise ConfigError(f"{option} takes one or two whole numbers above zero, not {' '.join(map(str, given))}.")
    return given[0], given[-1]
