"""What a run must know about its data: where the sentences come from, how they are cut, how they are batched."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from regard.core.config import Config
from regard.data.text import PairPaths


class DataConfig(Config):
    """A parallel corpus and its treatment; `load_corpus` turns it into token ids."""

    source: Literal["embedded", "multi30k", "files"] = "embedded"
    """Generated English-French with gold alignments, the Multi30k captions, or text files of your own."""

    train: str | None = None
    """Your training text (with source "files"): PATH of a tab-separated file, or SOURCE,TARGET for two files; plain or
    gzip."""

    valid: str | None = None
    """Your validation text, like train. Where it is missing, 1 % of train (at most 2,000 sentences) is held out."""

    test: str | None = None
    """Your test text, like train, and held out likewise; for Multi30k the name of a test set (test_2016_flickr)."""

    source_language: str = "en"
    """The language to translate from."""

    target_language: str = "fr"
    """The language to translate into."""

    num_sentences: int = Field(10_000, ge=1)
    """How many training pairs the embedded corpus generates; a tenth of it, at most 1,000, for valid and for test."""

    seed: int = Field(1, ge=0)
    """For the generated sentences and for the order of the batches."""

    tokenizer: str = "auto"
    """A registered kind: characters, words or bpe. "auto" is words for the embedded corpus and bpe for all others."""

    vocabulary_size: int = 6000
    """The most entries a vocabulary may have, the four special ones included."""

    min_count: int = Field(1, ge=1)
    """Words or characters (pairs, for bpe) that are rarer than this in the training text get no entry."""

    joint: bool = False
    """One vocabulary for both languages, which tied embeddings need."""

    max_words: int = Field(200, ge=1)
    """A pair with more words on a side is over-long."""

    max_tokens: int = Field(256, ge=1)
    """A pair with more tokens on a side is over-long."""

    on_bad: Literal["refuse", "skip"] = "refuse"
    """Whether an ill-formed or over-long line stops the reading, or is skipped and counted."""

    token_budget: int = Field(4096, ge=1)
    """The most that a training batch holds: pairs times the longest side of any of them."""

    def absolute(self) -> DataConfig:
        """The same with absolute paths, so that a run can be resumed from another folder."""
        if self.source != "files":
            return self
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        return self.model_copy(
            update={name: str(PairPaths.parse(path).absolute()) for name, path in parts.items() if path is not None}
        )

    @property
    def tokenizer_kind(self) -> str:
        """The tokenizer's registered name, with "auto" decided."""
        if self.tokenizer != "auto":
            return self.tokenizer
        return "words" if self.source == "embedded" else "bpe"
