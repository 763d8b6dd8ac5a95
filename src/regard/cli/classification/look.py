"""`regard look` for a classifier: a picture, what the model says of it, and where it looked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from matplotlib.figure import Figure

from regard.cli.encodings import positions_figure
from regard.cli.output import show, show_json
from regard.cli.running import parse_run
from regard.cli.views import (
    PICTURES,
    Viewing,
    check_endings,
    check_view,
    default_tap,
    default_view,
    draw,
    is_pattern,
)
from regard.explorer import write_page
from regard.plots import draw_overlay, save
from regard.recipes.classifying import ClassificationRun, PictureLook
from regard.recipes.run import open_run

ENDINGS = (*PICTURES, ".html", ".regard")

DESCRIPTION = """Draws where a trained run looks in a picture: over the picture, the mean of the heads and each head.
The position that looks is the class token, or all of them together, or the one named by --query.

examples:
  regard look RUN cat.jpg
  regard look RUN cat.jpg --tap encoder.3.attention --query 3,4 --out cat.svg
  regard look RUN cat.jpg --tap "encoder.*" --out heads.png
  regard look RUN cat.jpg --view distance     (or heads, layers, entropy, positions, ...)
  regard look RUN cat.jpg --out cat.html
  regard look RUN cat.jpg --out cat.regard"""


@dataclass(frozen=True, kw_only=True)
class LookOptions(Viewing):
    """What to look at, and how."""

    picture: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="PICTURE")]]
    """The picture's file."""

    weights: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """best, averaged, last, the name of a checkpoint, or auto, which is best."""


def run(argv: list[str]) -> int:
    options, folder, _ = parse_run(LookOptions, argv, prog="look", description=DESCRIPTION)
    check_endings(options, ENDINGS)
    check_view(options.view, "positions")
    opened = open_run(folder.path, options.weights)
    look = opened.look(options.picture)
    if options.tap is not None and not is_pattern(options.tap):
        look.recording[options.tap]  # a wrong name is said before anything is written
    name = f"{options.picture.stem}-{options.view}.png" if options.view else f"{options.picture.stem}.png"
    outs = options.out or (folder.path / "look" / name,)
    files = [_write(opened, look, path, options) for path in outs]
    prediction = look.prediction
    if options.json:
        taps = look.recording.addresses
        show_json(
            {"picture": str(options.picture), **prediction.to_json(), "taps": taps, "files": list(map(str, files))}
        )
        return 0
    show(f"{options.picture}: {prediction.names[0]} ({100 * prediction.probabilities[0]:.1f} %)")
    for path in files:
        show(f"wrote {path}")
    return 0


def _write(opened: ClassificationRun, look: PictureLook, path: Path, options: LookOptions) -> Path:
    """One file, by its ending."""
    ending = path.suffix.lower()
    if ending == ".regard":
        return look.recording.save(path)
    if ending == ".html":
        return write_page(path, [(options.picture.name, look.recording)], address=options.tap)
    return save(_draw(opened, look, options), path)


def _draw(opened: ClassificationRun, look: PictureLook, options: LookOptions) -> Figure:
    if options.view == "positions":
        return positions_figure(opened, dark=options.dark)
    tap = options.tap if options.tap and not is_pattern(options.tap) else default_tap(look.recording)
    view = options.view or default_view(look.recording, tap, options)
    if view != "overlay" or options.query is not None:
        return draw(look.recording, view, tap, options)
    name, probability = look.prediction.names[0], look.prediction.probabilities[0]
    return draw_overlay(look.recording, tap, title=f"{name} ({100 * probability:.0f} %), {tap}", dark=options.dark)
