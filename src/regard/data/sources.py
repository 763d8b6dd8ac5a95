"""Which files the parts of a corpus are read from, and how a part that has no file of its own is taken out of train."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.core.errors import ConfigError
from regard.data.cache import file_digest
from regard.data.config import DataConfig
from regard.data.held_out import HeldOut
from regard.data.multi30k import TESTS, TRAIN, VALID, multi30k_paths
from regard.data.report import OnBad, ReadReport
from regard.data.text import PairPaths, TextPair, read_pairs

Part = Literal["train", "valid", "test"]
PARTS: tuple[Part, ...] = ("train", "valid", "test")


@dataclass(frozen=True)
class PartReader:
    """One part: `read` goes through its text, `key` stands for what that gives."""

    part: Part
    paths: PairPaths
    on_bad: OnBad
    max_words: int
    sharing: tuple[Part, ...] = ()
    """The parts that are held out of this file, where the file is not this part's alone."""

    held_out: Callable[[], HeldOut] | None = None

    @functools.cached_property
    def key(self) -> Any:
        digests = [[str(path.absolute()), _digest(path)] for path in self.paths.files]
        return [digests, self.on_bad, self.max_words, [self.part, *self.sharing] if self.sharing else []]

    def read(self, report: ReadReport) -> Iterator[TextPair]:
        """Goes through the files from their beginning."""
        if self.held_out is None:
            return self._read_file(report)
        return self._read_share(self.held_out(), report)

    def _read_file(self, report: ReadReport) -> Iterator[TextPair]:
        return read_pairs(self.paths, on_bad=self.on_bad, max_words=self.max_words, report=report)

    def _read_share(self, held_out: HeldOut, report: ReadReport) -> Iterator[TextPair]:
        """This part's lines; a held-out sentence that is repeated in the file is taken once.

        The account of ill-formed lines is train's; the account of the others has their own lines only.
        """
        if self.part == "train":
            for pair in self._read_file(report):
                if held_out.part_of(pair.source) == "train":
                    yield pair
                else:
                    report.held_out += 1
            return
        seen = set()
        for pair in self._read_file(ReadReport()):
            if held_out.part_of(pair.source) == self.part and pair.source not in seen:
                seen.add(pair.source)
                report.lines += 1
                yield pair


class Sources:
    """The readers of a configuration's parts, each made when it is asked for."""

    def __init__(self, config: DataConfig) -> None:
        assert config.source in ("files", "multi30k")
        if config.source == "files" and not config.train:
            raise ConfigError("Data from files need a training text: train = PATH of a TSV, or SOURCE,TARGET.")
        if config.source == "multi30k" and (config.train or config.valid):
            raise ConfigError("Multi30k brings its own train and valid; choose source files to read your own.")
        self._config = config
        own: dict[Part, str | None] = {"valid": config.valid, "test": config.test}
        missing = tuple(part for part, path in own.items() if path is None)
        self.held_out_parts = missing if config.source == "files" else ()

    def reader(self, part: Part) -> PartReader:
        shared = part == "train" or part in self.held_out_parts
        paths = self._train_paths if shared else self._paths(part)
        config = self._config
        if not shared or not self.held_out_parts:
            return PartReader(part, paths, config.on_bad, config.max_words)
        return PartReader(part, paths, config.on_bad, config.max_words, self.held_out_parts, lambda: self._held_out)

    @functools.cached_property
    def _train_paths(self) -> PairPaths:
        return self._paths("train")

    @functools.cached_property
    def _held_out(self) -> HeldOut:
        config = self._config
        pairs = read_pairs(self._train_paths, on_bad=config.on_bad, max_words=config.max_words)
        return HeldOut((pair.source for pair in pairs), self.held_out_parts)

    def _paths(self, part: Part) -> PairPaths:
        config = self._config
        if config.source == "multi30k":
            name = {"train": TRAIN, "valid": VALID, "test": config.test or TESTS[0]}[part]
            return multi30k_paths(name, config.source_language, config.target_language)
        path = {"train": config.train, "valid": config.valid, "test": config.test}[part]
        assert path is not None
        return PairPaths.parse(path)


@functools.lru_cache(maxsize=16)
def _digest_at(path: Path, size: int, modified: int) -> str:
    return file_digest(path)


def _digest(path: Path) -> str:
    """Read once per process while size and time of the file stay the same; several parts may share a file."""
    state = path.stat()
    return _digest_at(path, state.st_size, state.st_mtime_ns)
