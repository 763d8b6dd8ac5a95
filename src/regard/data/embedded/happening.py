"""Choosing what happens: single clauses, with the verb's objects, place, time, negation, and relative clauses."""

from __future__ import annotations

from typing import NamedTuple

from regard.data.embedded import adjectives, clauses, closed
from regard.data.embedded.closed import Negation
from regard.data.embedded.describing import Describer
from regard.data.embedded.dice import Dice, Weighted
from regard.data.embedded.french import Agreement
from regard.data.embedded.noun_phrases import NounPhrase, degree_adjective, prepositional
from regard.data.embedded.nouns import BY_ENGLISH, NOUNS, Noun
from regard.data.embedded.phrase import Phrase
from regard.data.embedded.verb_phrases import Manner, active, copula, passive
from regard.data.embedded.verbs import BEGIN, DATIVE, INTRANSITIVE, MOVEMENT, TRANSITIVE, Verb

NEGATION_RATE = 0.17
PRESENT_NEGATIONS = Weighted((5.0, closed.NOT), (1.5, closed.NEVER), (1.5, closed.NO_LONGER))
PAST_NEGATIONS = Weighted((5.0, closed.NOT), (1.5, closed.NEVER))
DONE_TO = Weighted(
    (15.0, "document"), (2.0, "event"), (1.5, "person"), (1.0, "animal"), (3.0, "object"), (2.0, "place")
)
BEING = Weighted((4.0, "person"), (1.5, "animal"), (4.0, "object"), (2.5, "place"), (2.0, "document"), (1.0, "event"))
WHEREABOUTS = Weighted(
    (6.0, (closed.IN, "inside")),
    (2.0, (closed.NEAR, "landmark")),
    (1.5, (closed.BEHIND, "landmark")),
    (1.5, (closed.IN_FRONT_OF, "landmark")),
)
SPOTS = Weighted((3.0, (closed.ON, "surface")), (2.0, (closed.UNDER, "surface")), (3.0, (closed.IN, "inside")))
ACTIONS_ON = {
    noun: tuple(verb for verb in TRANSITIVE if any(noun in NOUNS[name] for name in verb.objects))
    for noun in BY_ENGLISH.values()
}
ACTIONS_ON_KIND = {
    kind: tuple((verb, name) for verb in TRANSITIVE for name in verb.objects if NOUNS[name][0].kind == kind)
    for kind in DONE_TO.options
}
"""Verbs with the set of things they can be done to, by the kind of most of these things."""
DOINGS = {
    kind: tuple(verb for verb in (*INTRANSITIVE, *MOVEMENT) if kind in verb.subjects) for kind in ("person", "animal")
}
"""What a person or an animal can do without an object."""
ELSEWHERE = ("come", "leave")
"""Verbs that a place where one is does not suit."""
EVENT_TIMES = (closed.BEFORE_EVENT, closed.AFTER_EVENT, closed.DURING)


class Told(NamedTuple):
    subject: NounPhrase
    predicate: Phrase
    open: bool
    """Whether "and" + another verb may follow without a second reading."""


class Happening:
    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.describer = Describer(dice)

    def doing(self, past: bool, *, timed: bool = True) -> Told:
        """Someone does something to something."""
        dice = self.dice
        verb = dice.pick(TRANSITIVE)
        subject = self.describer.subject(dice.pick(verb.subjects), relative=self.relative)
        negation = self.negation(past)
        adverb = self.adverb(negation)
        if dice.chance(0.2):
            pronouns = closed.OBJECT_PRONOUNS if "person" in verb.objects else (closed.THEM,)
            manner = Manner(past=past, negation=negation, adverb=adverb, pronoun=dice.pick(pronouns))
            tail, has_clause = [], False
        else:
            found = self.object(dice.pick(verb.objects), denied=negation is not None)
            manner = Manner(past=past, negation=negation, adverb=adverb)
            tail, has_clause = [found.phrase], found.has_clause
        tail += self.circumstances(past, timed, place_rate=0.12, time_rate=0.25)
        return Told(subject, active(subject.agreement, verb, manner, tail), not has_clause and negation is None)

    def giving(self, past: bool, *, timed: bool = True) -> Told:
        """Gives, sends, shows: "to the child" after the thing, or a pronoun before the French verb."""
        dice = self.dice
        verb = dice.pick(DATIVE)
        subject = self.describer.subject("person", relative=self.relative)
        negation = self.negation(past)
        given = self.describer.thing(dice.pick(verb.objects), denied=negation is not None, plain=True)
        pronoun = dice.pick(closed.DATIVE_PRONOUNS) if dice.chance(0.4) else None
        tail = [given.phrase]
        if pronoun is None:
            tail.append(prepositional(closed.TO, self.someone()))
        tail += self.circumstances(past, timed, place_rate=0.0, time_rate=0.2)
        manner = Manner(past=past, negation=negation, pronoun=pronoun)
        return Told(subject, active(subject.agreement, verb, manner, tail), negation is None)

    def acting(self, past: bool, *, timed: bool = True) -> Told:
        """Someone sleeps, sings, waits."""
        dice = self.dice
        if dice.chance(0.06):
            subject = self.describer.subject("event")
            when = self.circumstances(past, timed, place_rate=0.0, time_rate=0.7)
            return Told(subject, active(subject.agreement, BEGIN, Manner(past=past), when), False)
        verb = dice.pick(INTRANSITIVE)
        subject = self.describer.subject(dice.pick(verb.subjects), relative=self.relative)
        negation = self.negation(past)
        tail: list[Phrase] = []
        if dice.chance(0.2):
            tail.append(closed.QUIETLY if verb.base in ("sleep", "wait") else dice.pick(closed.MANNERS))
        elif subject.agreement.plural and dice.chance(0.15):
            tail.append(closed.TOGETHER)
        if verb.base == "run" and dice.chance(0.4):
            tail.append(prepositional(closed.TOWARDS, self.describer.thing("landmark", plain=True)))
        elif subject.kind != "animal" and dice.chance(0.18):
            preposition = closed.FOR if verb.base in ("work", "sing") and dice.chance(0.5) else closed.WITH
            tail.append(prepositional(preposition, self.someone()))
        tail += self.circumstances(past, timed, place_rate=0.3, time_rate=0.22)
        manner = Manner(past=past, negation=negation, adverb=self.adverb(negation))
        return Told(subject, active(subject.agreement, verb, manner, tail), negation is None)

    def moving(self, past: bool, *, timed: bool = True) -> Told:
        """Verbs with être: comes, leaves, falls, stops."""
        dice = self.dice
        verb = dice.pick(MOVEMENT)
        subject = self.describer.subject(dice.pick(verb.subjects), relative=self.relative)
        negation = self.negation(past)
        tail: list[Phrase] = []
        if verb.base in ELSEWHERE:
            if verb.base != "leave" and dice.chance(0.7):
                tail.append(self.goal())
        elif verb.base == "stay" and dice.chance(0.5):
            tail.append(prepositional(closed.WITH, self.someone()))
        else:
            tail += self.circumstances(past, False, place_rate=0.3, time_rate=0.0)
        tail += self.circumstances(past, timed, place_rate=0.0, time_rate=0.3)
        manner = Manner(past=past, negation=negation, adverb=self.adverb(negation))
        return Told(subject, active(subject.agreement, verb, manner, tail), negation is None)

    def is_done(self, *, timed: bool = True) -> Told:
        """The passive: "The agreement on the European Economic Area was signed in August 1992"."""
        dice = self.dice
        kind = dice.draw(DONE_TO)
        verb, narrower = dice.pick(ACTIONS_ON_KIND[kind])
        subject = self.describer.subject(narrower, relative=self.relative)
        tail: list[Phrase] = []
        if dice.chance(0.22):
            tail.append(prepositional(closed.BY, self.agent(verb)))
        tail += self.circumstances(True, timed, place_rate=0.06, time_rate=0.6)
        return Told(
            subject, passive(subject.agreement, verb, Manner(past=True, negation=self.negation(True)), tail), False
        )

    def being(self, past: bool) -> Told:
        """ "Is very old", "is not in the garden"."""
        dice = self.dice
        kind = dice.draw(BEING)
        subject = self.describer.subject(kind, relative=self.relative)
        negation = self.negation(past)
        if kind in ("person", "animal", "object") and dice.chance(0.3):
            complement = self.spot() if kind == "object" else self.place()
        else:
            adjective = dice.pick(adjectives.PREDICATIVE_OF[kind])
            degree = dice.pick((closed.VERY, closed.TOO)) if adjective.gradable and dice.chance(0.3) else None
            complement = degree_adjective(adjective, subject.agreement, degree)
        return Told(subject, copula(subject.agreement, complement, Manner(past=past, negation=negation)), False)

    def short_predicate(self, agreement: Agreement, past: bool, *, person: bool) -> Phrase:
        """A verb phrase without clauses in it, for what follows "and" or "who"."""
        dice = self.dice
        if person and dice.chance(0.45):
            verb = dice.pick(TRANSITIVE)
            found = self.describer.thing(dice.pick(verb.objects), plain=True)
            return active(agreement, verb, Manner(past=past), [found.phrase])
        verb = dice.pick(DOINGS["person" if person else "animal"])
        place_rate = 0.0 if verb.base in ELSEWHERE else 0.3
        tail = self.circumstances(past, False, place_rate=place_rate, time_rate=0.0)
        return active(agreement, verb, Manner(past=past), tail)

    def relative(self, noun: Noun, plural: bool) -> Phrase:
        """A relative clause for a noun; it has no relative clause inside."""
        dice = self.dice
        agreement = Agreement(noun.feminine, plural)
        past = dice.chance(0.6)
        if noun.kind in ("person", "animal") and dice.chance(0.6):
            predicate = self.short_predicate(agreement, past, person=noun.kind == "person")
            return clauses.who(predicate) if noun.kind == "person" else clauses.that(predicate)
        if noun in NOUNS["inside"] and dice.chance(0.35):
            verb = dice.pick([each for each in DOINGS["person"] if each.base not in ELSEWHERE])
            subject = self.someone(pronouns=True)
            return clauses.where(clauses.clause(subject, active(subject.agreement, verb, Manner(past=past))))
        verb = dice.pick(ACTIONS_ON[noun])
        negation = self.negation(past)
        if noun.kind not in ("person", "animal") and dice.chance(0.4):
            tail = self.circumstances(True, True, place_rate=0.0, time_rate=0.5)
            return clauses.that(passive(agreement, verb, Manner(past=True, negation=self.negation(True)), tail))
        subject = self.someone(pronouns=True)
        inner = active(subject.agreement, verb, Manner(past=past, negation=negation, moved=agreement))
        whole = clauses.clause(subject, inner)
        return clauses.whom(whole) if noun.kind == "person" else clauses.which(whole)

    def someone(self, *, pronouns: bool = False) -> NounPhrase:
        """A person in few words."""
        while True:
            found = self.describer.subject("person")
            if len(found.phrase.source) <= 4 and (pronouns or found.kind != "pronoun") and not _coordinated(found):
                return found

    def agent(self, verb: Verb) -> NounPhrase:
        if "power" in verb.subjects and self.dice.chance(0.5):
            return self.describer.power()
        return self.someone()

    def object(self, kind: str, *, denied: bool) -> NounPhrase:
        if not denied and self.dice.chance(0.06):
            return self.describer.several(kind)
        return self.describer.thing(kind, denied=denied, relative=self.relative)

    def negation(self, past: bool) -> Negation | None:
        if not self.dice.chance(NEGATION_RATE):
            return None
        return self.dice.draw(PAST_NEGATIONS if past else PRESENT_NEGATIONS)

    def adverb(self, negation: Negation | None) -> Phrase | None:
        if negation is not None or not self.dice.chance(0.09):
            return None
        return self.dice.pick((*closed.USUALLY, closed.ALREADY))

    def circumstances(self, past: bool, timed: bool, *, place_rate: float, time_rate: float) -> list[Phrase]:
        found = []
        if self.dice.chance(place_rate):
            found.append(self.place())
        if timed and self.dice.chance(time_rate):
            found.append(self.time(past))
        return found

    def place(self) -> Phrase:
        dice = self.dice
        if dice.chance(0.18):
            return closed.at_city("in", dice.pick(closed.CITIES))
        if dice.chance(0.18):
            return closed.at_country("in", dice.pick(closed.COUNTRIES))
        if dice.chance(0.15):
            return dice.pick(closed.SPOTS)
        return self._located(WHEREABOUTS)

    def spot(self) -> Phrase:
        """Where a thing is."""
        return self._located(SPOTS)

    def _located(self, table: Weighted[tuple[Phrase, str]]) -> Phrase:
        preposition, kind = self.dice.draw(table)
        after_de = preposition is closed.NEAR
        return prepositional(preposition, self.describer.thing(kind, plain=True, after_de=after_de))

    def goal(self) -> Phrase:
        """Where someone comes to, or from."""
        dice = self.dice
        if dice.chance(0.35):
            return closed.at_city(dice.pick(("to", "from")), dice.pick(closed.CITIES))
        if dice.chance(0.35):
            return closed.at_country(dice.pick(("to", "from")), dice.pick(closed.COUNTRIES))
        preposition = dice.pick((closed.TO, closed.FROM))
        return prepositional(preposition, self.describer.thing("goal", plain=True, after_de=preposition is closed.FROM))

    def time(self, past: bool) -> Phrase:
        dice = self.dice
        if dice.chance(0.12):
            return prepositional(dice.pick(EVENT_TIMES), self.describer.thing("event", plain=True))
        if not past:
            return dice.pick(closed.PRESENT_TIMES)
        return dice.draw(PAST_TIMES)(dice)


def _month_of(dice: Dice) -> Phrase:
    return closed.in_month_of(dice.pick(closed.MONTHS), dice.pick(closed.YEARS))


def _month(dice: Dice) -> Phrase:
    return closed.in_month(dice.pick(closed.MONTHS))


def _year(dice: Dice) -> Phrase:
    return closed.in_year(dice.pick(closed.YEARS))


def _day(dice: Dice) -> Phrase:
    return closed.on_day(dice.pick(closed.DAYS), dice.pick(closed.MONTHS), dice.pick(closed.YEARS))


def _weekday(dice: Dice) -> Phrase:
    return dice.pick(closed.WEEKDAYS)


def _named_time(dice: Dice) -> Phrase:
    return dice.pick(closed.PAST_TIMES)


PAST_TIMES = Weighted(
    (35.0, _month_of), (14.0, _year), (8.0, _month), (9.0, _day), (18.0, _weekday), (14.0, _named_time)
)


def _coordinated(noun: NounPhrase) -> bool:
    return "and" in noun.phrase.source
