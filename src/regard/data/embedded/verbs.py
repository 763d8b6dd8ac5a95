"""The verbs: their forms in both languages, and who does what to whom."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verb:
    base: str
    third: str
    """English present with he or she; `base` serves they and everything after "do"."""
    past: str
    past_participle: str
    singular: str
    """French present, third person singular and plural."""
    plural: str
    participle: str
    """French past participle, masculine singular."""
    with_être: bool = False
    """The perfect of verbs of movement and of reflexive verbs takes être, and agrees with the subject."""
    reflexive: bool = False
    subjects: tuple[str, ...] = ("person",)
    objects: tuple[str, ...] = ()


def _read(text: str, *, with_être: bool = False) -> tuple[Verb, ...]:
    """Rows of: four English forms | three French forms (a "se" before them) | subjects | objects."""
    verbs = []
    for row in text.strip().splitlines():
        english, french, subjects, *objects = (part.split() for part in row.split("|"))
        base, third, past, past_participle = english
        *se, singular, plural, participle = french
        verbs.append(
            Verb(
                base=base,
                third=third,
                past=past,
                past_participle=past_participle,
                singular=singular,
                plural=plural,
                participle=participle,
                with_être=with_être,
                reflexive=bool(se),
                subjects=tuple(subjects),
                objects=tuple(objects[0]) if objects else (),
            )
        )
    return tuple(verbs)


TRANSITIVE = _read(
    """
    see sees saw seen | voit voient vu | person animal | person animal object place
    help helps helped helped | aide aident aidé | person | person
    find finds found found | trouve trouvent trouvé | person | movable animal document
    buy buys bought bought | achète achètent acheté | person | object animal
    sell sells sold sold | vend vendent vendu | person | object animal
    visit visits visited visited | visite visitent visité | person | place
    build builds built built | construit construisent construit | person | buildable
    sign signs signed signed | signe signent signé | person power | ruling
    write writes wrote written | écrit écrivent écrit | person | writing
    reject rejects rejected rejected | rejette rejettent rejeté | person power | ruling
    prepare prepares prepared prepared | prépare préparent préparé | person power | event ruling
    cancel cancels cancelled cancelled | annule annulent annulé | person power | event
    """
)
"""A "power" is an institution or a country."""

DATIVE = _read(
    """
    give gives gave given | donne donnent donné | person | movable document
    send sends sent sent | envoie envoient envoyé | person | document
    """
)

INTRANSITIVE = _read(
    """
    sleep sleeps slept slept | dort dorment dormi | person animal
    eat eats ate eaten | mange mangent mangé | person animal
    work works worked worked | travaille travaillent travaillé | person
    sing sings sang sung | chante chantent chanté | person
    wait waits waited waited | attend attendent attendu | person
    speak speaks spoke spoken | parle parlent parlé | person
    run runs ran run | court courent couru | person animal
    """
)

MOVEMENT = _read(
    """
    arrive arrives arrived arrived | arrive arrivent arrivé | person
    leave leaves left left | part partent parti | person animal
    come comes came come | vient viennent venu | person
    stay stays stayed stayed | reste restent resté | person
    stop stops stopped stopped | se arrête arrêtent arrêté | person animal
    """,
    with_être=True,
)

SAYING = _read(
    """
    say says said said | dit disent dit | person power
    think thinks thought thought | pense pensent pensé | person
    know knows knew known | sait savent su | person
    """
)
"""Used in the present and without negation only, so that no tense has to be shifted and no mood changed."""

BEGIN = _read("begin begins began begun | commence commencent commencé | event")[0]

BY_BASE = {verb.base: verb for verb in (*TRANSITIVE, *DATIVE, *INTRANSITIVE, *MOVEMENT, *SAYING, BEGIN)}
