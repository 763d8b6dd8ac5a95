"""The embedded corpus as it comes out: sizes, splits, determinism, and French that holds together."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.core.errors import ConfigError
from regard.data.embedded import (
    DECK_PAIR,
    MAX_TOKENS,
    MIN_TOKENS,
    AlignedPair,
    adjectives,
    closed,
    determiners,
    generate,
    nouns,
    verbs,
)
from regard.data.embedded.__main__ import main
from regard.data.embedded.dice import Dice
from regard.data.embedded.french import Agreement, participle
from regard.data.embedded.generating import split_of
from regard.data.embedded.happening import PAST_TIMES
from regard.data.embedded.telling import Teller

FIRST_THOUSAND = "f98cce262a75804e372a7760f4da063b88b5ed5c74e1c09a19a52deddbf02573"


@cache
def training_pairs() -> list[AlignedPair]:
    return generate(10_000)


def digest(pairs: list[AlignedPair]) -> str:
    lines = (
        f"{pair.source_text}\t{pair.target_text}\t{pair.pharaoh()}\t{sorted(pair.possible - pair.sure)}\n"
        for pair in pairs
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


# --- the same for everyone -------------------------------------------------------------------------------------


def test_first_thousand_pairs_are_pinned() -> None:
    assert digest(generate(1000)) == FIRST_THOUSAND


def test_independent_of_the_hash_seed() -> None:
    program = "from regard.data.embedded import generate; [print(p.source_text, p.pharaoh()) for p in generate(50, 3)]"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(min_value=-5, max_value=2**40), short=st.integers(min_value=1, max_value=20))
def test_same_seed_same_pairs_and_longer_begins_with_shorter(seed: int, short: int) -> None:
    longer = generate(40, seed=seed)
    assert generate(short, seed=seed) == longer[:short]
    assert generate(40, seed=seed + 1) != longer


# --- splits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 17])
def test_splits_share_no_sentence_whatever_their_seed(seed: int) -> None:
    train = {pair.source for pair in training_pairs()}
    valid = {pair.source for pair in generate(250, seed=seed, split="valid")}
    test = {pair.source for pair in generate(250, seed=seed, split="test")}
    assert not train & (valid | test)
    assert not valid & test


def test_no_sentence_twice_and_the_deck_held_out() -> None:
    sources = [pair.source for pair in training_pairs()]
    assert len(set(sources)) == len(sources) == 10_000
    assert DECK_PAIR.source not in sources


class Wishes(Dice):
    """Dice that fall as wished wherever one of the wishes is among the options."""

    def __init__(self, seed: str, wishes: set[object]) -> None:
        super().__init__(seed)
        self.wishes = wishes

    def pick(self, options):
        wished = [option for option in options if option in self.wishes]
        return wished[0] if wished else super().pick(options)

    def draw(self, table):
        wished = [option for option in table.options if option in self.wishes]
        return wished[0] if wished else super().draw(table)


def test_the_deck_sentence_can_be_generated_but_is_skipped() -> None:
    month_and_year = PAST_TIMES.options[0]
    noun, sign = nouns.BY_ENGLISH, verbs.BY_BASE["sign"]
    august, year = closed.MONTHS[7], next(each for each in closed.YEARS if each.source == ("1992",))
    words = {noun["agreement"], noun["Area"], sign, (sign, "ruling"), *adjectives.REGIONS[:1], *adjectives.FIELDS[:1]}
    shape = {"document", "done", "both", 1, (determiners.THE,), determiners.THE, august, year, month_and_year}
    teller = Teller(Dice("unused"))
    wishing = Wishes("any", words | shape)
    teller.dice = teller.happening.dice = teller.happening.describer.dice = wishing
    assert DECK_PAIR in itertools.islice((teller.sentence() for _ in itertools.count()), 3000)


# --- size and words --------------------------------------------------------------------------------------------


def test_lengths() -> None:
    lengths = [(len(pair.source), len(pair.target)) for pair in training_pairs()]
    assert min(map(min, lengths)) == MIN_TOKENS == 3
    assert 50 < max(map(max, lengths)) <= MAX_TOKENS == 60
    english = [length for length, _ in lengths]
    assert 10 <= sum(english) / len(english) <= 11.5
    assert sum(5 <= length <= 20 for length in english) > 8_000
    assert sum(length > 30 for length in english) > 200


@pytest.mark.parametrize("side", ["source", "target"])
def test_enough_words_and_none_of_them_rare(side: str) -> None:
    counts = Counter(token for pair in training_pairs() for token in getattr(pair, side))
    assert 400 <= len(counts) <= 650
    assert min(counts.values()) >= 12
    assert all(counts[token] >= 50 for token in getattr(DECK_PAIR, side))


def test_held_out_splits_use_no_other_words() -> None:
    for side in ("source", "target"):
        known = {token for pair in training_pairs() for token in getattr(pair, side)}
        for split in ("valid", "test"):
            assert {token for pair in generate(400, split=split) for token in getattr(pair, side)} <= known


def test_neighbours_of_the_deck_sentence_are_in_training() -> None:
    shape = Counter(
        " ".join(pair.source[index + 1 : index + 4])
        for pair in training_pairs()
        for index, token in enumerate(pair.source[:-3])
        if token == "the" and pair.source[index + 3] in {noun.english for noun in nouns.NOUNS["institution"]}
    )
    assert len(shape) > 80
    assert sum("agreement on the" in pair.source_text for pair in training_pairs()) > 10


# --- pairs and links -------------------------------------------------------------------------------------------


def test_one_english_has_one_french_and_one_alignment() -> None:
    teller = Teller(Dice("many short sentences"))
    seen: dict[tuple[str, ...], AlignedPair] = {}
    repeated = 0
    for _ in range(12_000):
        pair = teller.sentence()
        repeated += pair.source in seen
        assert seen.setdefault(pair.source, pair) == pair
    assert repeated > 50, "too few repetitions for this test to mean anything"


def test_links_are_in_range_and_sure_links_are_possible() -> None:
    for pair in training_pairs():
        assert pair.sure <= pair.possible
        assert all(0 <= i < len(pair.source) and 0 <= j < len(pair.target) for i, j in pair.possible)


def test_every_token_has_a_link() -> None:
    for pair in training_pairs():
        assert {i for i, _ in pair.possible} == set(range(len(pair.source))), pair
        assert {j for _, j in pair.possible} == set(range(len(pair.target))), pair


def test_tokens_and_marks() -> None:
    for pair in (*training_pairs(), DECK_PAIR):
        for tokens in (pair.source, pair.target):
            assert all(token and " " not in token for token in tokens)
            assert tokens[0][0].isupper() or tokens[0][0].isdigit()
            assert tokens[-1] in ".?"
        assert pair.source[-1] == pair.target[-1]
        assert pair.source_text.split(" ") == list(pair.source)
        assert all(token.count("'") == 0 or token.endswith("'") for token in pair.target)


# --- French that holds together --------------------------------------------------------------------------------

VOWELS = tuple("aeiouyâàéèêëîïôöûùœ")
MUTE_H = ("homme", "hôtel", "hôpit", "hiver", "histoire", "honnête")
ELIDED = {"l'": ("le", "la"), "d'": ("de",), "n'": ("ne",), "qu'": ("que",), "s'": ("se", "si")}


def sounds_like_a_vowel(word: str) -> bool:
    return word.lower().startswith((*VOWELS, *MUTE_H))


def test_elision_wherever_it_belongs_and_nowhere_else() -> None:
    always = {"le", "la", "de", "ne", "que", "se", "ce", "ma", "sa", "beau", "nouveau"}
    for pair in training_pairs():
        for word, following in itertools.pairwise(token.lower() for token in pair.target):
            if word in always:
                assert not sounds_like_a_vowel(following), (word, following, pair.target_text)
            if word in ELIDED or word in ("cet", "bel", "nouvel", "vieil"):
                assert sounds_like_a_vowel(following), (word, following, pair.target_text)
            if word == "si":
                assert following not in ("il", "ils")
            assert not (word == "vieux" and following in MASCULINE_SINGULAR_VOWEL), pair.target_text


def test_contraction_is_never_missed() -> None:
    for pair in training_pairs():
        for bigram in itertools.pairwise(token.lower() for token in pair.target):
            assert bigram not in {("de", "le"), ("de", "les"), ("à", "le"), ("à", "les"), ("de", "des"), ("de", "du")}


def test_denied_indefinite_objects_take_de() -> None:
    """ "ne voit pas de chien", never "pas un chien": what follows the negation at once is a direct object."""
    taken = 0
    for pair in training_pairs():
        tokens = list(pair.target)
        for place, token in enumerate(tokens):
            if token in ("pas", "jamais", "plus"):
                following = tokens[place + 1 + (tokens[place + 1] in PARTICIPLES)]
                assert following not in ("un", "une"), pair.target_text
                taken += following in ("de", "d'")
    assert taken > 60


Feature = tuple[bool, bool]  # feminine, plural
BOTH = (False, True)
NOUN_FEATURES: dict[str, set[Feature]] = defaultdict(set)
for _noun in nouns.BY_ENGLISH.values():
    for _plural in BOTH:
        NOUN_FEATURES[_noun.in_french(_plural)].add((_noun.feminine, _plural))
MASCULINE_SINGULAR_VOWEL = {
    noun for noun, features in NOUN_FEATURES.items() if features == {(False, False)} and sounds_like_a_vowel(noun)
}
ADJECTIVE_FEATURES: dict[str, set[Feature]] = defaultdict(set)
for _adjective in adjectives.BY_ENGLISH.values():
    for _feminine, _plural in itertools.product(BOTH, BOTH):
        ADJECTIVE_FEATURES[_adjective.in_french(Agreement(_feminine, _plural))].add((_feminine, _plural))
    if _adjective.masculine_before_vowel:
        ADJECTIVE_FEATURES[_adjective.masculine_before_vowel].add((False, False))
FRONT = {
    adjective.in_french(Agreement(feminine, plural), following)
    for adjective in adjectives.BEFORE
    for feminine, plural, following in itertools.product(BOTH, BOTH, ("homme", "chat"))
}
SINGULAR_M, SINGULAR_F = {(False, False)}, {(True, False)}
PLURALS, SINGULARS = {(False, True), (True, True)}, {(False, False), (True, False)}
DETERMINERS: dict[str, set[Feature]] = {
    **dict.fromkeys(("le", "un", "ce", "cet", "du", "au"), SINGULAR_M),
    **dict.fromkeys(("la", "une", "cette", "ma", "sa"), SINGULAR_F),
    **dict.fromkeys(("l'", "notre", "leur", "chaque", "mon", "son"), SINGULARS),
    **dict.fromkeys(("les", "des", "ces", "mes", "ses", "nos", "leurs", "aux", "plusieurs"), PLURALS),
    **dict.fromkeys(("deux", "trois", "quatre", "cinq", "six", "huit", "dix"), PLURALS),
}


def test_determiners_and_adjectives_agree_with_their_noun() -> None:
    checked = 0
    for pair in training_pairs():
        tokens = [token.lower() for token in pair.target]
        for place, token in enumerate(tokens):
            if token not in NOUN_FEATURES:
                continue
            modifies = place and tokens[place - 1] in ("de", "d'") and tokens[place - 2] in NOUN_FEATURES
            if modifies:
                continue  # pont de pierre, or what is owned: its own determiner tells
            features = set(NOUN_FEATURES[token])
            before = place - 1
            while tokens[before] in FRONT or tokens[before] == "très":
                features &= ADJECTIVE_FEATURES.get(tokens[before], features)
                before -= 1
            if tokens[before] in DETERMINERS:
                features &= DETERMINERS[tokens[before]]
                checked += 1
            after = place + 1
            if tokens[after] in ("de", "d'") and tokens[after + 1] in {french for _, french in nouns.COMPOUNDS}:
                after += 2
            while tokens[after] in ADJECTIVE_FEATURES or tokens[after] == "très":
                features &= ADJECTIVE_FEATURES.get(tokens[after], features)
                after += 1
            assert features, (token, pair.target_text)
    assert checked > 15_000


PARTICIPLES: dict[str, set[Feature]] = defaultdict(set)
for _verb in verbs.BY_BASE.values():
    for _feminine, _plural in itertools.product(BOTH, BOTH):
        PARTICIPLES[participle(_verb.participle, Agreement(_feminine, _plural))].add((_feminine, _plural))


def test_participles_after_être_agree_with_a_subject_that_stands_before_them() -> None:
    """Subjects of two words, such as "la lettre", then any auxiliary group, then the participle."""
    group = {
        "n'",
        "ne",
        "s'",
        "se",
        "a",
        "ont",
        "est",
        "sont",
        "été",
        "pas",
        "jamais",
        "souvent",
        "toujours",
        "parfois",
        "déjà",
    }
    checked = 0
    for pair in training_pairs():
        tokens = [token.lower() for token in pair.target]
        if tokens[0] not in DETERMINERS or tokens[1] not in NOUN_FEATURES:
            continue
        end = next(place for place in itertools.count(2) if tokens[place] not in group)
        if not {"été", "est", "sont"} & set(tokens[2:end]) or tokens[end] not in PARTICIPLES:
            continue
        features = NOUN_FEATURES[tokens[1]] & DETERMINERS[tokens[0]] & PARTICIPLES[tokens[end]]
        assert features, pair.target_text
        assert all(plural for _, plural in features) == bool({"ont", "sont"} & set(tokens[2:end])), pair.target_text
        checked += 1
    assert checked > 500


# --- the grammar that was promised ------------------------------------------------------------------------------

ENGLISH_NOUNS = {form for noun in nouns.BY_ENGLISH.values() for form in (noun.english, noun.english_plural)}
ENGLISH_ADJECTIVES = set(adjectives.BY_ENGLISH)
ENGLISH_MODIFIERS = {english for english, _ in nouns.COMPOUNDS}


def turned_round(pair: AlignedPair, first: set[str], second: set[str]) -> list[tuple[int, int]]:
    """Where two neighbours of these kinds come the other way about in French: the places of the first and second."""
    place = dict(sorted(pair.sure, reverse=True))
    neighbours = enumerate(itertools.pairwise(pair.source))
    found = [index for index, (left, right) in neighbours if left in first and right in second]
    return [(place[i], place[i + 1]) for i in found if i in place and i + 1 in place and place[i] > place[i + 1]]


def agrees(pair: AlignedPair) -> bool:
    return any((False, False) not in ADJECTIVE_FEATURES.get(token, {(False, False)}) for token in pair.target)


def puts_adjective_behind_noun(pair: AlignedPair) -> bool:
    return bool(turned_round(pair, ENGLISH_ADJECTIVES, ENGLISH_NOUNS))


def turns_compound_round(pair: AlignedPair) -> bool:
    turned = turned_round(pair, ENGLISH_MODIFIERS, ENGLISH_NOUNS)
    return any(first == second + 2 and pair.target[second + 1] in ("de", "d'") for first, second in turned)


def negates_around_verb(pair: AlignedPair) -> bool:
    tokens = [token.lower() for token in pair.target]
    return any(
        token in ("ne", "n'") and {"pas", "plus", "jamais"} & set(tokens[place + 2 : place + 5])
        for place, token in enumerate(tokens)
    )


def puts_pronoun_before_verb(pair: AlignedPair) -> bool:
    actions = {form for verb in verbs.BY_BASE.values() for form in (verb.base, verb.third, verb.past)}
    return bool(turned_round(pair, actions, {"him", "her", "them"}))


def has_participle(pair: AlignedPair) -> bool:
    return bool(set(PARTICIPLES) & set(pair.target))


def has_relative_clause(pair: AlignedPair) -> bool:
    words = {(pair.source[i], pair.target[j]) for i, j in pair.sure}
    return bool({("who", "qui"), ("that", "qui"), ("whom", "que"), ("whom", "qu'"), ("where", "où")} & words)


def coordinates(pair: AlignedPair) -> bool:
    return ("and", "et") in {(pair.source[i], pair.target[j]) for i, j in pair.sure}


def reads_name_backwards(pair: AlignedPair) -> bool:
    """ "European Economic Area", "zone économique européenne"."""
    institutions = {noun.english for noun in nouns.NOUNS["institution"]}
    place = dict(pair.sure)
    return any(
        place[index - 2] == place[index - 1] + 1 == place[index] + 2
        for index, word in enumerate(pair.source)
        if word in institutions and {index - 2, index - 1} <= set(place)
    )


@pytest.mark.parametrize(
    ("present", "at_least"),
    [
        (agrees, 2000),
        (puts_adjective_behind_noun, 1500),
        (turns_compound_round, 500),
        (negates_around_verb, 800),
        (puts_pronoun_before_verb, 250),
        (has_participle, 4000),
        (has_relative_clause, 400),
        (coordinates, 500),
        (reads_name_backwards, 400),
    ],
)
def test_every_part_of_the_grammar_is_met_often(present: Callable[[AlignedPair], bool], at_least: int) -> None:
    assert sum(map(present, training_pairs())) >= at_least


def test_all_of_the_deck_sentence_is_in_the_grammar() -> None:
    assert reads_name_backwards(DECK_PAIR)
    assert has_participle(DECK_PAIR)
    assert not negates_around_verb(DECK_PAIR)


# --- errors and the command line -------------------------------------------------------------------------------


@pytest.mark.parametrize("num_sentences", [0, -3])
def test_a_wrong_number_is_refused(num_sentences: int) -> None:
    with pytest.raises(ConfigError, match=f"asked for {num_sentences} sentences"):
        generate(num_sentences)


def test_an_unknown_split_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'train'"):
        generate(5, split="trian")


def test_prints_pharaoh_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--num", "4", "--split", "valid", "--seed", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = generate(4, seed=5, split="valid")
    assert lines == [f"{pair.source_text} ||| {pair.target_text} ||| {pair.pharaoh()}" for pair in expected]


def test_writes_three_parallel_files(tmp_path: Path) -> None:
    assert main(["--num", "7", "--out", str(tmp_path / "deep" / "corpus")]) == 0
    columns = [
        (tmp_path / "deep" / f"corpus.{name}").read_text(encoding="utf-8").splitlines()
        for name in ("en", "fr", "align")
    ]
    assert list(zip(*columns, strict=True)) == [
        (pair.source_text, pair.target_text, pair.pharaoh()) for pair in generate(7)
    ]


def test_command_line_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--num", "0"]) == 2
    assert "at least 1" in capsys.readouterr().err
    (tmp_path / "file").write_text("in the way")
    assert main(["--num", "1", "--out", str(tmp_path / "file" / "corpus")]) == 1
    assert "cannot be written" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        main(["--num", "many"])
    assert stopped.value.code == 2


def test_split_is_a_matter_of_content() -> None:
    shares = Counter(split_of(pair) for pair in training_pairs())
    assert shares == {"train": 10_000}
    assert all(split_of(pair) == "test" for pair in generate(20, seed=99, split="test"))
