"""From text to token ids and back: characters, words, or byte-pair pieces, trained on the data.

A vocabulary is a table of pieces. A piece that starts a word carries the blank before it (" man", "ly", "."), so text
is the pieces written one after the other, and the word that a piece belongs to can be counted from the pieces alone,
also for a translation that a model made up. `decode(encode(text))` is `normalise(text)` for every text whose
characters (or words) were seen in training; what was not seen becomes UNK. The other specials never come out of a
text, even if somebody writes "<eos>".

Byte-pair encoding (Sennrich et al., 2016) is that of the `tokenizers` library. Words, numbers and runs of other signs
are split apart first, so that no piece spans a word and a full stop.
"""

from __future__ import annotations

import functools
import json
import operator
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, SupportsIndex, final

import tokenizers as huggingface

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.core.files import write_json
from regard.core.registry import Registry
from regard.data.cache import cache_key
from regard.data.special import NUM_SPECIAL, SPECIAL_NAMES, UNK
from regard.data.text import normalise

FORMAT = "regard-tokenizer"
VERSION = 1


class Tokenizer(ABC):
    """A vocabulary of pieces, and the way to cut text into them. Immutable once made."""

    kind: str
    """Its name in the registry."""

    unknown = SPECIAL_NAMES[UNK]
    """What UNK decodes to."""

    def __init__(self, pieces: Sequence[str]) -> None:
        """`pieces` in the order of their ids, without the specials, which come before them."""
        specials = [""] * NUM_SPECIAL
        specials[UNK] = self.unknown
        self.pieces = (*specials, *pieces)
        self._ids = {piece: number for number, piece in enumerate(pieces, NUM_SPECIAL)}
        assert len(self._ids) == len(pieces), "a piece occurs twice"

    @classmethod
    @abstractmethod
    def train(cls, texts: Iterable[str], size: int, min_count: int) -> Tokenizer:
        """A vocabulary of at most `size` entries; `texts` can be gone through more than once."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Token ids; of the specials only UNK occurs."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    @property
    def size(self) -> int:
        """How many ids there are, specials included."""
        return len(self.pieces)

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """The text; PAD, BOS and EOS leave nothing behind, UNK is written out."""
        return " ".join("".join(self.pieces[token] for token in ids).split())

    def words(self, ids: Iterable[SupportsIndex]) -> list[int]:
        """For each token the index of its word in `decode(ids).split()`; -1 for PAD, BOS and EOS."""
        words: list[int] = []
        word, between = -1, True
        for piece in (self.pieces[token] for token in ids):
            between |= piece.startswith(" ")
            if not piece.strip(" "):
                words.append(word + between if piece else -1)
                continue
            word += between
            between = False
            words.append(word)
        return [min(index, word) for index in words]

    def tokens(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """The pieces as labels of a picture; one that goes on within a word starts with a dot ("play", "·ing")."""
        labels: list[str] = []
        before = ""
        for token in map(operator.index, ids):
            piece = self.pieces[token]
            inside = before[-1:].isalnum() and piece[:1].isalnum()
            if token < NUM_SPECIAL:
                labels.append(SPECIAL_NAMES[token])
            else:
                labels.append(self.label(piece, inside))
            before = piece
        return labels

    def label(self, piece: str, inside: bool) -> str:
        return f"·{piece}" if inside else piece.strip(" ") or "␣"

    def state(self) -> dict[str, Any]:
        """What `from_state` needs, as JSON values."""
        return {"pieces": list(self.pieces[NUM_SPECIAL:])}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Tokenizer:
        return cls(**state)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Equal for tokenizers that do the same."""
        return cache_key([VERSION, self.kind, self.state()])

    def save(self, path: str | os.PathLike[str]) -> None:
        """One JSON file, readable by eye; its fingerprint guards it against damage."""
        header = {"format": FORMAT, "version": VERSION, "kind": self.kind, "fingerprint": self.fingerprint}
        write_json(path, header | {"state": self.state()})

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Tokenizer:
        path = Path(path)
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise CheckpointError(f"The tokenizer file {path} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise CheckpointError(f"The tokenizer file {path} is damaged: it is not JSON ({error}).") from error
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise CheckpointError(f"{path} is not a tokenizer file of regard.")
        if value.get("version") != VERSION:
            found = value.get("version")
            raise CheckpointError(
                f"The tokenizer file {path} has version {found}; this regard reads version {VERSION}."
            )
        kind, state = str(value.get("kind")), value.get("state")
        if not isinstance(state, dict) or cache_key([VERSION, kind, state]) != value.get("fingerprint"):
            raise CheckpointError(f"The tokenizer file {path} is damaged: it does not have its own fingerprint.")
        return tokenizer_kinds[kind].from_state(state)


tokenizer_kinds: Registry[type[Tokenizer]] = Registry(
    "tokenizer", "A tokenizer of your own is registered by its module."
)


def train_tokenizer(kind: str, texts: Iterable[str], size: int, *, min_count: int = 1) -> Tokenizer:
    """A tokenizer of a registered kind, with at most `size` ids, the four specials included.

    `texts` is gone through up to twice: give a list, or an object whose `__iter__` starts anew each time; what can be
    gone through once only (a generator) is held in memory. What is seen fewer than `min_count` times gets no piece of
    its own. The same texts give the same tokenizer, on every machine.
    """
    assert not isinstance(texts, str), "texts are many strings"
    chosen = tokenizer_kinds[kind]
    if size <= NUM_SPECIAL:
        raise ConfigError(f"A vocabulary of {size} is too small: {NUM_SPECIAL} ids are taken by the special tokens.")
    return chosen.train(list(texts) if iter(texts) is texts else texts, size, min_count)


@final
@tokenizer_kinds.register("characters")
class CharacterTokenizer(Tokenizer):
    """Every character is a token, the blank too."""

    kind = "characters"

    @classmethod
    def train(cls, texts: Iterable[str], size: int, min_count: int) -> CharacterTokenizer:
        return cls(_most_frequent(_count_characters(texts), size, min_count))

    def encode(self, text: str) -> list[int]:
        return [self._ids.get(character, UNK) for character in normalise(text)]

    def label(self, piece: str, inside: bool) -> str:
        return piece.strip(" ") or "␣"


@final
@tokenizer_kinds.register("words")
class WordTokenizer(Tokenizer):
    """Every word between blanks is a token; for text whose punctuation stands apart already."""

    kind = "words"
    unknown = f" {SPECIAL_NAMES[UNK]}"

    @classmethod
    def train(cls, texts: Iterable[str], size: int, min_count: int) -> WordTokenizer:
        counts = Counter(f" {word}" for text in texts for word in normalise(text).split(" ") if word)
        return cls(_most_frequent(counts, size, min_count))

    def encode(self, text: str) -> list[int]:
        return [self._ids.get(f" {word}", UNK) for word in normalise(text).split(" ") if word]


@final
@tokenizer_kinds.register("bpe")
class BytePairTokenizer(Tokenizer):
    """Byte-pair encoding over characters; a pair is merged when it is seen `min_count` times, and at least twice."""

    kind = "bpe"

    SPLIT = r" ?[\p{L}\p{M}]+| ?\p{N}+| ?[^ \p{L}\p{M}\p{N}]+"
    """Words, numbers, other signs, each with the blank before it."""

    COVERAGE = 0.9995
    """This share of the text is always made of characters that have an id, however many there are."""

    def __init__(self, pieces: Sequence[str], merges: Sequence[Sequence[str]]) -> None:
        super().__init__(pieces)
        self.merges = [(left, right) for left, right in merges]
        vocabulary = {piece: number for number, piece in enumerate([*_UNREACHABLE, *pieces])}
        model = huggingface.models.BPE(vocab=vocabulary, merges=self.merges, unk_token=_UNREACHABLE[UNK])
        self._encoder = _splitting(model)

    @classmethod
    def train(cls, texts: Iterable[str], size: int, min_count: int) -> BytePairTokenizer:
        alphabet = cls._alphabet(_count_characters(texts), size)
        trainer = huggingface.trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=max(2, min_count),
            special_tokens=_UNREACHABLE,
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            show_progress=False,
        )
        learner = _splitting(huggingface.models.BPE(unk_token=_UNREACHABLE[UNK]))
        learner.train_from_iterator((f" {normalise(text)}" for text in texts), trainer)
        model = json.loads(learner.to_str())["model"]
        pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
        assert pieces[:NUM_SPECIAL] == _UNREACHABLE
        return cls(pieces[NUM_SPECIAL:], model["merges"])

    @classmethod
    def _alphabet(cls, counts: Counter[str], size: int) -> list[str]:
        """All characters while they fill less than half the vocabulary, else the most frequent ones.

        It is chosen here because the library breaks ties between equally frequent characters at random.
        """
        counts[" "] += 1
        needed, covered, total = 0, 0, counts.total()
        ranked = _ranked(counts)
        while covered < cls.COVERAGE * total:
            covered += counts[ranked[needed]]
            needed += 1
        if needed + NUM_SPECIAL > size:
            raise ConfigError(
                f"A byte-pair vocabulary of {size} is too small for this text, which is written with "
                f"{len(counts)} different characters: take at least {needed + NUM_SPECIAL}, better ten times as many."
            )
        return ranked[: max(needed, size // 2)]

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        normal = [normalise(text) for text in texts]
        encoded = self._encoder.encode_batch_fast([f" {text}" if text else "" for text in normal])
        return [encoding.ids for encoding in encoded]

    def state(self) -> dict[str, Any]:
        return super().state() | {"merges": [list(pair) for pair in self.merges]}


_UNREACHABLE = [f"\n{name}" for name in SPECIAL_NAMES]
"""The specials as the library knows them: no normalised text has a line feed, so none can spell them."""


def _splitting(model: huggingface.models.BPE) -> huggingface.Tokenizer:
    tokenizer = huggingface.Tokenizer(model)
    pattern = huggingface.Regex(BytePairTokenizer.SPLIT)
    tokenizer.pre_tokenizer = huggingface.pre_tokenizers.Split(pattern, behavior="isolated")
    return tokenizer


def _count_characters(texts: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(normalise(text))
    _refuse_nothing(counts)
    return counts


def _most_frequent(counts: Counter[str], size: int, min_count: int) -> list[str]:
    _refuse_nothing(counts)
    kept = [piece for piece in _ranked(counts)[: size - NUM_SPECIAL] if counts[piece] >= min_count]
    if not kept:
        raise ConfigError(f"Nothing in the text occurs {min_count} times; choose a smaller min_count.")
    return kept


def _ranked(counts: Counter[str]) -> list[str]:
    """The most frequent first; among equals the alphabet decides."""
    return sorted(counts, key=lambda piece: (-counts[piece], piece))


def _refuse_nothing(counts: Counter[str]) -> None:
    if not counts:
        raise DataError("A tokenizer cannot be trained without any text.")
