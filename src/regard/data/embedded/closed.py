"""The closed classes: names, pronouns, negations, prepositions, conjunctions, adverbs and dates."""

from __future__ import annotations

from dataclasses import dataclass

from regard.data.embedded.french import MASCULINE, Agreement
from regard.data.embedded.phrase import Phrase, concat, entry, word


@dataclass(frozen=True)
class Name:
    english: str
    french: str
    feminine: bool


def _names(text: str) -> tuple[Name, ...]:
    return tuple(Name(row.split()[0], row.split()[1], row.split()[2] == "f") for row in text.split("|"))


def _words(text: str) -> tuple[Phrase, ...]:
    return tuple(word(*row.split()) for row in text.split("|"))


PEOPLE = _names(
    "Mary Marie f | John Jean m | Peter Pierre m | Alice Alice f | Paul Paul m"
    "| Emily Émilie f | Stephen Étienne m | Julia Julie f"
)
COUNTRIES = _names(
    "France France f | Italy Italie f | Spain Espagne f | Germany Allemagne f | Portugal Portugal m| Canada Canada m"
)
CITIES = _names("Paris Paris m | London Londres m | Rome Rome f | Geneva Genève f | Athens Athènes f")


@dataclass(frozen=True)
class Pronoun:
    english: str
    french: str
    agreement: Agreement
    direct: bool = True
    """A direct object before the verb makes the participle agree (l' a vue); an indirect one does not."""


SUBJECT_PRONOUNS = (
    Pronoun("he", "il", MASCULINE),
    Pronoun("she", "elle", Agreement(True, False)),
    Pronoun("they", "ils", Agreement(False, True)),
)
OBJECT_PRONOUNS = (
    Pronoun("him", "le", MASCULINE),
    Pronoun("her", "la", Agreement(True, False)),
    Pronoun("them", "les", Agreement(False, True)),
)
THEM = OBJECT_PRONOUNS[-1]
DATIVE_PRONOUNS = (
    Pronoun("him", "lui", MASCULINE, direct=False),
    Pronoun("her", "lui", Agreement(True, False), direct=False),
    Pronoun("them", "leur", Agreement(False, True), direct=False),
)


@dataclass(frozen=True)
class Negation:
    english: tuple[str, ...]
    french: str
    """The second half; the first is always "ne"."""
    needs_do: bool = False


NOT = Negation(("not",), "pas", needs_do=True)
NEVER = Negation(("never",), "jamais")
NO_LONGER = Negation(("no", "longer"), "plus")

IN = word("in", "dans")
ON = word("on", "sur")
NEAR = entry("near", "près de", [(0, 0), (0, 1)])
BEHIND = word("behind", "derrière")
IN_FRONT_OF = entry("in front of", "devant", [(1, 0)], [(0, 0), (2, 0)])
UNDER = word("under", "sous")
TOWARDS = word("towards", "vers")
WITH = word("with", "avec")
FOR = word("for", "pour")
BY = word("by", "par")
OF = word("of", "de")
TO = word("to", "à")
FROM = word("from", "de")
BEFORE_EVENT = word("before", "avant")
AFTER_EVENT = word("after", "après")
DURING = word("during", "pendant")

AND = word("and", "et")
BUT = word("but", "mais")
BECAUSE = entry("because", "parce que", [(0, 0), (0, 1)])
WHEN = word("when", "quand")
WHILE = entry("while", "pendant que", [(0, 0), (0, 1)])
IF = word("if", "si")
THAT = word("that", "que")
COMMA = word(",", ",")

USUALLY = _words("often souvent | always toujours | sometimes parfois")
ALREADY = word("already", "déjà")
QUIETLY = word("quietly", "calmement")
MANNERS = (QUIETLY, *_words("slowly lentement | quickly rapidement"))
SPOTS = (word("here", "ici"), word("outside", "dehors"))
TOGETHER = word("together", "ensemble")
VERY = word("very", "très")
TOO = word("too", "trop")

PAST_TIMES = (
    word("yesterday", "hier"),
    entry("last week", "la semaine dernière", [(0, 2), (1, 1)], [(0, 0), (1, 0)]),
    entry("last year", "l' année dernière", [(0, 2), (1, 1)], [(0, 0), (1, 0)]),
)
PRESENT_TIMES = (word("now", "maintenant"), entry("every day", "chaque jour", [(0, 0), (1, 1)]))

MONTHS = _words(
    "January janvier | February février | March mars | April avril | May mai | June juin | July juillet"
    "| August août | September septembre | October octobre | November novembre | December décembre"
)
YEARS = tuple(word(str(year), str(year)) for year in range(1988, 1996))
DAYS = tuple(word(str(day), str(day)) for day in (3, 8, 12, 14, 20))
WEEKDAYS = tuple(
    entry(f"on {day.source[0]}", day.target[0], [(1, 0)], [(0, 0)])
    for day in _words("Monday lundi | Tuesday mardi | Thursday jeudi | Friday vendredi | Sunday dimanche")
)

_IN_TIME = word("in", "en")
_ON_DAY = word("on", "le")


def in_year(year: Phrase) -> Phrase:
    return concat(_IN_TIME, year)


def in_month(month: Phrase) -> Phrase:
    return concat(_IN_TIME, month)


def in_month_of(month: Phrase, year: Phrase) -> Phrase:
    return concat(_IN_TIME, month, year)


def on_day(day: Phrase, month: Phrase, year: Phrase) -> Phrase:
    return concat(_ON_DAY, day, month, year)


def at_city(english: str, city: Name) -> Phrase:
    """Cities take no article: "in" and "to" are "à", "from" is "de"."""
    return concat(word(english, "de" if english == "from" else "à"), word(city.english, city.french))


def at_country(english: str, country: Name) -> Phrase:
    """ "In" and "to": en France, au Canada; "from": de France, d' Italie, du Canada."""
    if english == "from":
        preposition = word("from", "de" if country.feminine else "du")
    else:
        preposition = word(english, "en" if country.feminine else "au")
    return concat(preposition, word(country.english, country.french))
