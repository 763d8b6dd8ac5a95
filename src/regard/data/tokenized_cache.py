"""Tokenising a corpus once: text goes through in chunks, ids go to a folder of the cache, the folder is mapped.

The folder's name is a hash of everything that matters (the text, the tokenizers, the options). It appears only when it
is complete, and it carries the sizes and checksums of its files: a later call finds it again, or makes it anew when it
is damaged. Two processes that build the same folder at once do double work and no harm.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from regard.core.errors import DataError
from regard.core.files import write_json
from regard.data.cache import cache_folder, cache_key, file_digest
from regard.data.ragged import Ragged, RaggedWriter
from regard.data.report import OnBad, Problem, ReadReport
from regard.data.text import TextPair
from regard.data.tokenized import BYTES, IDS, TokenizedCorpus, count_unknown
from regard.data.tokenizers import Tokenizer

CHUNK_PAIRS = 8192
"""So many pairs are tokenised at a time; memory grows with this and not with the corpus."""

VERSION = 1
META = "meta.json"
STALE_SECONDS = 24 * 3600
"""A half-built folder of this age belongs to a process that was killed."""

Progress = Callable[[str], None]


def tokenize_cached(
    read: Callable[[ReadReport], Iterator[TextPair]],
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    key: Any,
    name: str,
    on_bad: OnBad = "refuse",
    max_tokens: int | None = None,
    keep_texts: bool = False,
    progress: Progress | None = None,
) -> TokenizedCorpus:
    """The corpus from the cache, or from `read(report)`, which is called only when the cache has no good copy.

    `key` is a JSON value that stands for what `read` gives; `name` is the file that messages name. Pairs with more
    than `max_tokens` ids on a side are ill-formed like those that `read` refuses or skips.
    """
    fingerprints = [tokenizer.fingerprint for tokenizer in tokenizers]
    folder = cache_folder("tokenized") / cache_key([VERSION, key, fingerprints, on_bad, max_tokens, keep_texts])
    corpus = open_folder(folder)
    if corpus is None:
        try:
            with _appearing_complete(folder) as building:
                _build(building, read, tokenizers, name, on_bad, max_tokens, keep_texts, progress)
        except OSError as error:
            raise DataError(
                f"The tokenised text of {name} cannot be written to {folder.parent}: {error.strerror or error}. Make "
                "room there, or name another folder in the environment variable REGARD_CACHE."
            ) from error
        corpus = open_folder(folder)
    assert corpus is not None, f"{folder} was changed while it was written"
    return corpus


def open_folder(folder: Path) -> TokenizedCorpus | None:
    """Maps a finished folder; None where there is none or where any byte of it is not what was written."""
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        for name, (size, digest) in meta["files"].items():
            file = folder / name
            if file.stat().st_size != size or file_digest(file) != digest:
                return None
        texts = None
        if meta["texts"]:
            texts = (Ragged.open(folder / "source_text", BYTES), Ragged.open(folder / "target_text", BYTES))
        source, target = meta["num_unknown"]
        return TokenizedCorpus(
            Ragged.open(folder / "source", IDS),
            Ragged.open(folder / "target", IDS),
            texts,
            report=ReadReport.from_json(meta["report"]),
            num_unknown=(source, target),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _build(
    folder: Path,
    read: Callable[[ReadReport], Iterator[TextPair]],
    tokenizers: tuple[Tokenizer, Tokenizer],
    name: str,
    on_bad: OnBad,
    max_tokens: int | None,
    keep_texts: bool,
    progress: Progress | None,
) -> None:
    report = ReadReport()
    num_unknown = [0, 0]
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(RaggedWriter(folder / side, IDS)) for side in ("source", "target")]
        texts = ("source_text", "target_text") if keep_texts else ()
        text_writers = [stack.enter_context(RaggedWriter(folder / side, BYTES)) for side in texts]
        pairs = read(report)
        num_pairs = 0
        while chunk := list(islice(pairs, CHUNK_PAIRS)):
            kept = _encode(chunk, tokenizers, name, on_bad, max_tokens, report)
            for side, writer in enumerate(writers):
                ids = [encoded[side] for _, encoded in kept]
                writer.extend(ids)
                num_unknown[side] += count_unknown(ids)
            for side, writer in enumerate(text_writers):
                writer.extend([(pair.source, pair.target)[side].encode() for pair, _ in kept])
            num_pairs += len(kept)
            if progress is not None:
                progress(f"{name}: {num_pairs:,} pairs tokenised")
    if num_pairs == 0:
        raise DataError(f"No pair of {name} has at most {max_tokens} tokens a side: {report.summary()}")
    files = {file.name: [file.stat().st_size, file_digest(file)] for file in sorted(folder.iterdir())}
    meta = {"files": files, "texts": keep_texts, "report": report.to_json(), "num_unknown": num_unknown}
    write_json(folder / META, meta)


def _encode(
    chunk: list[TextPair],
    tokenizers: tuple[Tokenizer, Tokenizer],
    name: str,
    on_bad: OnBad,
    max_tokens: int | None,
    report: ReadReport,
) -> list[tuple[TextPair, tuple[list[int], list[int]]]]:
    """The pairs of a chunk with their ids, without those that are over-long."""
    sources = tokenizers[0].encode_batch([pair.source for pair in chunk])
    targets = tokenizers[1].encode_batch([pair.target for pair in chunk])
    kept = []
    for pair, source, target in zip(chunk, sources, targets, strict=True):
        longest = max(len(source), len(target))
        if max_tokens is None or longest <= max_tokens:
            kept.append((pair, (source, target)))
        else:
            side = "source" if longest == len(source) else "target"
            detail = f"the {side} side has {longest:,} tokens, more than {max_tokens:,}"
            report.add(Problem("tokens", name, pair.line, detail), on_bad)
    return kept


@contextlib.contextmanager
def _appearing_complete(folder: Path) -> Iterator[Path]:
    """A new folder that takes its name when the block ends well, and vanishes otherwise."""
    for stale in folder.parent.glob(".*"):
        with contextlib.suppress(FileNotFoundError):  # another process may be clearing up too
            if time.time() - stale.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(stale, ignore_errors=True)
    building = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    building.mkdir(parents=True)
    try:
        yield building
        if open_folder(folder) is None:
            shutil.rmtree(folder, ignore_errors=True)
            try:
                building.rename(folder)
            except OSError:
                if open_folder(folder) is None:  # else another process was quicker, and its copy is as good
                    raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
