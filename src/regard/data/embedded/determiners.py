"""Determiners: the, a, this, my, every, two, many, all the ...

A determiner looks at the gender and number of its noun and at the sound of the word that follows.
"""

from __future__ import annotations

from dataclasses import dataclass

from regard.data.embedded.french import Agreement, starts_with_vowel_sound
from regard.data.embedded.phrase import Phrase

SPOKEN_WITHOUT_VOWEL = ("European", "useful")
SPOKEN_WITH_VOWEL = ("honest",)
"""English words whose first sound is not what the letter says: "a European car", "an honest man"."""


@dataclass(frozen=True)
class Determiner:
    """An English number left None does not exist: "every" has no plural, "two" no singular."""

    english: str | None
    english_plural: str | None
    masculine: str = ""
    masculine_before_vowel: str = ""
    feminine: str = ""
    feminine_before_vowel: str = ""
    plural: str = ""
    plural_feminine: str = ""
    plural_before_vowel: str = ""
    plural_before_adjective: str = ""
    links: tuple[tuple[int, int], ...] = ((0, 0),)

    def phrase(self, agreement: Agreement, english_next: str, french_next: str, *, adjective_next: bool) -> Phrase:
        english = self.english_plural if agreement.plural else self.english
        assert english, f"{self} has no such number"
        if english == "a" and _takes_an(english_next):
            english = "an"
        french = self._french(agreement, starts_with_vowel_sound(french_next), adjective_next)
        return Phrase(tuple(english.split()), tuple(french.split()), self.links)

    def _french(self, agreement: Agreement, vowel: bool, adjective_next: bool) -> str:
        if agreement.plural:
            if vowel and self.plural_before_vowel:
                return self.plural_before_vowel
            if adjective_next and self.plural_before_adjective:
                return self.plural_before_adjective
            return self.plural_feminine if agreement.feminine and self.plural_feminine else self.plural
        if agreement.feminine:
            return self.feminine_before_vowel if vowel else self.feminine
        return self.masculine_before_vowel if vowel else self.masculine


def _takes_an(word: str) -> bool:
    written = word[0].lower() in "aeiou" and word not in SPOKEN_WITHOUT_VOWEL
    return written or word in SPOKEN_WITH_VOWEL


def _possessive(english: str, masculine: str, feminine: str, plural: str) -> Determiner:
    """ "Mon" also stands before a feminine noun that begins with a vowel: mon école."""
    return Determiner(english, english, masculine, masculine, feminine, masculine, plural)


def _counting(english: str, french: str, feminine: str = "") -> Determiner:
    return Determiner(None, english, plural=french, plural_feminine=feminine)


THE = Determiner("the", "the", "le", "l'", "la", "l'", "les")
A = Determiner("a", "some", "un", "un", "une", "une", "des", plural_before_adjective="de")
NONE_OF = Determiner("a", "any", "de", "d'", "de", "d'", "de", plural_before_vowel="d'")
"""What `A` becomes as the direct object of a verb that is denied: "does not buy a car", "n' achète pas de voiture"."""
THIS = Determiner("this", "these", "ce", "cet", "cette", "cette", "ces")
POSSESSIVES = (
    _possessive("my", "mon", "ma", "mes"),
    _possessive("his", "son", "sa", "ses"),
    _possessive("her", "son", "sa", "ses"),
    _possessive("their", "leur", "leur", "leurs"),
)
EVERY = Determiner("every", None, "chaque", "chaque", "chaque", "chaque")
NUMBERS = tuple(
    _counting(*pair.split())
    for pair in ("two deux", "three trois", "four quatre", "five cinq", "eight huit", "ten dix")
)
SEVERAL = _counting("several", "plusieurs")
MANY = Determiner(None, "many", plural="beaucoup de", plural_before_vowel="beaucoup d'", links=((0, 0), (0, 1)))
ALL_THE = Determiner(None, "all the", plural="tous les", plural_feminine="toutes les", links=((0, 0), (1, 1)))
THE_NUMBERS = tuple(
    Determiner(None, f"the {number.english_plural}", plural=f"les {number.plural}", links=((0, 0), (1, 1)))
    for number in NUMBERS
)
