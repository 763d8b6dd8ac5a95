"""`regard look` for a translator: a sentence, its translation, and where the model looked while writing it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from matplotlib.figure import Figure

from regard.cli.encodings import positions_figure
from regard.cli.output import matrix, show, show_json
from regard.cli.running import parse_run
from regard.cli.translation.report import tell_unknown
from regard.cli.views import PICTURES, Viewing, check_endings, check_view, draw, is_pattern
from regard.core.errors import ConfigError
from regard.explorer import write_page
from regard.plots import draw_alignment, draw_heads, draw_words, save
from regard.plots.view import place_of
from regard.recipes.run import open_run
from regard.recipes.translating import Look, TranslationRun

ENDINGS = (*PICTURES, ".html", ".regard")

DESCRIPTION = """Draws where a trained run looks while it translates a sentence: the alignment of words and, for a
model with several heads, each head. Without --out the pictures go into the run folder.

examples:
  regard look RUN "The agreement on the European Economic Area was signed in August 1992 ."
  regard look RUN "The cat sleeps ." --out cat.svg
  regard look RUN "The cat sleeps ." --target "Le chat dort ."
  regard look RUN "The cat sleeps ." --view words --query dort
  regard look RUN "The cat sleeps ." --view heads --tap decoder.0.cross --out heads.pdf
  regard look RUN "The cat sleeps ." --view entropy     (or layers, distance, positions, ...)
  regard look RUN "The cat sleeps ." --out page.html"""


@dataclass(frozen=True, kw_only=True)
class LookOptions(Viewing):
    """What to look at, and how."""

    sentence: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="SENTENCE")]]
    """The sentence to translate."""

    target: Annotated[str | None, tyro.conf.arg(metavar="TRANSLATION")] = None
    """Look at this translation instead of the model's own."""

    out: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE")] = ()
    """Files to write, one or several: .png, .svg, .pdf, .html (a page to explore) or .regard (the recording)."""

    heads: tyro.conf.FlagCreatePairsOff[bool] = False
    """Short for --view heads."""

    weights: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """best, averaged, last, the name of a checkpoint, or auto, which is best."""


def run(argv: list[str]) -> int:
    options, folder, configs = parse_run(LookOptions, argv, prog="look", description=DESCRIPTION)
    check_endings(options, ENDINGS)
    check_view(options.view, "positions")
    if options.heads and options.view not in (None, "heads"):
        raise ConfigError(f"--heads is short for --view heads, and --view {options.view} is another picture.")
    opened = open_run(folder.path, options.weights)
    look = opened.look(options.sentence, options.target, configs["decoding"])
    _check_tap(options.tap, look)
    tell_unknown(opened.task.source_tokenizer, look.translation.source)
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
    view = view_of(options)
    if view != "alignment":
        return [write(opened, look, folder / f"{name}-{view}.png", options)]
    files = [write(opened, look, folder / f"{name}.png", options)]
    tap = opened.task.alignment_tap(opened.model)
    if options.view is None and look.recording[tap].shape[1] > 1:
        files.append(save(draw_heads(look.recording, tap, dark=options.dark), folder / f"{name}-heads.png"))
    return files


def view_of(options: LookOptions) -> str:
    """The view that is named, or the one that the other options mean."""
    if options.view is not None:
        return options.view
    if options.tap is not None:
        return "layers" if is_pattern(options.tap) else "heads"
    return "heads" if options.heads else "alignment"


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
    return save(_figure(opened, look, options), path)


def _figure(opened: TranslationRun, look: Look, options: LookOptions) -> Figure:
    view = view_of(options)
    if view == "positions":
        return positions_figure(opened, dark=options.dark)
    words = options.tap is None and options.head is None  # then weights are summed over the tokens of a word
    if view == "alignment" and words:
        return alignment_figure(look, dark=options.dark)
    if view == "words" and words:
        return words_figure(look, options.query, dark=options.dark)
    return draw(look.recording, view, opened.task.alignment_tap(opened.model), options)


def alignment_figure(look: Look, *, title: str | None = None, dark: bool = False) -> Figure:
    """Target words by source words; the end of the sentence is a column, because attention may rest on it."""
    assert look.translation.weights is not None
    return draw_alignment(look.translation.weights, look.source_words, look.target_words, title=title, dark=dark)


def words_figure(look: Look, query: str | None, *, dark: bool = False) -> Figure:
    """The same weights as lines between words; `query` is a word of the translation, or its number."""
    assert look.translation.weights is not None
    place = None if query is None else place_of(query, look.target_words, "the translation")
    roles = ("translation", "source")
    return draw_words(
        look.translation.weights, look.target_words, look.source_words, query=place, roles=roles, dark=dark
    )


def _check_tap(tap: str | None, look: Look) -> None:
    """A name without a pattern has to be one that was recorded; the recording says which was meant."""
    if tap is not None and not is_pattern(tap):
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
