"""Phrases that carry their own alignment, and the one way to build a larger one from smaller ones.

A `Draft` is filled twice: first with the English in English order (`say`), then with the French in French
order (`put`), where each French piece names the English it renders. Links are made at that moment and only
shifted afterwards, so a word that occurs twice in a sentence is never confused with its double.

The draft also minds the seam between two French words, where spelling changes: elision ("que il" becomes
"qu' il") and contraction ("de le" becomes "du", one word that keeps the links of both).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regard.data.embedded.french import CONTRACTIONS, elided

Link = tuple[int, int]


class Phrase(NamedTuple):
    """`possible` holds only the links that are not sure."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: tuple[Link, ...] = ()
    possible: tuple[Link, ...] = ()


def word(english: str, french: str) -> Phrase:
    """One word for one word."""
    return Phrase((english,), (french,), ((0, 0),))


def entry(english: str, french: str, sure: Sequence[Link], possible: Sequence[Link] = ()) -> Phrase:
    """A fixed expression of several words, with its links spelled out."""
    return Phrase(tuple(english.split()), tuple(french.split()), tuple(sure), tuple(possible))


class Draft:
    """A phrase in the making. All English must be said before the French that renders it is put."""

    def __init__(self) -> None:
        self.source: list[str] = []
        self.target: list[str] = []
        self.sure: list[Link] = []
        self.possible: list[Link] = []

    def say(self, english: str) -> int:
        """Adds an English word and returns its index."""
        self.source.append(english)
        return len(self.source) - 1

    def say_phrase(self, phrase: Phrase) -> int:
        """Adds the English side of a phrase; `put_phrase` wants the offset returned."""
        offset = len(self.source)
        self.source.extend(phrase.source)
        return offset

    def put(self, french: str, sure: Iterable[int] = (), possible: Iterable[int] = ()) -> None:
        """Adds a French word that renders the English words at these indices."""
        place = self._join(french)
        self.sure.extend((index, place) for index in sure)
        self.possible.extend((index, place) for index in possible)

    def put_phrase(self, phrase: Phrase, offset: int) -> None:
        """Adds the French side of a phrase whose English stands at `offset`."""
        if not phrase.target:
            return
        start = self._join(phrase.target[0])
        self.target.extend(phrase.target[1:])
        self.sure.extend((source + offset, target + start) for source, target in phrase.sure)
        self.possible.extend((source + offset, target + start) for source, target in phrase.possible)

    def phrase(self) -> Phrase:
        return Phrase(tuple(self.source), tuple(self.target), tuple(self.sure), tuple(self.possible))

    def _join(self, french: str) -> int:
        """Appends a French word, spells the seam before it, and returns the place where it now stands."""
        if self.target:
            previous = self.target[-1]
            contraction = CONTRACTIONS.get((previous, french))
            if contraction is not None:
                self.target[-1] = contraction
                return len(self.target) - 1
            self.target[-1] = elided(previous, french)
        self.target.append(french)
        return len(self.target) - 1


def concat(*phrases: Phrase) -> Phrase:
    """Phrases that stand in the same order in both languages."""
    draft = Draft()
    offsets = [draft.say_phrase(phrase) for phrase in phrases]
    for phrase, offset in zip(phrases, offsets, strict=True):
        draft.put_phrase(phrase, offset)
    return draft.phrase()
