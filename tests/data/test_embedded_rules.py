"""Every construction of the embedded language, written out by hand: English, French and all links."""

from __future__ import annotations

import pytest

from regard.data.embedded import DECK_PAIR, AlignedPair, clauses, closed
from regard.data.embedded.adjectives import BY_ENGLISH as ADJECTIVES
from regard.data.embedded.determiners import ALL_THE, EVERY, MANY, NONE_OF, NUMBERS, POSSESSIVES, SEVERAL, THE, THIS, A
from regard.data.embedded.french import Agreement
from regard.data.embedded.noun_phrases import (
    Described,
    NounPhrase,
    coordinate,
    country,
    degree_adjective,
    noun_phrase,
    person,
    possessed,
    prepositional,
    subject_pronoun,
)
from regard.data.embedded.nouns import BY_ENGLISH as NOUNS
from regard.data.embedded.phrase import Phrase, concat
from regard.data.embedded.questions import be_question, do_question, passive_question
from regard.data.embedded.verb_phrases import PAST, PRESENT, Manner, active, copula, passive
from regard.data.embedded.verbs import BY_BASE as VERBS

MY, HIS, HER = POSSESSIVES[:3]
EIGHT = next(number for number in NUMBERS if number.english_plural == "eight")
HE, SHE, THEY = (subject_pronoun(pronoun) for pronoun in closed.SUBJECT_PRONOUNS)
HIM_THERE, HER_THERE, THEM_THERE = closed.OBJECT_PRONOUNS
TO_HIM = closed.DATIVE_PRONOUNS[0]
MARY, JOHN = person(closed.PEOPLE[0]), person(closed.PEOPLE[1])
NOT_PAST = Manner(past=True, negation=closed.NOT)
FRANCE, ITALY = closed.COUNTRIES[:2]
CANADA = next(name for name in closed.COUNTRIES if name.english == "Canada")


def a_noun(determiner, noun: str, *adjectives: str, plural: bool = False, **more) -> NounPhrase:
    described = [Described(ADJECTIVES[name.removeprefix("very ")], name.startswith("very ")) for name in adjectives]
    return noun_phrase(determiner, NOUNS[noun], plural=plural, adjectives=described, **more)


def say(subject: NounPhrase, verb: str, manner: Manner = PRESENT, *tail: NounPhrase | Phrase) -> Phrase:
    phrases = [part.phrase if isinstance(part, NounPhrase) else part for part in tail]
    return clauses.clause(subject, active(subject.agreement, VERBS[verb], manner, phrases))


def say_passive(subject: NounPhrase, verb: str, manner: Manner = PAST, *tail: Phrase) -> Phrase:
    return clauses.clause(subject, passive(subject.agreement, VERBS[verb], manner, tail))


def say_is(subject: NounPhrase, adjective: str, manner: Manner = PRESENT, degree: Phrase | None = None) -> Phrase:
    complement = degree_adjective(ADJECTIVES[adjective], subject.agreement, degree)
    return clauses.clause(subject, copula(subject.agreement, complement, manner))


def links(text: str) -> frozenset[tuple[int, int]]:
    return frozenset((int(one), int(other)) for one, other in (link.split("-") for link in text.split()))


THE_DOG = a_noun(THE, "dog")
THE_MAN = a_noun(THE, "man")
THE_WOMAN = a_noun(THE, "woman")
THE_HOUSE = a_noun(THE, "house")
A_LETTER = a_noun(A, "letter")

PHRASES = {
    "adjective after the noun": (
        a_noun(A, "car", "red").phrase,
        ("a red car", "une voiture rouge", "0-0 1-2 2-1", ""),
    ),
    "adjective of the closed class before it": (
        a_noun(THE, "house", "big", plural=True).phrase,
        ("the big houses", "les grandes maisons", "0-0 1-1 2-2", ""),
    ),
    "several adjectives in mirror order": (
        a_noun(THIS, "car", "small", "modern", "French").phrase,
        ("this small modern French car", "cette petite voiture française moderne", "0-0 1-1 2-4 3-3 4-2", ""),
    ),
    "third masculine form and cet": (
        a_noun(THIS, "man", "old").phrase,
        ("this old man", "ce vieil homme", "0-0 1-1 2-2", ""),
    ),
    "third form gives way to très": (
        a_noun(A, "hotel", "very old").phrase,
        ("a very old hotel", "un très vieil hôtel", "0-0 1-1 2-2 3-3", ""),
    ),
    "cet before a mute h": (a_noun(THIS, "hotel").phrase, ("this hotel", "cet hôtel", "0-0 1-1", "")),
    "ce before an aspirated h": (a_noun(THIS, "owl").phrase, ("this owl", "ce hibou", "0-0 1-1", "")),
    "mon before a feminine vowel": (a_noun(MY, "school").phrase, ("my school", "mon école", "0-0 1-1", "")),
    "ma before an adjective": (
        a_noun(MY, "school", "new").phrase,
        ("my new school", "ma nouvelle école", "0-0 1-1 2-2", ""),
    ),
    "his agrees with what is had": (a_noun(HIS, "mother").phrase, ("his mother", "sa mère", "0-0 1-1", "")),
    "des becomes de before an adjective": (
        a_noun(A, "house", "old", plural=True).phrase,
        ("some old houses", "de vieilles maisons", "0-0 1-1 2-2", ""),
    ),
    "des stays otherwise": (
        a_noun(A, "house", "modern", plural=True).phrase,
        ("some modern houses", "des maisons modernes", "0-0 1-2 2-1", ""),
    ),
    "irregular plurals": (
        a_noun(EIGHT, "horse", "beautiful", "white", plural=True).phrase,
        ("eight beautiful white horses", "huit beaux chevaux blancs", "0-0 1-1 2-3 3-2", ""),
    ),
    "many": (a_noun(MANY, "child", plural=True).phrase, ("many children", "beaucoup d' enfants", "0-0 0-1 1-2", "")),
    "all the, feminine": (
        a_noun(ALL_THE, "girl", plural=True).phrase,
        ("all the girls", "toutes les filles", "0-0 1-1 2-2", ""),
    ),
    "every": (a_noun(EVERY, "school").phrase, ("every school", "chaque école", "0-0 1-1", "")),
    "several": (a_noun(SEVERAL, "man", plural=True).phrase, ("several men", "plusieurs hommes", "0-0 1-1", "")),
    "a or an by the sound": (
        concat(a_noun(A, "instrument", "useful").phrase, a_noun(A, "man", "honest").phrase),
        ("a useful instrument an honest man", "un instrument utile un homme honnête", "0-0 1-2 2-1 3-3 4-5 5-4", ""),
    ),
    "compound turned round": (
        a_noun(THE, "bridge", "old", "famous", modifier=("stone", "pierre")).phrase,
        ("the old famous stone bridge", "le vieux pont de pierre célèbre", "0-0 1-1 2-5 3-4 4-2", "3-3 4-3"),
    ),
    "compound with elision": (
        a_noun(A, "festival", modifier=("winter", "hiver")).phrase,
        ("a winter festival", "un festival d' hiver", "0-0 1-3 2-1", "1-2 2-2"),
    ),
    "name of an institution": (
        a_noun(THE, "Area", "European", "Economic").phrase,
        ("the European Economic Area", "la zone économique européenne", "0-0 1-3 2-2 3-1", ""),
    ),
    "contraction of de and le": (
        a_noun(THE, "door", following=prepositional(closed.OF, a_noun(THE, "castle"))).phrase,
        ("the door of the castle", "la porte du château", "0-0 1-1 2-2 3-2 4-3", ""),
    ),
    "no contraction before l'": (
        prepositional(closed.OF, a_noun(THE, "hotel")),
        ("of the hotel", "de l' hôtel", "0-0 1-1 2-2", ""),
    ),
    "contraction before an aspirated h": (
        prepositional(closed.TO, a_noun(THE, "owl", plural=True)),
        ("to the owls", "aux hiboux", "0-0 1-0 2-1", ""),
    ),
    "contraction inside a compound preposition": (
        prepositional(closed.NEAR, a_noun(THE, "garden", plural=True)),
        ("near the gardens", "près des jardins", "0-0 0-1 1-1 2-2", ""),
    ),
    "in front of": (
        prepositional(closed.IN_FRONT_OF, THE_HOUSE),
        ("in front of the house", "devant la maison", "1-0 3-1 4-2", "0-0 2-0"),
    ),
    "genitive turned round": (
        possessed(
            THE_MAN, NOUNS["dog"], adjectives=[Described(ADJECTIVES["small"]), Described(ADJECTIVES["white"])]
        ).phrase,
        ("the man 's small white dog", "le petit chien blanc de l' homme", "0-5 1-6 2-4 3-1 4-3 5-2", "2-0"),
    ),
    "genitive with contraction and elision": (
        concat(
            possessed(a_noun(THE, "king"), NOUNS["friend"]).phrase, possessed(MARY, NOUNS["hat"], plural=True).phrase
        ),
        (
            "the king 's friend Mary 's hats",
            "l' ami du roi les chapeaux de Marie",
            "0-2 1-3 2-2 3-1 4-7 5-6 6-5",
            "2-0 5-4",
        ),
    ),
    "countries": (
        concat(
            country(FRANCE).phrase,
            closed.at_country("in", FRANCE),
            closed.at_country("to", CANADA),
            closed.at_country("from", CANADA),
            closed.at_country("from", ITALY),
        ),
        (
            "France in France to Canada from Canada from Italy",
            "la France en France au Canada du Canada d' Italie",
            "0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-8 8-9",
            "0-0",
        ),
    ),
    "cities": (
        concat(closed.at_city("in", closed.CITIES[0]), closed.at_city("from", closed.CITIES[-1])),
        ("in Paris from Athens", "à Paris d' Athènes", "0-0 1-1 2-2 3-3", ""),
    ),
    "dates": (
        concat(
            closed.in_month_of(closed.MONTHS[7], closed.YEARS[4]),
            closed.on_day(closed.DAYS[-2], closed.MONTHS[6], closed.YEARS[1]),
            closed.WEEKDAYS[0],
            closed.PAST_TIMES[1],
        ),
        (
            "in August 1992 on 14 July 1989 on Monday last week",
            "en août 1992 le 14 juillet 1989 lundi la semaine dernière",
            "0-0 1-1 2-2 3-3 4-4 5-5 6-6 8-7 9-10 10-9",
            "7-7 9-8 10-8",
        ),
    ),
}

SENTENCES = {
    "shortest": (say(JOHN, "sleep"), ("John sleeps .", "Jean dort .", "0-0 1-1 2-2", "")),
    "plural": (
        say(a_noun(THIS, "child", plural=True), "sleep"),
        ("These children sleep .", "Ces enfants dorment .", "0-0 1-1 2-2 3-3", ""),
    ),
    "negation around the verb": (
        say(THE_MAN, "sleep", Manner(negation=closed.NOT)),
        ("The man does not sleep .", "L' homme ne dort pas .", "0-0 1-1 3-2 3-4 4-3 5-5", "2-2 2-3 2-4"),
    ),
    "negation around the auxiliary": (
        say(THE_WOMAN, "eat", NOT_PAST),
        ("The woman did not eat .", "La femme n' a pas mangé .", "0-0 1-1 2-3 3-2 3-4 4-5 5-6", "2-2 2-4 4-3"),
    ),
    "never": (
        say(HE, "speak", Manner(past=True, negation=closed.NEVER)),
        ("He never spoke .", "Il n' a jamais parlé .", "0-0 1-1 1-3 2-2 2-4 3-5", ""),
    ),
    "no longer": (
        say(THEY, "work", Manner(negation=closed.NO_LONGER)),
        ("They no longer work .", "Ils ne travaillent plus .", "0-0 1-1 2-3 3-2 4-4", "2-1 1-3"),
    ),
    "denied indefinite object": (
        say(MARY, "buy", Manner(negation=closed.NOT), a_noun(NONE_OF, "apartment", plural=True)),
        (
            "Mary does not buy any apartments .",
            "Marie n' achète pas d' appartements .",
            "0-0 2-1 2-3 3-2 4-4 5-5 6-6",
            "1-1 1-2 1-3",
        ),
    ),
    "adverb after the finite verb": (
        say(SHE, "see", Manner(past=True, adverb=closed.USUALLY[0]), THE_DOG),
        ("She often saw the dog .", "Elle a souvent vu le chien .", "0-0 1-2 2-1 2-3 3-4 4-5 5-6", ""),
    ),
    "object pronoun before the verb": (
        say(THE_MAN, "see", Manner(pronoun=THEM_THERE)),
        ("The man sees them .", "L' homme les voit .", "0-0 1-1 2-3 3-2 4-4", ""),
    ),
    "object pronoun elided and agreed with": (
        say(THE_MAN, "help", Manner(past=True, pronoun=HER_THERE)),
        ("The man helped her .", "L' homme l' a aidée .", "0-0 1-1 2-3 2-4 3-2 4-5", ""),
    ),
    "object pronoun inside negation": (
        say(HE, "find", Manner(past=True, negation=closed.NOT, pronoun=HIM_THERE)),
        ("He did not find him .", "Il ne l' a pas trouvé .", "0-0 1-3 2-1 2-4 3-5 4-2 5-6", "1-1 1-4 3-3"),
    ),
    "dative": (
        say(THE_WOMAN, "give", PAST, A_LETTER, prepositional(closed.TO, a_noun(THE, "boy"))),
        (
            "The woman gave a letter to the boy .",
            "La femme a donné une lettre au garçon .",
            "0-0 1-1 2-2 2-3 3-4 4-5 5-6 6-6 7-7 8-8",
            "",
        ),
    ),
    "dative pronoun without agreement": (
        say(MARY, "send", Manner(past=True, pronoun=TO_HIM), A_LETTER),
        ("Mary sent him a letter .", "Marie lui a envoyé une lettre .", "0-0 1-2 1-3 2-1 3-4 4-5 5-6", ""),
    ),
    "perfect with être": (
        say(a_noun(THE, "girl", plural=True), "arrive", PAST),
        ("The girls arrived .", "Les filles sont arrivées .", "0-0 1-1 2-2 2-3 3-4", ""),
    ),
    "reflexive": (
        say(THE_WOMAN, "stop", PRESENT),
        ("The woman stops .", "La femme s' arrête .", "0-0 1-1 2-2 2-3 3-4", ""),
    ),
    "reflexive, denied, in the past": (
        say(SHE, "stop", NOT_PAST),
        ("She did not stop .", "Elle ne s' est pas arrêtée .", "0-0 1-3 2-1 2-4 3-2 3-5 4-6", "1-1 1-4 3-3"),
    ),
    "passive": (
        say_passive(a_noun(A, "law"), "sign", NOT_PAST, prepositional(closed.BY, country(CANADA))),
        (
            "A law was not signed by Canada .",
            "Une loi n' a pas été signée par le Canada .",
            "0-0 1-1 2-3 2-5 3-2 3-4 4-6 5-7 6-9 7-10",
            "2-2 2-4 4-5 6-8",
        ),
    ),
    "copula": (
        say_is(a_noun(HER, "key", plural=True), "old", degree=closed.TOO),
        ("Her keys are too old .", "Ses clés sont trop vieilles .", "0-0 1-1 2-2 3-3 4-4 5-5", ""),
    ),
    "copula, denied": (
        say_is(THE_HOUSE, "beautiful", NOT_PAST),
        ("The house was not beautiful .", "La maison n' était pas belle .", "0-0 1-1 2-3 3-2 3-4 4-5 5-6", "2-2 2-4"),
    ),
    "coordination is masculine as soon as one is": (
        say(coordinate([MARY, THE_WOMAN, JOHN]), "leave", PAST),
        (
            "Mary , the woman and John left .",
            "Marie , la femme et Jean sont partis .",
            "0-0 1-1 2-2 3-3 4-4 5-5 6-6 6-7 7-8",
            "",
        ),
    ),
    "coordination of women": (
        say(coordinate([MARY, THE_WOMAN]), "leave", PAST),
        ("Mary and the woman left .", "Marie et la femme sont parties .", "0-0 1-1 2-2 3-3 4-4 4-5 5-6", ""),
    ),
    "subject relative": (
        say_is(
            a_noun(
                THE,
                "girl",
                following=clauses.who(active(Agreement(True, False), VERBS["come"], PAST, [])),
                plural=False,
            ),
            "young",
        ),
        ("The girl who came is young .", "La fille qui est venue est jeune .", "0-0 1-1 2-2 3-3 3-4 4-5 5-6 6-7", ""),
    ),
    "object relative makes the participle agree": (
        say_is(
            a_noun(
                THE,
                "car",
                following=clauses.which(say(HE, "sell", Manner(past=True, moved=Agreement(True, True)))),
                plural=True,
            ),
            "red",
        ),
        (
            "The cars that he sold are red .",
            "Les voitures qu' il a vendues sont rouges .",
            "0-0 1-1 2-2 3-3 4-4 4-5 5-6 6-7 7-8",
            "",
        ),
    ),
    "whom": (
        say(
            a_noun(
                THE,
                "woman",
                following=clauses.whom(say(THE_MAN, "see", Manner(past=True, moved=Agreement(True, False)))),
            ),
            "wait",
        ),
        (
            "The woman whom the man saw waits .",
            "La femme que l' homme a vue attend .",
            "0-0 1-1 2-2 3-3 4-4 5-5 5-6 6-7 7-8",
            "",
        ),
    ),
    "where": (
        say_is(a_noun(THE, "house", following=clauses.where(say(MARY, "sleep"))), "old"),
        (
            "The house where Mary sleeps is old .",
            "La maison où Marie dort est vieille .",
            "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7",
            "",
        ),
    ),
    "clauses joined": (
        clauses.joined(say(MARY, "eat"), closed.BECAUSE, say(HE, "sing"), comma=False),
        ("Mary eats because he sings .", "Marie mange parce qu' il chante .", "0-0 1-1 2-2 2-3 3-4 4-5 5-6", ""),
    ),
    "clauses joined with a comma": (
        clauses.joined(say(MARY, "eat"), closed.BUT, say(HE, "sing"), comma=True),
        ("Mary eats , but he sings .", "Marie mange , mais il chante .", "0-0 1-1 2-2 3-3 4-4 5-5 6-6", ""),
    ),
    "condition": (
        clauses.opened(concat(closed.IF, say(HE, "sleep")), say(SHE, "work")),
        ("If he sleeps , she works .", "S' il dort , elle travaille .", "0-0 1-1 2-2 3-3 4-4 5-5 6-6", ""),
    ),
    "si stays before elle": (
        clauses.opened(concat(closed.IF, say(SHE, "sleep")), say(HE, "work")),
        ("If she sleeps , he works .", "Si elle dort , il travaille .", "0-0 1-1 2-2 3-3 4-4 5-5 6-6", ""),
    ),
    "report": (
        say(MARY, "say", PRESENT, clauses.reported(say(HE, "leave", PAST))),
        ("Mary says that he left .", "Marie dit qu' il est parti .", "0-0 1-1 2-2 3-3 4-4 4-5 5-6", ""),
    ),
}

QUESTIONS = {
    "present": (
        do_question(HE, VERBS["sleep"], tail=[closed.SPOTS[0]]),
        ("Does he sleep here ?", "Est-ce qu' il dort ici ?", "0-0 0-1 1-2 2-3 3-4 4-5", "0-3 4-0 4-1"),
    ),
    "past with an interrogative": (
        do_question(MARY, VERBS["leave"], PAST, opening=closed.WHEN),
        ("When did Mary leave ?", "Quand est-ce que Marie est partie ?", "0-0 1-1 1-2 1-4 2-3 3-5 4-6", "3-4 4-1 4-2"),
    ),
    "passive": (
        passive_question(a_noun(THE, "law"), VERBS["sign"]),
        ("Was the law signed ?", "Est-ce que la loi a été signée ?", "0-4 0-5 1-2 2-3 3-6 4-7", "0-0 0-1 4-0 4-1"),
    ),
    "copula": (
        be_question(
            a_noun(THE, "house", plural=True), degree_adjective(ADJECTIVES["old"], Agreement(True, True)), PAST
        ),
        (
            "Were the houses old ?",
            "Est-ce que les maisons étaient vieilles ?",
            "0-4 1-2 2-3 3-5 4-6",
            "0-0 0-1 4-0 4-1",
        ),
    ),
}


@pytest.mark.parametrize("case", PHRASES)
def test_phrase(case: str) -> None:
    phrase, (english, french, sure, possible) = PHRASES[case]
    assert " ".join(phrase.source) == english
    assert " ".join(phrase.target) == french
    assert frozenset(phrase.sure) == links(sure)
    assert frozenset(phrase.possible) == links(possible)


def check_pair(pair: AlignedPair, expected: tuple[str, str, str, str]) -> None:
    english, french, sure, possible = expected
    assert pair.source_text == english
    assert pair.target_text == french
    assert pair.sure == links(sure)
    assert pair.possible == links(sure) | links(possible)


@pytest.mark.parametrize("case", SENTENCES)
def test_statement(case: str) -> None:
    phrase, expected = SENTENCES[case]
    check_pair(clauses.statement(phrase), expected)


@pytest.mark.parametrize("case", QUESTIONS)
def test_question(case: str) -> None:
    phrase, expected = QUESTIONS[case]
    check_pair(clauses.finished(phrase), expected)


def test_deck_pair() -> None:
    check_pair(
        DECK_PAIR,
        (
            "The agreement on the European Economic Area was signed in August 1992 .",
            "L' accord sur la zone économique européenne a été signé en août 1992 .",
            "0-0 1-1 2-2 3-3 4-6 5-5 6-4 7-7 7-8 8-9 9-10 10-11 11-12 12-13",
            "8-8",
        ),
    )
    assert DECK_PAIR.pharaoh() == "0-0 1-1 2-2 3-3 4-6 5-5 6-4 7-7 7-8 8-9 9-10 10-11 11-12 12-13"
