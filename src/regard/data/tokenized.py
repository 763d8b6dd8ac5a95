"""A parallel corpus as token ids, in memory or mapped from disk; what the batches are cut from."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Int32

from regard.core.errors import DataError
from regard.data.ragged import Ragged
from regard.data.report import ReadReport
from regard.data.special import UNK
from regard.data.tokenizers import Tokenizer

IDS = np.dtype("<i4")
BYTES = np.dtype("u1")

Links = frozenset[tuple[int, int]]


class Alignment(NamedTuple):
    """Gold links (source word, target word) between the words that blanks separate; `possible` holds `sure`."""

    sure: Links
    possible: Links


@final
class TokenizedCorpus:
    """`corpus[i]` is the pair of id arrays of example i, without BOS and EOS."""

    def __init__(
        self,
        source: Ragged,
        target: Ragged,
        texts: tuple[Ragged, Ragged] | None = None,
        *,
        report: ReadReport,
        num_unknown: tuple[int, int],
        alignments: Sequence[Alignment] | None = None,
    ) -> None:
        assert len(source) == len(target)
        assert alignments is None or len(alignments) == len(source)
        self.source = source
        self.target = target
        self.report = report
        self.num_unknown = num_unknown
        self._texts = texts
        self._alignments = alignments

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[tuple[str, str]],
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        alignments: Sequence[Alignment] | None = None,
    ) -> TokenizedCorpus:
        """In memory, with the texts; for corpora that are small and known to be well-formed."""
        source_texts, target_texts = [list(side) for side in zip(*pairs, strict=True)] or ([], [])
        sources = source_tokenizer.encode_batch(source_texts)
        targets = target_tokenizer.encode_batch(target_texts)
        return cls(
            Ragged.from_rows(sources, IDS),
            Ragged.from_rows(targets, IDS),
            (encode_texts(source_texts), encode_texts(target_texts)),
            report=ReadReport(lines=len(sources)),
            num_unknown=(count_unknown(sources), count_unknown(targets)),
            alignments=alignments,
        )

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> tuple[Int32[np.ndarray, " source"], Int32[np.ndarray, " target"]]:
        return self.source[index], self.target[index]

    @functools.cached_property
    def lengths(self) -> Int32[np.ndarray, "pairs 2"]:
        """The numbers of source and target ids."""
        return np.stack([self.source.lengths(), self.target.lengths()], axis=1)

    @property
    def unknown_rates(self) -> tuple[float, float]:
        """The share of UNK among the source and the target tokens."""
        source, target = self.num_unknown
        return source / max(1, len(self.source.values)), target / max(1, len(self.target.values))

    @property
    def has_texts(self) -> bool:
        return self._texts is not None

    @property
    def has_alignments(self) -> bool:
        return self._alignments is not None

    def source_text(self, index: int) -> str:
        """The sentence as it was read (normalised), kept for validation and test parts."""
        return self._text(0, index)

    def target_text(self, index: int) -> str:
        """The reference translation as it was read (normalised), kept for validation and test parts."""
        return self._text(1, index)

    def alignment(self, index: int) -> Alignment:
        """The gold links of example i, where the corpus came with some."""
        if self._alignments is None:
            raise DataError("This corpus has no gold alignments; the embedded corpus has.")
        return self._alignments[index]

    def _text(self, side: int, index: int) -> str:
        assert self._texts is not None, "the texts of this part were not kept"
        return self._texts[side][index].tobytes().decode()


def encode_texts(texts: Iterable[str]) -> Ragged:
    return Ragged.from_rows([text.encode() for text in texts], BYTES)


def count_unknown(rows: Iterable[Sequence[int]]) -> int:
    return sum(row.count(UNK) for row in rows)
