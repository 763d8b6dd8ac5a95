"""`regard look` for a classifier: a picture, what the model says of it, and where it looked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from matplotlib.figure import Figure

from regard.cli.options import Shared
from regard.cli.output import show, show_json
from regard.cli.running import parse_run
from regard.core.axes import Grid
from regard.core.errors import ConfigError
from regard.explorer import write_page
from regard.plots import draw_layers, draw_overlay, save
from regard.recipes.classifying import PictureLook
from regard.recipes.run import open_run
from regard.recording import Recording

ENDINGS = (".png", ".svg", ".pdf", ".html", ".regard")

DESCRIPTION = """Draws where a trained run looks in a picture: over the picture, the mean of the heads and each head.
The position that looks is the class token, or all of them together, or the one named by --query.

examples:
  regard look RUN cat.jpg
  regard look RUN cat.jpg --tap encoder.3.attention --query 17 --out cat.svg
  regard look RUN cat.jpg --tap "encoder.*" --out heads.png
  regard look RUN cat.jpg --out cat.html
  regard look RUN cat.jpg --out cat.regard"""


@dataclass(frozen=True)
class LookOptions(Shared):
    """What to look at, and how."""

    picture: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="PICTURE")]]
    """The picture's file."""

    out: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE")] = ()
    """Files to write, one or several: .png, .svg, .pdf, .html (a page to explore) or .regard (the recording). A
    .png in the run's folder when left out."""

    tap: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None
    """The attention to draw; the last one that looks at the picture when left out. A pattern draws every head of
    several as thumbnails."""

    query: int | None = None
    """The position that looks, counted from 0, the class token first where there is one."""

    dark: tyro.conf.FlagCreatePairsOff[bool] = False
    """Light on dark."""

    weights: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """best, averaged, last, the name of a checkpoint, or auto, which is best."""


def run(argv: list[str]) -> int:
    options, folder, _ = parse_run(LookOptions, argv, prog="look", description=DESCRIPTION)
    for path in options.out:
        if path.suffix.lower() not in ENDINGS:
            raise ConfigError(f"{path}: a file to look at ends in {', '.join(ENDINGS)}; choose one of them.")
    look = open_run(folder.path, options.weights).look(options.picture)
    pattern = options.tap is not None and bool(set("*?[") & set(options.tap))
    if not pattern:
        tap = options.tap or last_tap(look.recording)
        look.recording[tap]  # a wrong name is said before anything is written
    files = []
    for path in options.out or (folder.path / "look" / f"{options.picture.stem}.png",):
        files.append(_write(look, path, options))
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


def _write(look: PictureLook, path: Path, options: LookOptions) -> Path:
    """One file, by its ending."""
    ending = path.suffix.lower()
    if ending == ".regard":
        return look.recording.save(path)
    if ending == ".html":
        return write_page(path, [(options.picture.name, look.recording)], address=options.tap)
    return save(_draw(look, options), path)


def last_tap(recording: Recording) -> str:
    """The last attention that looks at places in the picture."""
    looking = [address for address in recording if any(isinstance(axis, Grid) for axis in recording[address].key_axes)]
    if not looking:
        raise ConfigError(
            f"No attention of this model looks at places in the picture. It has: {', '.join(recording)}; name one "
            "with --tap."
        )
    return looking[-1]


def _draw(look: PictureLook, options: LookOptions) -> Figure:
    if options.tap is not None and set("*?[") & set(options.tap):
        return draw_layers(look.recording, taps=options.tap, dark=options.dark)
    tap = options.tap or last_tap(look.recording)
    name, probability = look.prediction.names[0], look.prediction.probabilities[0]
    title = f"{name} ({100 * probability:.0f} %), {tap}" if options.query is None else None
    return draw_overlay(look.recording, tap, query=options.query, title=title, dark=options.dark)
