"""`regard demo`: what attention is good for, in minutes, with pictures."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from regard.cli.options import Shared, import_plugins, parse
from regard.cli.output import matrix, say, show, show_json, table
from regard.cli.translation.look import alignment_figure, slug
from regard.core.files import write_text
from regard.data.embedded import DECK_PAIR
from regard.explorer import write_page
from regard.plots import save
from regard.recipes.demo import Demo, DemoInterrupted, run_demo
from regard.recipes.translating import Look
from regard.training.progress import duration

DESCRIPTION = """Trains two translators on the generated English-French corpus, one with attention (rnnsearch) and
one without (cho), measures both, translates the deck's sentence, and draws the alignments. It
takes some minutes, and no download.

examples:
  regard demo
  regard demo --out /tmp/demo --json"""


@dataclass(frozen=True)
class DemoOptions(Shared):
    """Where to."""

    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("demo")
    """Pictures, page and translations go here, and the runs below it. Pictures of an earlier demo are replaced."""

    quick: tyro.conf.FlagCreatePairsOff[bool] = False
    """Three steps with tiny models: shows that everything works, and learns nothing."""


def run(argv: list[str]) -> int:
    import_plugins(argv)
    options, _ = parse(DemoOptions, argv, prog="demo", description=DESCRIPTION)
    started = time.monotonic()
    try:
        demo = run_demo(options.out, say, quick=options.quick)
    except DemoInterrupted as interrupted:
        say(f"The demo was interrupted. That training can go on: regard train --resume {interrupted.folder}")
        return 128 + interrupted.signal
    files = _write(demo, options.out)
    seconds = time.monotonic() - started
    if options.json:
        show_json(
            {
                "bleu": demo.measured["bleu"],
                "aer": demo.measured["aer"],
                "bleu_without_attention": demo.measured_fixed["bleu"],
                "seconds": round(seconds, 1),
                "deck_translation": demo.deck.translation.text,
                "deck_alignment": demo.deck.translation.pharaoh,
                "files": [str(path) for path in files],
            }
        )
    else:
        _show(demo, files, seconds)
    return 0


def _write(demo: Demo, folder: Path) -> list[Path]:
    """The deck's sentence and the others as PNG and SVG, the page, and the translations side by side."""
    files = []
    for look in (demo.deck, *demo.looks):
        figure = alignment_figure(look)
        name = slug(look.translation.source)
        files += [save(figure, folder / f"{name}{ending}") for ending in (".png", ".svg")]
    page = write_page(
        folder / "page.html",
        [(look.translation.source, look.recording) for look in (demo.deck, *demo.looks)],
        title="Where a translator looks",
        introduction=_sentence(demo),
        address=demo.attentive.task.alignment_tap(demo.attentive.model),
    )
    header = ("source", "reference", demo.attentive.name, demo.fixed.name)
    translations = folder / "translations.tsv"
    write_text(translations, "".join("\t".join(row) + "\n" for row in (header, *demo.translations)))
    return [*files, page, translations]


def _sentence(demo: Demo) -> str:
    return (
        f"On {demo.measured['sentences']:,} sentences that were held out, {demo.attentive.name} reaches "
        f"{demo.measured['bleu']:.1f} BLEU and an alignment error rate of {demo.measured['aer']:.3f}; "
        f"{demo.fixed.name}, the same without attention, {demo.measured_fixed['bleu']:.1f} BLEU."
    )


def _show(demo: Demo, files: list[Path], seconds: float) -> None:
    first, second = demo.measured, demo.measured_fixed
    rows = [
        ("BLEU, test sentences", f"{first['bleu']:.1f}", f"{second['bleu']:.1f}"),
        ("alignment error rate", f"{first['aer']:.3f}", "has none"),
    ]
    for words, bin_ in first["bleu_by_length"].items():
        rows.append((f"BLEU, {words} words", f"{bin_['bleu']:.1f}", f"{second['bleu_by_length'][words]['bleu']:.1f}"))
    show(table(rows, ("", f"with attention ({demo.attentive.name})", f"without ({demo.fixed.name})")))
    show()
    _show_deck(demo.deck)
    if demo.deck_right and demo.deck_reversal:
        show('This is right, and "European Economic Area" is read backwards, as it should be.')
    elif demo.deck_right:
        show('This is right, but the alignment does not show "European Economic Area" turned round.')
    else:
        show(f"This is not right; it should be: {DECK_PAIR.target_text}")
    show()
    for path in files:
        show(f"wrote {path}")
    show(f"in {duration(seconds)}")
    show()
    show("next:")
    sentence = demo.looks[0].translation.source if demo.looks else DECK_PAIR.source_text
    show(f"  open {files[-2]} in a browser")
    show(f'  regard look {demo.attentive.folder.path} "{sentence}"')
    show(f"  regard eval {demo.fixed.folder.path}")
    show("  regard train transformer")


def _show_deck(look: Look) -> None:
    assert look.translation.weights is not None
    show(look.translation.source)
    show(look.translation.text)
    show(f"alignment: {look.translation.pharaoh}")
    show()
    show(matrix(look.translation.weights, look.source_words, look.target_words))
    show()
