"""Choosing noun phrases at random: who or what a sentence is about, and how it is described."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regard.data.embedded import adjectives, closed, determiners
from regard.data.embedded.determiners import Determiner
from regard.data.embedded.dice import Dice, Weighted
from regard.data.embedded.noun_phrases import (
    Described,
    NounPhrase,
    city,
    coordinate,
    country,
    noun_phrase,
    person,
    possessed,
    prepositional,
    subject_pronoun,
)
from regard.data.embedded.nouns import MODIFIERS, NOUNS, Modifier, Noun
from regard.data.embedded.phrase import Phrase

Relative = Callable[[Noun, bool], Phrase]
"""Makes a relative clause for a noun in the singular or (True) plural."""

SINGULAR: Weighted[Sequence[Determiner]] = Weighted(
    (50.0, (determiners.THE,)),
    (18.0, (determiners.A,)),
    (9.0, (determiners.THIS,)),
    (18.0, determiners.POSSESSIVES),
    (5.0, (determiners.EVERY,)),
)
PLURAL: Weighted[Sequence[Determiner]] = Weighted(
    (38.0, (determiners.THE,)),
    (12.0, (determiners.A,)),
    (9.0, (determiners.THIS,)),
    (15.0, determiners.POSSESSIVES),
    (14.0, determiners.NUMBERS),
    (3.0, determiners.THE_NUMBERS),
    (3.0, (determiners.SEVERAL,)),
    (3.0, (determiners.MANY,)),
    (5.0, (determiners.ALL_THE,)),
)
PLURAL_RATE = 0.42
OWNERS = Weighted((5.0, determiners.THE), (2.0, determiners.THIS), (1.0, determiners.POSSESSIVES[0]))
INSTITUTION_NAMES = Weighted((8.0, "both"), (1.5, "region"), (1.0, "field"))


class Describer:
    def __init__(self, dice: Dice) -> None:
        self.dice = dice

    def thing(
        self,
        kind: str,
        *,
        denied: bool = False,
        after_de: bool = False,
        plain: bool = False,
        relative: Relative | None = None,
    ) -> NounPhrase:
        """A noun phrase of a kind.

        `denied` is a direct object under negation (pas de), `after_de` what follows the preposition "de" (no
        "de des"), `plain` one with nothing behind its noun; `relative` may be used to hang a clause on it.
        """
        dice = self.dice
        noun = dice.pick(NOUNS[kind])
        if noun.kind == "institution":
            return self.institution(noun)
        plural = dice.chance(PLURAL_RATE)
        described = self.adjectives(noun.kind)
        modifier = self.modifier(noun)
        if noun.kind != "event" and noun not in NOUNS["nobody's"] and dice.chance(0.06):
            return possessed(self.owner(), noun, plural=plural, adjectives=described, modifier=modifier)
        determiner = self.determiner(plural, denied=denied, after_de=after_de)
        if determiner in determiners.POSSESSIVES and noun in NOUNS["nobody's"]:
            determiner = determiners.THE
        following, has_clause = None, False
        if not plain:
            if relative is not None and dice.chance(0.11):
                following, has_clause = relative(noun, plural), True
            elif noun in NOUNS["subject"] and dice.chance(0.75):
                following = prepositional(closed.ON, self.theme())
            elif noun.kind in ("object", "place", "person") and dice.chance(0.07):
                following = prepositional(closed.OF, self.whole(noun.kind))
        return noun_phrase(
            determiner,
            noun,
            plural=plural,
            adjectives=described,
            modifier=modifier,
            following=following,
            has_clause=has_clause,
        )

    def determiner(self, plural: bool, *, denied: bool, after_de: bool) -> Determiner:
        choice = self.dice.pick(self.dice.draw(PLURAL if plural else SINGULAR))
        if choice is determiners.A:
            if denied:
                return determiners.NONE_OF
            if plural and after_de:
                return determiners.THE
        return choice

    def adjectives(self, kind: str) -> tuple[Described, ...]:
        """None, one or two or three, in the English order: size and age, quality, origin."""
        dice = self.dice
        if not dice.chance(0.3):
            return ()
        chosen: list[Described] = []
        for rate, options in (
            (0.42, adjectives.BEFORE_OF[kind]),
            (0.38, adjectives.QUALITIES_OF[kind]),
            (0.32, adjectives.ORIGINS_OF[kind]),
        ):
            if options and dice.chance(rate):
                adjective = dice.pick(options)
                chosen.append(Described(adjective, very=adjective.gradable and not chosen and dice.chance(0.12)))
        return tuple(chosen)

    def modifier(self, noun: Noun) -> Modifier | None:
        modifiers = MODIFIERS[noun]
        return self.dice.pick(modifiers) if modifiers and self.dice.chance(0.25) else None

    def institution(self, noun: Noun) -> NounPhrase:
        """ "The European Economic Area", "the African Union", "the Social Council"."""
        parts = self.dice.draw(INSTITUTION_NAMES)
        named = []
        if parts != "field":
            named.append(Described(self.dice.pick(adjectives.REGIONS)))
        if parts != "region":
            named.append(Described(self.dice.pick(adjectives.FIELDS)))
        return noun_phrase(determiners.THE, noun, adjectives=named)

    def power(self) -> NounPhrase:
        """What signs treaties and is no person."""
        if self.dice.chance(0.2):
            return country(self.dice.pick(closed.COUNTRIES))
        return self.institution(self.dice.pick(NOUNS["institution"]))

    def theme(self) -> NounPhrase:
        """What a report is on."""
        dice = self.dice
        if dice.chance(0.85):
            return self.power()
        if dice.chance(0.2):
            return city(dice.pick(closed.CITIES))
        return self.thing("theme", plain=True)

    def whole(self, kind: str) -> NounPhrase:
        """What something is of: the door of the house, the friend of the queen."""
        return self.thing("landmark" if kind == "object" else "person", after_de=True, plain=True)

    def owner(self) -> NounPhrase:
        """Whoever stands before 's; short, so that 's has one possible owner."""
        dice = self.dice
        if dice.chance(0.5):
            return person(dice.pick(closed.PEOPLE))
        return noun_phrase(dice.draw(OWNERS), dice.pick(NOUNS["person"]), plural=False)

    def subject(self, kind: str, *, relative: Relative | None = None) -> NounPhrase:
        """Who does it: a pronoun, a name, several, or a described one."""
        dice = self.dice
        if kind == "power":
            return self.power()
        if kind == "person":
            if dice.chance(0.18):
                return subject_pronoun(dice.pick(closed.SUBJECT_PRONOUNS))
            if dice.chance(0.2):
                return person(dice.pick(closed.PEOPLE))
        if dice.chance(0.07):
            return self.several(kind)
        return self.thing(kind, relative=relative)

    def several(self, kind: str) -> NounPhrase:
        members = [self._member(kind) for _ in range(3 if self.dice.chance(0.2) else 2)]
        return coordinate(members)

    def _member(self, kind: str) -> NounPhrase:
        if kind == "person" and self.dice.chance(0.4):
            return person(self.dice.pick(closed.PEOPLE))
        return self.thing(kind, plain=True)
