"""Building verb phrases: negation around the verb, pronouns before it, participles that agree.

English order:  [does] [not] [often] verb [them] ...
French order:   [ne] [les] verb or auxiliary [pas] [souvent] [participle] ...

Links: "not" renders both "ne" and "pas"; "did" renders the auxiliary; a simple past renders auxiliary and
participle. What has no word of its own on the other side ("does") is linked as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.data.embedded.closed import Negation, Pronoun
from regard.data.embedded.french import MASCULINE, Agreement, participle
from regard.data.embedded.phrase import Draft, Phrase
from regard.data.embedded.verbs import Verb

AVOIR = ("a", "ont")
ÊTRE = ("est", "sont")
WAS_LIKE = ("était", "étaient")


@dataclass(frozen=True, kw_only=True)
class Manner:
    """What a verb phrase has beside its verb."""

    past: bool = False
    negation: Negation | None = None
    adverb: Phrase | None = None
    """One of the short adverbs that English puts before the verb and French after its finite part: often."""
    pronoun: Pronoun | None = None
    moved: Agreement | None = None
    """What the direct object agrees with when it stands before the verb as "que": la maison que l' homme a vue."""


PRESENT = Manner()
PAST = Manner(past=True)


def active(subject: Agreement, verb: Verb, manner: Manner, tail: Sequence[Phrase] = ()) -> Phrase:
    """ "does not see them in the garden": everything but the subject."""
    draft = Draft()
    negation = manner.negation
    helper: int | None = None
    if negation is not None and negation.needs_do:
        helper = draft.say("did" if manner.past else "do" if subject.plural else "does")
    nots = [draft.say(each) for each in negation.english] if negation else []
    adverb = draft.say_phrase(manner.adverb) if manner.adverb else 0
    if helper is not None:
        form = verb.base
    elif manner.past:
        form = verb.past
    else:
        form = verb.base if subject.plural else verb.third
    main = draft.say(form)
    clitic = draft.say(manner.pronoun.english) if manner.pronoun else 0
    offsets = [draft.say_phrase(phrase) for phrase in tail]
    put_verb(draft, subject, verb, manner, main=main, helper=helper, nots=nots, adverb=adverb, clitic=clitic)
    for phrase, offset in zip(tail, offsets, strict=True):
        draft.put_phrase(phrase, offset)
    return draft.phrase()


def put_verb(
    draft: Draft,
    subject: Agreement,
    verb: Verb,
    manner: Manner,
    *,
    main: int,
    helper: int | None,
    nots: Sequence[int],
    adverb: int,
    clitic: int,
) -> None:
    """The French of a verb and all that clings to it, given where its English words are."""
    helpers = () if helper is None else (helper,)
    if nots:
        draft.put("ne", sure=nots[:1], possible=(*nots[1:], *helpers))
    if verb.reflexive:
        draft.put("se", sure=(main,))
    if manner.pronoun is not None:
        draft.put(manner.pronoun.french, sure=(clitic,))
    if manner.past:
        auxiliary = (ÊTRE if verb.with_être else AVOIR)[subject.plural]
        draft.put(auxiliary, sure=helpers or (main,), possible=(main,) if helpers else ())
    else:
        draft.put(verb.plural if subject.plural else verb.singular, sure=(main,), possible=helpers)
    if manner.negation is not None:
        draft.put(manner.negation.french, sure=nots[-1:], possible=(*nots[:-1], *helpers))
    if manner.adverb is not None:
        draft.put_phrase(manner.adverb, adverb)
    if manner.past:
        draft.put(participle(verb.participle, _participle_agreement(subject, verb, manner)), sure=(main,))


def _participle_agreement(subject: Agreement, verb: Verb, manner: Manner) -> Agreement:
    """With être the subject decides; with avoir a direct object, but only one that stands before the verb."""
    if verb.with_être:
        return subject
    if manner.pronoun is not None and manner.pronoun.direct:
        return manner.pronoun.agreement
    return manner.moved or MASCULINE


def passive(subject: Agreement, verb: Verb, manner: Manner = PAST, tail: Sequence[Phrase] = ()) -> Phrase:
    """ "was not signed in August": "n' a pas été signé en août"."""
    draft = Draft()
    was = draft.say("were" if subject.plural else "was")
    nots, adverb = _say_between(draft, manner)
    main = draft.say(verb.past_participle)
    offsets = [draft.say_phrase(phrase) for phrase in tail]
    _put_finite(draft, AVOIR[subject.plural], manner, was, nots, adverb)
    draft.put("été", sure=(was,), possible=(main,))
    draft.put(participle(verb.participle, subject), sure=(main,))
    for phrase, offset in zip(tail, offsets, strict=True):
        draft.put_phrase(phrase, offset)
    return draft.phrase()


def copula(subject: Agreement, complement: Phrase, manner: Manner = PRESENT) -> Phrase:
    """ "is not very old", "were in the garden"."""
    draft = Draft()
    singular, plural = ("was", "were") if manner.past else ("is", "are")
    is_ = draft.say(plural if subject.plural else singular)
    nots, adverb = _say_between(draft, manner)
    offset = draft.say_phrase(complement)
    _put_finite(draft, (WAS_LIKE if manner.past else ÊTRE)[subject.plural], manner, is_, nots, adverb)
    draft.put_phrase(complement, offset)
    return draft.phrase()


def _say_between(draft: Draft, manner: Manner) -> tuple[list[int], int]:
    """Says negation and adverb where a form of "be" has them, which is after it."""
    nots = [draft.say(each) for each in manner.negation.english] if manner.negation else []
    adverb = draft.say_phrase(manner.adverb) if manner.adverb else 0
    return nots, adverb


def _put_finite(draft: Draft, form: str, manner: Manner, place: int, nots: Sequence[int], adverb: int) -> None:
    if nots:
        draft.put("ne", sure=nots[:1], possible=(*nots[1:], place))
    draft.put(form, sure=(place,))
    if manner.negation is not None:
        draft.put(manner.negation.french, sure=nots[-1:], possible=(*nots[:-1], place))
    if manner.adverb is not None:
        draft.put_phrase(manner.adverb, adverb)
