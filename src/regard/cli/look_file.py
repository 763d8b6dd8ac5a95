"""`regard look FILE.regard`: pictures of recordings that were kept, without the model they are of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from regard.cli.options import import_plugins, parse
from regard.cli.output import say, show, show_json, size, table
from regard.cli.views import PICTURES, Viewing, check_endings, check_view, default_tap, default_view, describe, draw
from regard.core.errors import ConfigError
from regard.explorer import write_page
from regard.plots import draw_training, save, write_film
from regard.recording import Recording

ENDING = ".regard"
PAGE = ".html"
FILMS = (".gif", ".mp4")

DESCRIPTION = """Draws recordings that were kept, without the model they are of. Several recordings of one training
make a film, in the order of their names.

examples:
  regard look cat.regard
  regard look cat.regard --view layers --out layers.svg
  regard look sentence.regard --tap decoder.2.cross --view words --query dog
  regard look RUN/film/*.regard --tap decoder.2.cross --out film.gif"""


@dataclass(frozen=True, kw_only=True)
class FileOptions(Viewing):
    """What to look at, and how."""

    files: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE.regard")]]
    """The recording, or several for a film."""

    example: int = 0
    """Which example of the recording, counted from 0."""

    out: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE")] = ()
    """Files to write: .png, .svg, .pdf or .html (a page to explore), or .gif or .mp4 for a film. A .png (or .gif)
    beside the recording when left out."""


def run(argv: list[str]) -> int:
    import_plugins(argv)
    options, _ = parse(FileOptions, argv, prog="look FILE.regard", description=DESCRIPTION)
    check_endings(options, (*PICTURES, PAGE, *FILMS))
    check_view(options.view)
    films = [path for path in options.out if path.suffix.lower() in FILMS]
    if len(options.files) > 1 or films:
        written, described = _films(options)
    else:
        written, described = _pictures(options)
    if options.json:
        show_json({**described, "files": [str(path) for path in written]})
        return 0
    for path in written:
        show(f"wrote {path}")
    return 0


def _pictures(options: FileOptions) -> tuple[list[Path], dict[str, Any]]:
    file = options.files[0]
    recording = Recording.load(file)
    address = options.tap if options.tap in recording else default_tap(recording)
    assert address is not None
    view = options.view or default_view(recording, address, options)
    outs = options.out or (file.with_suffix(".png"),)
    written = [
        write_page(path, recording, title=file.name, address=options.tap)
        if path.suffix.lower() == PAGE
        else save(draw(recording, view, address, options, options.example), path)
        for path in outs
    ]
    taps = describe(recording)
    if not options.json:
        rows = [
            (tap["address"], f"{tap['queries']} -> {tap['keys']}", " x ".join(map(str, tap["shape"])), tap["form"])
            for tap in taps
        ]
        show(table(rows, ("attention", "", "examples x heads x queries x keys", "form")))
        show(f"{size(recording.nbytes)} in all")
    return written, {"recording": str(file), "view": view, "taps": taps}


def _films(options: FileOptions) -> tuple[list[Path], dict[str, Any]]:
    if others := [path for path in options.out if path.suffix.lower() not in FILMS]:
        raise ConfigError(f"Several recordings make a film, which ends in {' or '.join(FILMS)}, but not {others[0]}.")
    if options.view not in (None, "heads"):
        raise ConfigError(f"A film shows the heads of one attention; --view {options.view} draws a single recording.")
    steps = [(_step(file, number), Recording.load(file)) for number, file in enumerate(_in_order(options.files))]
    address = options.tap or default_tap(steps[0][1])
    say(f"a film of {len(steps)} recordings of {address}")
    outs = options.out or (options.files[0].with_name("film.gif"),)
    written = [
        write_film(path, draw_training(steps, address, example=options.example, dark=options.dark)) for path in outs
    ]
    return written, {"recordings": [str(path) for path in options.files], "steps": [step for step, _ in steps]}


def _in_order(files: Sequence[Path]) -> list[Path]:
    """By the numbers in their names, so that step 90 comes before step 100."""
    return sorted(files, key=lambda path: [int(part) if part.isdecimal() else 0 for part in _parts(path)])


def _step(file: Path, number: int) -> int:
    """The last number of the name, which is the step of the training; else the place among the files."""
    numbers = [part for part in _parts(file) if part.isdecimal()]
    return int(numbers[-1]) if numbers else number


def _parts(path: Path) -> list[str]:
    return re.split(r"(\d+)", path.stem)
