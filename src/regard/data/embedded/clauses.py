"""Building clauses and sentences from noun phrases and verb phrases.

Nothing here is ambiguous, because every English sentence must have one French: a relative clause belongs to the
nearest noun, a preposition never governs a coordination, and clauses (not noun phrases) are coordinated with
", and" while the comma of a list comes without "and".
"""

from __future__ import annotations

from regard.data.embedded.closed import COMMA, THAT
from regard.data.embedded.noun_phrases import NounPhrase
from regard.data.embedded.pairs import AlignedPair
from regard.data.embedded.phrase import Phrase, concat, word


def clause(subject: NounPhrase, predicate: Phrase) -> Phrase:
    return concat(subject.phrase, predicate)


def who(predicate: Phrase) -> Phrase:
    """A subject relative clause about a person."""
    return concat(word("who", "qui"), predicate)


def that(predicate: Phrase) -> Phrase:
    """A subject relative clause about anything else."""
    return concat(word("that", "qui"), predicate)


def whom(inner: Phrase) -> Phrase:
    """An object relative clause about a person."""
    return concat(word("whom", "que"), inner)


def which(inner: Phrase) -> Phrase:
    """An object relative clause about anything else; English says "that" here too, French "que"."""
    return concat(word("that", "que"), inner)


def where(inner: Phrase) -> Phrase:
    return concat(word("where", "où"), inner)


def reported(inner: Phrase) -> Phrase:
    """The complement of says, thinks, knows."""
    return concat(THAT, inner)


def joined(first: Phrase, conjunction: Phrase, second: Phrase, *, comma: bool) -> Phrase:
    return concat(first, COMMA, conjunction, second) if comma else concat(first, conjunction, second)


def opened(opening: Phrase, main: Phrase) -> Phrase:
    """A time or condition in front, set off by a comma: "Yesterday , ..."."""
    return concat(opening, COMMA, main)


def statement(phrase: Phrase) -> AlignedPair:
    return finished(concat(phrase, word(".", ".")))


def finished(whole: Phrase) -> AlignedPair:
    """The pair for a phrase with its final mark: capital letters, and every sure link also possible."""
    sure = frozenset(whole.sure)
    return AlignedPair(_capitalised(whole.source), _capitalised(whole.target), sure, sure | frozenset(whole.possible))


def _capitalised(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return (tokens[0][0].upper() + tokens[0][1:], *tokens[1:])
