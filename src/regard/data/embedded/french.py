"""French spelling: which words begin with a vowel sound, what elides and contracts, how endings agree."""

from __future__ import annotations

from typing import NamedTuple

VOWELS = frozenset("aâàeéèêëiîïoôuûùœæ")
ASPIRATED = frozenset({"hibou", "hiboux", "huit"})
"""Words whose h blocks elision ("le hibou"); every other h of the lexicon is mute ("l' hôtel")."""

ELISIONS = {"le": "l'", "la": "l'", "de": "d'", "ne": "n'", "que": "qu'", "se": "s'"}
CONTRACTIONS = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
"""Only articles contract. The grammar puts no object pronoun right after a preposition, so none is at risk."""


class Agreement(NamedTuple):
    """What a French adjective, participle, determiner or verb agrees with."""

    feminine: bool
    plural: bool


MASCULINE = Agreement(feminine=False, plural=False)


def starts_with_vowel_sound(word: str) -> bool:
    word = word.lower()
    return word[0] in VOWELS or (word[0] == "h" and word not in ASPIRATED)


def elided(word: str, following: str) -> str:
    """`word` as it is written before `following`; "si" gives way to "il" and "ils" only."""
    if word in ELISIONS and starts_with_vowel_sound(following):
        return ELISIONS[word]
    if word == "si" and following in ("il", "ils"):
        return "s'"
    return word


def plural(word: str) -> str:
    """The regular plural of a noun, adjective or participle."""
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith(("eau", "eu")):
        return word + ("s" if word == "bleu" else "x")
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + "s"


def participle(masculine: str, agreement: Agreement) -> str:
    """A past participle: signé, signée, signés, signées."""
    form = masculine + "e" if agreement.feminine else masculine
    return plural(form) if agreement.plural else form
