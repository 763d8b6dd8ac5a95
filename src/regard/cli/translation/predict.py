"""`regard predict` for a translator: sentences in, translations out, line by line."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TextIO, cast

import tyro

from regard.cli.options import Shared, changed
from regard.cli.output import say
from regard.cli.running import parse_run
from regard.cli.translation.report import tell_unknown
from regard.core.errors import ConfigError, DataError
from regard.core.files import atomic_path
from regard.data.lines import check_file, read_lines
from regard.data.text import normalise
from regard.recipes.run import open_run
from regard.recipes.translating import TranslationRun, is_unknown, shortened
from regard.tasks.decoding import DecodingConfig
from regard.tasks.translation import Translation

CHUNK = 256
"""At most so many lines are translated together."""

DESCRIPTION = """Translates the sentences that are given, or those of a file, or those that come in on standard
input, one a line. An empty line gives an empty line. A line that cannot be translated ends the work
and is named; nothing is skipped.

examples:
  regard predict RUN "The cat sleeps ."
  regard predict RUN --file captions.en --out captions.fr
  head captions.en | regard predict RUN --alignments
  regard predict RUN "The cat sleeps ." --num-best 3 --json"""


@dataclass(frozen=True)
class PredictOptions(Shared):
    """What to translate, and what to write."""

    sentences: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="SENTENCE")]] = ()
    """The sentences; standard input is read when there are none. One that begins with a dash goes behind --."""

    file: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Translate this text file (plain or gzip), which is checked as a whole before the work begins."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Write to this file, which appears when all of it is done."""

    alignments: tyro.conf.FlagCreatePairsOff[bool] = False
    """Add the word alignment to each line, behind a tab, as `source-target` pairs counted from 0 (Pharaoh)."""

    num_best: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """The best N translations of each sentence, as `line ||| translation ||| score`."""

    max_words: int = 1000
    """A sentence with more words is refused."""

    weights: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """best, averaged, last, the name of a checkpoint, or auto, which is best."""


@dataclass(frozen=True)
class Line:
    """A sentence, and where it stands."""

    number: int
    text: str
    fault: str | None = None
    """Why it cannot be read."""


def run(argv: list[str]) -> int:
    options, folder, configs = parse_run(PredictOptions, argv, prog="predict", description=DESCRIPTION)
    if options.sentences and options.file:
        raise ConfigError("Give either sentences or --file, not both.")
    decoding = _decoding(configs["decoding"], options.num_best)
    opened = open_run(folder.path, options.weights)
    if options.alignments and not opened.has_attention:
        raise ConfigError(
            f"{folder.path} is a {opened.config.model.kind!r} model, which has no attention and hence no alignments."
        )
    if options.file is not None:
        for line in _file_lines(options.file):
            _check(line, opened, options)
    for sentence in options.sentences:
        tell_unknown(opened.task.source_tokenizer, normalise(sentence))
    with contextlib.ExitStack() as stack:
        out: TextIO = sys.stdout
        if options.out is not None:
            temporary = stack.enter_context(atomic_path(options.out))
            out = stack.enter_context(temporary.open("w", encoding="utf-8"))
        for number, chunk in enumerate(_chunks(options, steady=decoding.method == "sample")):
            # The draws of a chunk are its own, wherever the borders of the chunks before it were.
            own = decoding.model_copy(update={"seed": decoding.seed + number})
            _translate(chunk, opened, own, options, out)
    return 0


def _decoding(config: DecodingConfig, num_best: int | None) -> DecodingConfig:
    if num_best is None:
        return config
    wider = {"beam_width": max(num_best, config.beam_width)} if config.method == "beam" else {}
    return changed(config, {"num_best": num_best, **wider})


def _translate(
    chunk: list[Line], opened: TranslationRun, decoding: DecodingConfig, options: PredictOptions, out: TextIO
) -> None:
    """Translates up to the first line that is refused, writes that much, and then says what is wrong."""
    good: list[Line] = []
    refusal: DataError | None = None
    for line in chunk:
        try:
            _check(line, opened, options)
        except DataError as error:
            refusal = error
            break
        good.append(line)
    wanted = options.alignments or options.json
    translations = opened.translate([line.text for line in good], decoding=decoding, alignments=wanted) if good else []
    for line, translation in zip(good, translations, strict=True):
        out.write(_written(line, translation, options) + "\n")
    out.flush()
    if refusal is not None:
        raise refusal


def _written(line: Line, translation: Translation, options: PredictOptions) -> str:
    if options.json:
        return json.dumps({"line": line.number, **translation.to_json()}, ensure_ascii=False)
    if options.num_best is not None:
        ranked = [(translation.text, translation.score), *translation.alternatives]
        return "\n".join(f"{line.number - 1} ||| {text} ||| {score:.4f}" for text, score in ranked)
    return f"{translation.text}\t{translation.pharaoh}" if options.alignments else translation.text


def _check(line: Line, opened: TranslationRun, options: PredictOptions) -> None:
    if line.fault is not None:
        raise DataError(f"Line {line.number:,} {line.fault}.")
    words = len(line.text.split())
    if words > options.max_words:
        raise DataError(
            f"Line {line.number:,} has {words:,} words, more than {options.max_words:,}. Cut it into sentences, or "
            f"raise the limit with --max-words."
        )
    tokenizer = opened.task.source_tokenizer
    if is_unknown(tokenizer.encode(line.text)):
        raise DataError(
            f"Line {line.number:,} ({shortened(line.text)!r}) has no word that the model's vocabulary of "
            f"{tokenizer.size:,} entries knows. Is it in the language the model reads?"
        )


def _chunks(options: PredictOptions, *, steady: bool) -> Iterator[list[Line]]:
    if options.sentences:
        lines: Iterator[Line | None] = (
            Line(number, normalise(text)) for number, text in enumerate(options.sentences, 1)
        )
    elif options.file is not None:
        lines = _file_lines(options.file)
    else:
        lines = _standard_input()
    chunk: list[Line] = []
    for line in lines:
        if line is not None:
            chunk.append(line)
        if len(chunk) == CHUNK or (line is None and chunk and not steady):
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _file_lines(path: Path) -> Iterator[Line]:
    check_file(path)
    for number, raw in enumerate(read_lines(path), 1):
        yield Line(number, "", "is too long to be a sentence") if raw is None else _decoded(number, raw)


def _standard_input() -> Iterator[Line | None]:
    """The lines as they come in; None where one would have to wait for more."""
    if sys.stdin.isatty():
        say("One sentence a line, please; Ctrl-D ends.")
    stream = cast(io.BufferedReader, sys.stdin.buffer)
    rest, number = b"", 0
    while block := stream.read1(1 << 16):
        *whole, rest = (rest + block).split(b"\n")
        for raw in whole:
            number += 1
            yield _decoded(number, raw)
        yield None
    if rest:
        yield _decoded(number + 1, rest)


def _decoded(number: int, raw: bytes) -> Line:
    try:
        return Line(number, normalise(raw.decode("utf-8")))
    except UnicodeDecodeError as error:
        return Line(number, "", f"is not UTF-8 (byte {error.start + 1})")
