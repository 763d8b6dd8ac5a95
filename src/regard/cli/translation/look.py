"""`regard look` for a translator: a sentence, its translation, and where the model looked while writing it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from matplotlib.figure import Figure

from regard.cli.options import Shared
from regard.cli.output import matrix, show, show_json
from regard.cli.running import parse_run
from regard.core.errors import ConfigError
from regard.explorer import write_page
from regard.plots import draw_alignment, draw_heads, draw_layers, save
from regard.recipes.run import open_run
from regard.recipes.translating import Look, TranslationRun

PICTURES = (".png", ".svg", ".pdf")
ENDINGS = (*PICTURES, ".html", ".regard")

DESCRIPTION = """Draws where a trained run looks while it translates a sentence: the alignment of words and, for a
model with several heads, each head. Without --out the pictures go into the run folder.

examples:
  regard look RUN "The agreement on the European Economic Area was signed in August 1992 ."
  regard look RUN "The cat sleeps ." --out cat.svg
  regard look RUN "The cat sleeps ." --target "Le chat dort ."
  regard look RUN "The cat sleeps ." --heads --tap decoder.0.cross --out heads.pdf
  regard look RUN "The cat sleeps ." --out page.html"""


@dataclass(frozen=True)
class LookOptions(Shared):
    """What to look at, and how."""

    sentence: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="SENTENCE")]]
    """The sentence to translate."""

    target: Annotated[str | None, tyro.conf.arg(metavar="TRANSLATION")] = None
    """Look at this translation instead of the model's own."""

    out: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE")] = ()
    """Files to write, one or several: .png, .svg, .pdf, .html (a page to explore) or .regard (the recording)."""

    tap: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None
    """The attention to draw head by head, such as decoder.2.cross; a pattern such as encoder.* draws several."""

    heads: tyro.conf.FlagCreatePairsOff[bool] = False
    """Draw the heads of the attention that alignments are read off (or of --tap), and not the alignment."""

    dark: tyro.conf.FlagCreatePairsOff[bool] = False
    """Light on dark."""

    weights: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """best, averaged, last, the name of a checkpoint, or auto, which is best."""


def run(argv: list[str]) -> int:
    options, folder, configs = parse_run(LookOptions, argv, prog="look", description=DESCRIPTION)
    for path in options.out:
        if path.suffix.lower() not in ENDINGS:
            raise ConfigError(f"{path}: a file to look at ends in {', '.join(ENDINGS)}; choose one of them.")
    opened = open_run(folder.path, options.weights)
    look = opened.look(options.sentence, options.target, configs["decoding"])
    _check_tap(options.tap, look)
    files = write_looks(opened, look, options)
    if options.json:
        weights = look.translation.weights
        assert weights is not None
        show_json(
            {
                **look.translation.to_json(),
                "source_words": list(look.source_words),
                "target_words": list(look.target_words),
                "weights": weights.round(4).tolist(),
                "taps": look.recording.addresses,
                "files": [str(path) for path in files],
            }
        )
        return 0
    _show(look, files)
    return 0


def write_looks(opened: TranslationRun, look: Look, options: LookOptions) -> list[Path]:
    """The files that were asked for, or else an alignment and, where there are several heads, a second picture."""
    if options.out:
        return [write(opened, look, path, options) for path in options.out]
    folder = opened.folder.path / "look"
    name = slug(look.translation.source)
    several = look.recording[opened.task.alignment_tap(opened.model)].shape[1] > 1
    if options.heads or options.tap:
        return [write(opened, look, folder / f"{name}-heads.png", options)]
    files = [write(opened, look, folder / f"{name}.png", options)]
    if several:
        files.append(save(heads_figure(opened, look, None, options.dark), folder / f"{name}-heads.png"))
    return files


def write(opened: TranslationRun, look: Look, path: Path, options: LookOptions) -> Path:
    """One file, by its ending."""
    ending = path.suffix.lower()
    if ending == ".regard":
        return look.recording.save(path)
    if ending == ".html":
        return write_page(
            path,
            [(look.translation.source, look.recording)],
            introduction=f"{opened.name}: every attention of the model while it wrote this translation.",
            address=options.tap or opened.task.alignment_tap(opened.model),
        )
    if options.heads or options.tap:
        return save(heads_figure(opened, look, options.tap, options.dark), path)
    return save(alignment_figure(look, dark=options.dark), path)


def alignment_figure(look: Look, *, title: str | None = None, dark: bool = False) -> Figure:
    """Target words by source words; the end of the sentence is a column, because attention may rest on it."""
    assert look.translation.weights is not None
    return draw_alignment(look.translation.weights, look.source_words, look.target_words, title=title, dark=dark)


def heads_figure(opened: TranslationRun, look: Look, tap: str | None, dark: bool) -> Figure:
    """The heads of one tap, or, for a pattern, of all that match it."""
    if tap is not None and tap not in look.recording:
        return draw_layers(look.recording, taps=tap, dark=dark)
    return draw_heads(look.recording, tap or opened.task.alignment_tap(opened.model), dark=dark)


def _check_tap(tap: str | None, look: Look) -> None:
    """A name without a pattern has to be one that was recorded; the recording says which was meant."""
    if tap is not None and not set("*?[") & set(tap):
        look.recording[tap]


def _show(look: Look, files: list[Path]) -> None:
    translation = look.translation
    assert translation.weights is not None
    show(translation.source)
    show(translation.text)
    show(f"alignment: {translation.pharaoh}")
    for text, score in translation.alternatives:
        show(f"also: {text}  ({score:.3f})")
    show()
    show(matrix(translation.weights, look.source_words, look.target_words))
    show()
    for path in files:
        show(f"wrote {path}")


def slug(text: str, length: int = 48) -> str:
    """A file name made of a sentence: its letters and digits, with hyphens between."""
    words = re.findall(r"\w+", unicodedata.normalize("NFC", text).lower())
    kept = words[:1]
    for word in words[1:]:
        if len("-".join([*kept, word]).encode()) > length:
            break
        kept.append(word)
    return "-".join(kept)[:length] or "sentence"
