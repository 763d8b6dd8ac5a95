"""`regard look` for a classifier: a picture, what the model says of it, and where it looked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from matplotlib.figure import Figure

from regard.cli.classification.opening import open_classifier, parse_place
from regard.cli.encodings import positions_figure
from regard.cli.output import show, show_json
from regard.cli.views import (
    PICTURES,
    Viewing,
    check_endings,
    check_view,
    default_tap,
    default_view,
    draw,
    is_pattern,
    looks_at_picture,
)
from regard.core.axes import Grid
from regard.core.errors import ConfigError
from regard.explorer import write_page
from regard.plots import draw_overlay, draw_scan_path, save
from regard.plots.overlay import picture_of
from regard.plots.windows import draw_windows
from regard.recipes.checkpoints import PretrainedClassifier
from regard.recipes.classifying import ClassificationRun, PictureLook
from regard.recording import Recording
from regard.tasks.classification import occlusion

DRAWN = ("scan_path", "windows")
"""Views that only models have which choose glimpses or cut out windows, by what such an output is called."""

Opened = ClassificationRun | PretrainedClassifier

ENDINGS = (*PICTURES, ".html", ".regard")

DESCRIPTION = """Draws where a trained run looks in a picture: over the picture, the mean of the heads and each head.
The position that looks is the class token, or all of them together, or the one named by --query.
RUN may be a checkpoint of timm, transformers or torchvision: a folder, a file, or hf-hub:OWNER/MODEL. Of a checkpoint
without attention it is drawn where covering the picture lowers the probability of its class.

examples:
  regard look RUN cat.jpg
  regard look RUN cat.jpg --tap encoder.3.attention --query 3,4 --out cat.svg
  regard look RUN cat.jpg --tap "encoder.*" --out heads.png
  regard look RUN cat.jpg --view distance     (or heads, layers, entropy, positions, ...)
  regard look RUN digit.png --view scan_path  (of glimpses; windows of a spatial transformer)
  regard look RUN cat.jpg --out cat.html
  regard look RUN cat.jpg --out cat.regard
  regard look downloads/resnet50.pth cat.jpg"""


@dataclass(frozen=True, kw_only=True)
class LookOptions(Viewing):
    """What to look at, and how."""

    picture: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="PICTURE")]]
    """The picture's file."""

    weights: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """best, averaged, last, the name of a checkpoint, or auto, which is best."""


def run(argv: list[str]) -> int:
    options, place = parse_place(LookOptions, argv, prog="look", description=DESCRIPTION)
    check_endings(options, ENDINGS)
    check_view(options.view, "positions", *DRAWN)
    opened = open_classifier(place, options.weights)
    look = opened.look(options.picture)
    if options.tap is not None and not is_pattern(options.tap):
        look.recording[options.tap]  # a wrong name is said before anything is written
    files = [_write(opened, look, path, options) for path in options.out or (_usual_place(opened, options),)]
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


def _usual_place(opened: Opened, options: LookOptions) -> Path:
    """In the run's folder; beside nothing of a checkpoint's, but here."""
    view = f"-{options.view}" if options.view else ""
    if isinstance(opened, ClassificationRun):
        return opened.folder.path / "look" / f"{options.picture.stem}{view}.png"
    return Path(f"{options.picture.stem}-look{view}.png")


def _write(opened: Opened, look: PictureLook, path: Path, options: LookOptions) -> Path:
    """One file, by its ending."""
    ending = path.suffix.lower()
    if ending == ".regard":
        return look.recording.save(path)
    if ending == ".html":
        return write_page(path, [(options.picture.name, look.recording)], address=options.tap)
    return save(_draw(opened, look, options), path)


def _draw(opened: Opened, look: PictureLook, options: LookOptions) -> Figure:
    if options.view == "positions":
        return positions_figure(opened, dark=options.dark)
    usual = options.view or options.tap or options.query
    if options.view in DRAWN or (usual is None and "windows" in look.recording.outputs):
        return _drawn(look, options.view or "windows", options)
    tap = options.tap if options.tap and not is_pattern(options.tap) else default_tap(look.recording)
    view = options.view or _usual_view(look.recording, tap, options)
    if view != "overlay" or options.query is not None:
        return draw(look.recording, view, tap, options)
    query = "0" if tap == occlusion.ADDRESS else None  # the likeliest class
    name, probability = look.prediction.names[0], look.prediction.probabilities[0]
    title = f"{name} ({100 * probability:.0f} %), {tap}"
    return draw_overlay(look.recording, tap, query=query, title=title, dark=options.dark)


def _drawn(look: PictureLook, view: str, options: LookOptions) -> Figure:
    """What the model itself says of where it looked, on the picture."""
    places = look.recording.outputs.get(view)
    if places is None:
        raise ConfigError(
            f"This model has no {view.replace('_', ' ')}: it sees the whole picture at once. Leave --view out."
        )
    name, probability = look.prediction.names[0], look.prediction.probabilities[0]
    picture, title = picture_of(look.recording, 0), f"{name} ({100 * probability:.0f} %)"
    draw_on = draw_scan_path if view == "scan_path" else draw_windows
    return draw_on(picture, np.array(places[0]), title=title, dark=options.dark)


def _usual_view(recording: Recording, tap: str, options: LookOptions) -> str:
    """Over the picture too where one grid looks at another, or classes at places."""
    if options.tap is None or not is_pattern(options.tap):
        seen = recording[options.tap or tap]
        asking = seen.query_axes[0] if seen.query_axes else None
        if looks_at_picture(seen) and (isinstance(asking, Grid) or seen.address == occlusion.ADDRESS):
            return "overlay"
    return default_view(recording, tap, options)
