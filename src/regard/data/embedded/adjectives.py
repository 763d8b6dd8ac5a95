"""The adjectives, with their French forms and the kinds of noun they suit.

French puts its adjectives after the noun, but for a small closed class (BAGS, as teachers say: beauty, age,
goodness, size), which goes before it. Some of these have a third masculine form before a vowel: un vieil ami.
"""

from __future__ import annotations

from dataclasses import dataclass

from regard.data.embedded import french
from regard.data.embedded.french import Agreement, starts_with_vowel_sound


@dataclass(frozen=True)
class Adjective:
    english: str
    masculine: str
    feminine: str
    kinds: tuple[str, ...]
    before: bool = False
    masculine_before_vowel: str | None = None
    gradable: bool = False
    """Whether "very" goes with it."""
    predicative: bool = True
    """Whether it can stand after "is"."""

    def in_french(self, agreement: Agreement, following: str = "") -> str:
        """The form that agrees; `following` is the next French word where that decides (vieux, vieil)."""
        form = self.feminine if agreement.feminine else self.masculine
        if agreement.plural:
            return french.plural(form)
        if not agreement.feminine and self.masculine_before_vowel and following and starts_with_vowel_sound(following):
            return self.masculine_before_vowel
        return form


def _read(text: str, *, gradable: bool = False, before: bool = False) -> list[Adjective]:
    """Rows of: English, masculine[/masculine before a vowel], feminine, kinds (by initial letters)."""
    initials = {"p": "person", "a": "animal", "o": "object", "l": "place", "d": "document", "e": "event"}
    adjectives = []
    for row in text.strip().splitlines():
        english, masculine, feminine, kinds = row.split()
        masculine, _, vowel = masculine.partition("/")
        adjectives.append(
            Adjective(
                english,
                masculine,
                feminine,
                tuple(initials[letter] for letter in kinds),
                before=before,
                masculine_before_vowel=vowel or None,
                gradable=gradable and english != "new",
                predicative=english != "new",  # "the house is new" would want another word, "neuve"
            )
        )
    return adjectives


BEFORE = _read(
    """
    big grand grande aol
    small petit petite ao
    old vieux/vieil vieille paol
    new nouveau/nouvel nouvelle olde
    young jeune jeune pa
    beautiful beau/bel belle aole
    good bon bonne de
    """,
    gradable=True,
    before=True,
)

COLOURS = _read(
    """
    red rouge rouge ol
    blue bleu bleue ol
    white blanc blanche aol
    """
)

QUALITIES = _read(
    """
    tired fatigué fatiguée pa
    honest honnête honnête p
    famous célèbre célèbre pl
    modern moderne moderne ol
    quiet calme calme pl
    important important importante de
    useful utile utile od
    """,
    gradable=True,
)

CLASSES = _read(
    """
    empty vide vide l
    political politique politique d
    economic économique économique d
    """
)

ORIGINS = _read(
    """
    French français française pod
    Italian italien italienne pode
    European européen européenne ode
    """
)

REGIONS = (
    ORIGINS[-1],
    *_read(
        """
        African africain africaine d
        American américain américaine d
        Asian asiatique asiatique d
        """
    ),
)
"""The first adjective in the name of an institution: the European Economic Area."""

FIELDS = tuple(
    _read(
        """
        Economic économique économique d
        Monetary monétaire monétaire d
        Agricultural agricole agricole d
        Political politique politique d
        Cultural culturel culturelle d
        """
    )
)
"""The second: lower case in French, where names of institutions are no adjectives of state."""

FREE_AFTER = (*COLOURS, *QUALITIES, *CLASSES, *ORIGINS)
BY_ENGLISH = {adjective.english: adjective for adjective in (*FIELDS, *REGIONS, *FREE_AFTER, *BEFORE)}

_KINDS = ("person", "animal", "object", "place", "document", "event")
BEFORE_OF = {kind: tuple(a for a in BEFORE if kind in a.kinds) for kind in _KINDS}
QUALITIES_OF = {kind: tuple(a for a in (*COLOURS, *QUALITIES, *CLASSES) if kind in a.kinds) for kind in _KINDS}
ORIGINS_OF = {kind: tuple(a for a in ORIGINS if kind in a.kinds) for kind in _KINDS}
PREDICATIVE_OF = {
    kind: tuple(a for a in (*FREE_AFTER, *BEFORE) if kind in a.kinds and a.predicative) for kind in _KINDS
}
