"""From a `DataConfig` to token ids: `load_corpus` reads, splits, trains tokenizers and tokenises.

Text files are never held in memory. They are gone through once for each of: their checksum, the tokenizers (twice for
bpe), the ids, and, where a part has no file of its own, the choice of what is held out for it. The ids are cached, and
found again when nothing they depend on has changed. Tokenizers are trained on the training part alone. Give
`tokenizers` (from a run folder) and they are used as they are; name `parts`, and files that only other parts need are
not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, final

from regard.core.errors import CheckpointError, ConfigError
from regard.data.config import DataConfig
from regard.data.embedded import AlignedPair, generate
from regard.data.lines import check_file, read_lines
from regard.data.report import ReadReport
from regard.data.sources import PARTS, Part, Sources
from regard.data.text import TextPair
from regard.data.tokenized import Alignment, TokenizedCorpus
from regard.data.tokenized_cache import Progress, tokenize_cached
from regard.data.tokenizers import Tokenizer, train_tokenizer

Tokenizers = tuple[Tokenizer, Tokenizer]

MOST_TRAINING_PAIRS = 1_000_000
"""Tokenizers see at most about so many pairs, evenly spread over the training text: more teach them nothing new."""


@final
@dataclass(frozen=True)
class CorpusReport:
    """What was read for each part, what was skipped, and what was decided without being asked."""

    parts: dict[str, ReadReport]
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        return "\n".join([*(f"{part}: {report.summary()}" for part, report in self.parts.items()), *self.notes])

    def to_json(self) -> dict[str, Any]:
        return {"parts": {part: report.to_json() for part, report in self.parts.items()}, "notes": list(self.notes)}


@final
class ParallelCorpus:
    """The parts of a corpus that were asked for, and the tokenizers that made their ids."""

    def __init__(self, parts: dict[Part, TokenizedCorpus], tokenizers: Tokenizers, notes: tuple[str, ...] = ()) -> None:
        self._parts = parts
        self.source_tokenizer, self.target_tokenizer = tokenizers
        self.report = CorpusReport({name: part.report for name, part in parts.items()}, notes)

    def part(self, name: Part) -> TokenizedCorpus:
        assert name in self._parts, f"the {name} part was not asked for"
        return self._parts[name]

    @property
    def train(self) -> TokenizedCorpus:
        return self.part("train")

    @property
    def valid(self) -> TokenizedCorpus:
        return self.part("valid")

    @property
    def test(self) -> TokenizedCorpus:
        return self.part("test")


def load_corpus(
    config: DataConfig,
    tokenizers: Tokenizers | None = None,
    *,
    parts: Sequence[Part] = PARTS,
    keep_texts: Sequence[Part] = ("valid", "test"),
    progress: Progress | None = None,
) -> ParallelCorpus:
    """The corpus that `config` describes; `progress` is told now and then how far a long reading is.

    `keep_texts` names the parts whose sentences are kept beside their ids, to measure on; the embedded corpus
    keeps all of them.
    """
    assert set(parts) <= set(PARTS)
    if tokenizers is not None and config.joint and tokenizers[0].fingerprint != tokenizers[1].fingerprint:
        raise CheckpointError("A joint vocabulary was asked for, but the source and target tokenizers differ.")
    if config.source == "embedded":
        return _load_embedded(config, tokenizers, parts)
    sources = Sources(config)
    needed: set[Part] = {"train", *parts} if tokenizers is None else set(parts)
    readers = {part: sources.reader(part) for part in PARTS if part in needed}
    for reader in readers.values():  # a missing test file is said now and not after the training text has been read
        for path in reader.paths.files:
            check_file(path)
    notes = [
        f"{part}: no file was named; sentences of train were held out for it (1 %, at most 2,000), chosen by a hash."
        for part in sources.held_out_parts
        if part in parts
    ]
    if tokenizers is None:
        train = readers["train"]
        step = 1 + sum(1 for _ in read_lines(train.paths.source)) // MOST_TRAINING_PAIRS
        if step > 1:
            notes.append(f"The tokenizers were trained on one in {step} pairs of train.")
        tokenizers = _train_tokenizers(config, train.read, step, progress)
    loaded = {
        part: tokenize_cached(
            readers[part].read,
            tokenizers,
            key=readers[part].key,
            name=str(readers[part].paths),
            on_bad=config.on_bad,
            max_tokens=config.max_tokens,
            keep_texts=part in keep_texts,
            progress=progress,
        )
        for part in parts
    }
    return ParallelCorpus(loaded, tokenizers, tuple(notes))


@dataclass(frozen=True)
class _Texts:
    """One side of every so many pairs, or both in turn, read anew each time it is gone through."""

    read: Callable[[ReadReport], Iterator[TextPair]]
    sides: tuple[str, ...]
    step: int

    def __iter__(self) -> Iterator[str]:
        for pair in islice(self.read(ReadReport()), 0, None, self.step):
            for side in self.sides:
                yield getattr(pair, side)


def _train_tokenizers(
    config: DataConfig, read: Callable[[ReadReport], Iterator[TextPair]], step: int, progress: Progress | None
) -> Tokenizers:
    def train(*sides: str) -> Tokenizer:
        if progress is not None:
            progress(f"training the {' and '.join(sides)} tokenizer ({config.tokenizer_kind})")
        texts = _Texts(read, sides, step)
        return train_tokenizer(config.tokenizer_kind, texts, config.vocabulary_size, min_count=config.min_count)

    if config.joint:
        both = train("source", "target")
        return both, both
    return train("source"), train("target")


def _load_embedded(config: DataConfig, tokenizers: Tokenizers | None, parts: Sequence[Part]) -> ParallelCorpus:
    """Generated in memory; its sentences are well-formed and of bounded length, so no limit is applied."""
    if config.train or config.valid or config.test:
        raise ConfigError("The embedded corpus reads no files; choose source files to read your own.")
    languages = (config.source_language, config.target_language)
    if set(languages) != {"en", "fr"}:
        raise ConfigError(f"The embedded corpus translates between en and fr, not from {' to '.join(languages)}.")
    reverse = languages == ("fr", "en")

    def pairs(part: Part) -> list[AlignedPair]:
        num_held_out = max(1, min(1000, config.num_sentences // 10))
        return generate(config.num_sentences if part == "train" else num_held_out, config.seed, part)

    def texts(pair: AlignedPair) -> tuple[str, str]:
        return (pair.target_text, pair.source_text) if reverse else (pair.source_text, pair.target_text)

    def alignment(pair: AlignedPair) -> Alignment:
        if not reverse:
            return Alignment(pair.sure, pair.possible)
        return Alignment(*(frozenset((j, i) for i, j in links) for links in (pair.sure, pair.possible)))

    def read(report: ReadReport) -> Iterator[TextPair]:
        return (TextPair(*texts(pair), line) for line, pair in enumerate(generated["train"], 1))

    needed: set[Part] = {"train", *parts} if tokenizers is None else set(parts)
    generated = {part: pairs(part) for part in needed}
    source_tokenizer, target_tokenizer = tokenizers or _train_tokenizers(config, read, 1, None)
    loaded = {
        part: TokenizedCorpus.from_pairs(
            [texts(pair) for pair in generated[part]],
            source_tokenizer,
            target_tokenizer,
            [alignment(pair) for pair in generated[part]],
        )
        for part in parts
    }
    return ParallelCorpus(loaded, (source_tokenizer, target_tokenizer))
