"""Building noun phrases: agreement is settled here, from the noun outwards.

English order:  determiner, adjectives, compound modifier, noun, what follows.
French order:   determiner, adjectives of the closed class, noun, de + modifier, other adjectives in mirror order,
                what follows.

So "the European Economic Area" is "la zone économique européenne" by the same rule that makes "a modern French
car" "une voiture française moderne".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from regard.data.embedded.adjectives import Adjective
from regard.data.embedded.closed import AND, COMMA, TOO, VERY, Name, Pronoun
from regard.data.embedded.determiners import THE, Determiner
from regard.data.embedded.french import Agreement, starts_with_vowel_sound
from regard.data.embedded.nouns import Modifier, Noun
from regard.data.embedded.phrase import Draft, Phrase, concat, word


class NounPhrase(NamedTuple):
    phrase: Phrase
    agreement: Agreement
    kind: str
    has_clause: bool = False
    """Whether a relative clause is inside, after which some coordinations would be ambiguous."""


class Described(NamedTuple):
    """An adjective in a noun phrase, "very" or not."""

    adjective: Adjective
    very: bool = False


def noun_phrase(
    determiner: Determiner,
    noun: Noun,
    *,
    plural: bool = False,
    adjectives: Sequence[Described] = (),
    modifier: Modifier | None = None,
    following: Phrase | None = None,
    has_clause: bool = False,
) -> NounPhrase:
    """`following` is a complement or relative clause, complete with its own French."""
    agreement = Agreement(noun.feminine, plural)
    core = _described_noun(noun, agreement, adjectives, modifier)
    front_adjective = any(described.adjective.before for described in adjectives)
    article = determiner.phrase(agreement, core.source[0], core.target[0], adjective_next=front_adjective)
    parts = (article, core) if following is None else (article, core, following)
    return NounPhrase(concat(*parts), agreement, noun.kind, has_clause)


def possessed(
    possessor: NounPhrase,
    noun: Noun,
    *,
    plural: bool = False,
    adjectives: Sequence[Described] = (),
    modifier: Modifier | None = None,
) -> NounPhrase:
    """The English genitive: "the minister 's small dog" is "le petit chien du ministre"."""
    agreement = Agreement(noun.feminine, plural)
    core = _described_noun(noun, agreement, adjectives, modifier)
    article = THE.phrase(agreement, core.source[0], core.target[0], adjective_next=False)
    draft = Draft()
    owner = draft.say_phrase(possessor.phrase)
    mark = draft.say("'s")
    owned = draft.say_phrase(core)
    draft.put(article.target[0], possible=(mark,))
    draft.put_phrase(core, owned)
    draft.put("de", sure=(mark,))
    draft.put_phrase(possessor.phrase, owner)
    return NounPhrase(draft.phrase(), agreement, noun.kind)


def _described_noun(
    noun: Noun, agreement: Agreement, adjectives: Sequence[Described], modifier: Modifier | None
) -> Phrase:
    """Everything between the determiner and the complement."""
    draft = Draft()
    front: list[tuple[Described, int]] = []
    back: list[tuple[Described, int]] = []
    for described in adjectives:
        place = len(draft.source)
        if described.very:
            draft.say("very")
        draft.say(described.adjective.english)
        (front if described.adjective.before else back).append((described, place))
    modifier_place = draft.say(modifier[0]) if modifier else None
    head = draft.say(noun.in_english(agreement.plural))

    french_noun = noun.in_french(agreement.plural)
    following = french_noun
    forms: list[tuple[str, Described, int]] = []
    for described, place in reversed(front):  # each form may depend on the sound of the next one
        form = described.adjective.in_french(agreement, following)
        forms.append((form, described, place))
        following = VERY.target[0] if described.very else form
    for form, described, place in reversed(forms):
        _put_adjective(draft, form, described, place)
    draft.put(french_noun, sure=(head,))
    if modifier is not None and modifier_place is not None:
        draft.put("de", possible=(modifier_place, head))
        draft.put(modifier[1], sure=(modifier_place,))
    for described, place in reversed(back):
        _put_adjective(draft, described.adjective.in_french(agreement), described, place)
    return draft.phrase()


def _put_adjective(draft: Draft, form: str, described: Described, place: int) -> None:
    if described.very:
        draft.put_phrase(VERY, place)
    draft.put(form, sure=(place + described.very,))


def degree_adjective(adjective: Adjective, agreement: Agreement, degree: Phrase | None = None) -> Phrase:
    """An adjective after "is": "very old", "too heavy"."""
    plain = word(adjective.english, adjective.in_french(agreement))
    assert degree is None or degree in (VERY, TOO)
    return plain if degree is None else concat(degree, plain)


def person(name: Name) -> NounPhrase:
    return NounPhrase(word(name.english, name.french), Agreement(name.feminine, False), "person")


def country(name: Name) -> NounPhrase:
    """French says "la France" where English has no article; that article is a possible link."""
    article = "l'" if starts_with_vowel_sound(name.french) else "la" if name.feminine else "le"
    phrase = Phrase((name.english,), (article, name.french), ((0, 1),), ((0, 0),))
    return NounPhrase(phrase, Agreement(name.feminine, False), "country")


def city(name: Name) -> NounPhrase:
    return NounPhrase(word(name.english, name.french), Agreement(name.feminine, False), "city")


def subject_pronoun(pronoun: Pronoun) -> NounPhrase:
    return NounPhrase(word(pronoun.english, pronoun.french), pronoun.agreement, "pronoun")


def coordinate(members: Sequence[NounPhrase]) -> NounPhrase:
    """ "A and B", "A , B and C": plural, and masculine as soon as one member is."""
    parts: list[Phrase] = []
    for number, member in enumerate(members):
        if number:
            parts.append(AND if number == len(members) - 1 else COMMA)
        parts.append(member.phrase)
    agreement = Agreement(all(member.agreement.feminine for member in members), plural=True)
    has_clause = any(member.has_clause for member in members)
    return NounPhrase(concat(*parts), agreement, members[0].kind, has_clause)


def prepositional(preposition: Phrase, noun: NounPhrase) -> Phrase:
    """A preposition and its noun phrase; the seam makes "du" and "aux" where French wants them."""
    return concat(preposition, noun.phrase)
