"""The sentence of deck D's alignment picture, derived by the rules that make every other sentence."""

from __future__ import annotations

from regard.data.embedded import adjectives, clauses, closed, nouns, verbs
from regard.data.embedded.determiners import THE
from regard.data.embedded.noun_phrases import Described, noun_phrase, prepositional
from regard.data.embedded.pairs import AlignedPair
from regard.data.embedded.verb_phrases import passive


def _derive() -> AlignedPair:
    names = [Described(adjectives.BY_ENGLISH["European"]), Described(adjectives.BY_ENGLISH["Economic"])]
    area = noun_phrase(THE, nouns.BY_ENGLISH["Area"], adjectives=names)
    agreement = noun_phrase(THE, nouns.BY_ENGLISH["agreement"], following=prepositional(closed.ON, area))
    august = next(month for month in closed.MONTHS if month.source == ("August",))
    year = next(year for year in closed.YEARS if year.source == ("1992",))
    date = closed.in_month_of(august, year)
    return clauses.statement(
        clauses.clause(agreement, passive(agreement.agreement, verbs.BY_BASE["sign"], tail=[date]))
    )


DECK_PAIR = _derive()
"""Held out: no split contains it."""
