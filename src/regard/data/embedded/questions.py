"""Building questions: the auxiliary that English puts in front becomes "est-ce que", and the word order stays.

A question carries its own mark, because "?" and "est-ce que" say the same thing (a possible link).
"""

from __future__ import annotations

from collections.abc import Sequence

from regard.data.embedded.french import participle
from regard.data.embedded.noun_phrases import NounPhrase
from regard.data.embedded.phrase import Draft, Phrase, concat, word
from regard.data.embedded.verb_phrases import AVOIR, PRESENT, WAS_LIKE, ÊTRE, Manner, put_verb
from regard.data.embedded.verbs import Verb

NOTHING = concat()


def do_question(
    subject: NounPhrase,
    verb: Verb,
    manner: Manner = PRESENT,
    tail: Sequence[Phrase] = (),
    *,
    opening: Phrase = NOTHING,
) -> Phrase:
    """ "does Mary sleep here ?": "est-ce que Marie dort ici ?"; `opening` is where, when or why."""
    assert manner.negation is None
    draft = Draft()
    first = draft.say_phrase(opening)
    helper = draft.say("did" if manner.past else "do" if subject.agreement.plural else "does")
    who = draft.say_phrase(subject.phrase)
    adverb = draft.say_phrase(manner.adverb) if manner.adverb else 0
    main = draft.say(verb.base)
    clitic = draft.say(manner.pronoun.english) if manner.pronoun else 0
    rest = concat(*tail)
    after = draft.say_phrase(rest)
    mark = draft.say("?")
    draft.put_phrase(opening, first)
    draft.put("est-ce", sure=(helper,), possible=(mark,))
    draft.put("que", sure=(helper,), possible=(mark,))
    draft.put_phrase(subject.phrase, who)
    put_verb(draft, subject.agreement, verb, manner, main=main, helper=helper, nots=(), adverb=adverb, clitic=clitic)
    draft.put_phrase(rest, after)
    draft.put("?", sure=(mark,))
    return draft.phrase()


def passive_question(subject: NounPhrase, verb: Verb, tail: Sequence[Phrase] = ()) -> Phrase:
    """ "was the law signed ?": "est-ce que la loi a été signée ?"."""
    was = "were" if subject.agreement.plural else "was"
    signed = word(verb.past_participle, participle(verb.participle, subject.agreement))
    return _be_question(was, (AVOIR[subject.agreement.plural], "été"), subject, concat(signed, *tail))


def be_question(subject: NounPhrase, complement: Phrase, manner: Manner = PRESENT) -> Phrase:
    """ "is the house old ?": "est-ce que la maison est vieille ?"."""
    plural = subject.agreement.plural
    singular_form, plural_form = ("was", "were") if manner.past else ("is", "are")
    french = (WAS_LIKE if manner.past else ÊTRE)[plural]
    return _be_question(plural_form if plural else singular_form, (french,), subject, complement)


def _be_question(be: str, french: Sequence[str], subject: NounPhrase, complement: Phrase) -> Phrase:
    draft = Draft()
    place = draft.say(be)
    who = draft.say_phrase(subject.phrase)
    what = draft.say_phrase(complement)
    mark = draft.say("?")
    draft.put("est-ce", possible=(place, mark))
    draft.put("que", possible=(place, mark))
    draft.put_phrase(subject.phrase, who)
    for form in french:
        draft.put(form, sure=(place,))
    draft.put_phrase(complement, what)
    draft.put("?", sure=(mark,))
    return draft.phrase()
