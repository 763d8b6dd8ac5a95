"""Choosing whole sentences at random: statements of one or many clauses, reports, conditions and questions."""

from __future__ import annotations

from regard.data.embedded import clauses, closed
from regard.data.embedded.adjectives import PREDICATIVE_OF
from regard.data.embedded.dice import Dice, Weighted
from regard.data.embedded.happening import ACTIONS_ON_KIND, DOINGS, ELSEWHERE, Happening, Told
from regard.data.embedded.noun_phrases import degree_adjective
from regard.data.embedded.pairs import AlignedPair
from regard.data.embedded.phrase import Phrase, word
from regard.data.embedded.questions import NOTHING, be_question, do_question, passive_question
from regard.data.embedded.verb_phrases import Manner, active
from regard.data.embedded.verbs import SAYING, TRANSITIVE

PRESENT_EVENTS = Weighted((27.0, "doing"), (13.0, "acting"), (18.0, "moving"), (5.0, "giving"), (15.0, "being"))
PAST_EVENTS = Weighted(
    (40.0, "done"), (25.0, "doing"), (11.0, "acting"), (17.0, "moving"), (5.0, "giving"), (10.0, "being")
)
PAST_RATE = 0.6
NUM_CLAUSES = Weighted((84.0, 1), (10.0, 2), (2.6, 3), (1.4, 4), (1.1, 5), (0.9, 6))
LINKS = Weighted(
    (4.0, (closed.AND, True, False)),
    (3.0, (closed.BUT, True, False)),
    (3.0, (closed.BECAUSE, False, False)),
    (2.0, (closed.WHEN, False, False)),
    (1.0, (closed.WHILE, False, True)),
    (1.0, (closed.IF, False, True)),
)
"""A conjunction, whether a comma comes before it, and whether what follows it is in the present."""
ASKED = (word("where", "où"), word("when", "quand"), word("why", "pourquoi"))


class Teller:
    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.happening = Happening(dice)

    def sentence(self) -> AlignedPair:
        if self.dice.chance(0.07):
            return clauses.finished(self.question())
        if self.dice.chance(0.04):
            return clauses.statement(self.report())
        past = self.dice.chance(PAST_RATE)
        whole = self.opening_clause(past)
        for _ in range(self.dice.draw(NUM_CLAUSES) - 1):
            conjunction, comma, present = self.dice.draw(LINKS)
            following = self.clause(past and not present)
            whole = clauses.joined(whole, conjunction, following, comma=comma)
        return clauses.statement(whole)

    def opening_clause(self, past: bool) -> Phrase:
        if self.dice.chance(0.13):
            return clauses.opened(self.happening.time(past), self.clause(past, timed=False))
        if not past and self.dice.chance(0.09):
            return clauses.opened(clauses.concat(closed.IF, self.clause(False)), self.clause(False))
        return self.clause(past)

    def clause(self, past: bool, *, timed: bool = True) -> Phrase:
        told = self.told(past, timed)
        predicate = told.predicate
        if told.open and told.subject.kind in ("person", "pronoun", "animal") and self.dice.chance(0.06):
            person = told.subject.kind != "animal"
            second = self.happening.short_predicate(told.subject.agreement, past, person=person)
            predicate = clauses.concat(predicate, closed.AND, second)
        return clauses.clause(told.subject, predicate)

    def told(self, past: bool, timed: bool) -> Told:
        event = self.dice.draw(PAST_EVENTS if past else PRESENT_EVENTS)
        if event == "doing":
            return self.happening.doing(past, timed=timed)
        if event == "done":
            return self.happening.is_done(timed=timed)
        if event == "acting":
            return self.happening.acting(past, timed=timed)
        if event == "moving":
            return self.happening.moving(past, timed=timed)
        if event == "giving":
            return self.happening.giving(past, timed=timed)
        return self.happening.being(past)

    def report(self) -> Phrase:
        """ "The minister says that ..." """
        verb = self.dice.pick(SAYING)
        subject = self.happening.describer.subject(self.dice.pick(verb.subjects))
        inner = clauses.reported(self.clause(self.dice.chance(0.6)))
        return clauses.clause(subject, active(subject.agreement, verb, Manner(), [inner]))

    def question(self) -> Phrase:
        dice, happening = self.dice, self.happening
        past = dice.chance(0.55)
        kind = dice.pick(("person", "person", "animal", "object"))
        if kind == "object" or dice.chance(0.2):
            subject = happening.describer.subject(kind)
            adjective = dice.pick(PREDICATIVE_OF[kind])
            return be_question(subject, degree_adjective(adjective, subject.agreement), Manner(past=past))
        if dice.chance(0.25):
            verb, narrower = dice.pick(ACTIONS_ON_KIND["document"])
            subject = happening.describer.thing(narrower)
            return passive_question(subject, verb, happening.circumstances(True, True, place_rate=0.0, time_rate=0.4))
        subject = happening.describer.subject(kind)
        manner = Manner(past=past)
        opening = dice.pick(ASKED) if dice.chance(0.5) else NOTHING
        if kind == "person" and dice.chance(0.5):
            verb = dice.pick(TRANSITIVE)
            found = happening.object(dice.pick(verb.objects), denied=False)
            return do_question(subject, verb, manner, [found.phrase], opening=opening)
        verb = dice.pick(DOINGS[kind])
        tail: list[Phrase] = (
            []
            if opening.source or verb.base in ELSEWHERE
            else happening.circumstances(past, True, place_rate=0.3, time_rate=0.2)
        )
        return do_question(subject, verb, manner, tail, opening=opening)
