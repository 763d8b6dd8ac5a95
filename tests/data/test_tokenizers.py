"""Tokenizers: text comes back, specials cannot be forged, training repeats itself, damage is noticed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import CheckpointError, ConfigError, DataError, UnknownNameError
from regard.data.special import BOS, EOS, NUM_SPECIAL, PAD, UNK
from regard.data.text import normalise
from regard.data.tokenizers import Tokenizer, WordTokenizer, tokenizer_kinds, train_tokenizer

TEXTS = [
    "A man, in red.",
    "Two men are playing near a playground!",
    "Don't play: the player's ball isn't red...",
    "L'homme joue près d'un café en 1992.",
    "Zwei Männer spielen (draußen) auf dem Spielplatz; Straßenfußball.",
    "▁ is a sign like any other, and so are <pad>, <unk>, <bos> and <eos>.",
] * 3
KINDS = list(tokenizer_kinds)
TRAINED = {kind: train_tokenizer(kind, TEXTS, 211) for kind in KINDS}

kinds = pytest.mark.parametrize("kind", KINDS)
known_words = st.lists(st.sampled_from(sorted({word for text in TEXTS for word in text.split()})))
known_characters = st.text(st.sampled_from(sorted({letter for text in TEXTS for letter in text})))


@kinds
@given(words=known_words, blanks=st.sampled_from([" ", "  ", "\t", "\u00a0", " \n "]))
def test_known_words_come_back(kind: str, words: list[str], blanks: str) -> None:
    tokenizer = TRAINED[kind]
    assert tokenizer.decode(tokenizer.encode(blanks.join(words))) == normalise(" ".join(words))


@pytest.mark.parametrize("kind", ["characters", "bpe"])
@given(text=known_characters)
def test_known_characters_come_back(kind: str, text: str) -> None:
    tokenizer = TRAINED[kind]
    ids = tokenizer.encode(text)
    assert UNK not in ids
    assert tokenizer.decode(ids) == normalise(text)


@kinds
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_has_ids_and_no_special_but_unknown(kind: str, text: str) -> None:
    ids = TRAINED[kind].encode(text)
    assert all(0 <= token < TRAINED[kind].size for token in ids)
    assert not {PAD, BOS, EOS} & set(ids)
    assert bool(ids) == bool(normalise(text))


@kinds
def test_written_specials_are_text(kind: str) -> None:
    tokenizer = TRAINED[kind]
    ids = tokenizer.encode("<pad> <unk>, \n<eos> \x00 <bos>")
    assert not {PAD, BOS, EOS} & set(ids)
    if kind != "words":
        assert UNK not in tokenizer.encode("<unk>")
        assert tokenizer.decode(tokenizer.encode("<pad> <unk>")) == "<pad> <unk>"


@kinds
def test_what_was_not_seen_is_unknown_and_specials_leave_nothing(kind: str) -> None:
    tokenizer = TRAINED[kind]
    ids = tokenizer.encode("A ☃ man,")
    assert ids.count(UNK) == 1
    assert tokenizer.decode([BOS, *ids, EOS, PAD, PAD]) == "A <unk> man,"
    assert tokenizer.decode([]) == ""


@kinds
@given(ids=st.lists(st.integers(0, 210)))
def test_words_of_any_ids_are_those_of_their_text(kind: str, ids: list[int]) -> None:
    tokenizer = TRAINED[kind]
    ids = [token % tokenizer.size for token in ids]
    words = tokenizer.words(ids)
    assert len(words) == len(tokenizer.tokens(ids)) == len(ids)
    decoded = tokenizer.decode(ids).split()
    assert [word == -1 for word in words if decoded] == [token in (PAD, BOS, EOS) for token in ids if decoded]
    assert sorted(set(words) - {-1}) == list(range(len(decoded)))
    for index, word in enumerate(decoded):
        mine = [token for token, belongs in zip(ids, words, strict=True) if belongs == index]
        assert tokenizer.decode(mine) == word


def test_words_and_labels_of_a_sentence() -> None:
    tokenizer = train_tokenizer("bpe", ["the play"] * 9 + ["bing king ming wing"] * 5, 28)
    ids = tokenizer.encode("the playing, ☃ the")
    labels = ["<bos>", "the", "play", "·ing", "<unk>", "␣", "<unk>", "the", "<eos>"]
    assert tokenizer.tokens([BOS, *ids, EOS]) == labels
    assert tokenizer.words([BOS, *ids, EOS]) == [-1, 0, 1, 1, 1, 2, 2, 3, -1]
    characters = TRAINED["characters"]
    assert characters.tokens(characters.encode("A m☃")) == ["A", "␣", "m", "<unk>"]
    assert characters.words(characters.encode("A m☃")) == [0, 1, 1, 1]


def test_pieces_do_not_span_words_numbers_and_signs() -> None:
    tokenizer = train_tokenizer("bpe", ["red. red. red. x1 x1 x1 l'eau l'eau"] * 7, 100)
    pieces = tokenizer.tokens(tokenizer.encode("red. x1 l'eau"))
    assert pieces == ["red", ".", "x", "·1", "l", "'", "eau"]


@kinds
def test_a_batch_equals_one_by_one(kind: str) -> None:
    texts = [*TEXTS, "", "☃ new"]
    assert TRAINED[kind].encode_batch(texts) == [TRAINED[kind].encode(text) for text in texts]


@kinds
def test_saved_and_loaded_is_the_same(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "run" / "tokenizer.json"
    TRAINED[kind].save(path)
    again = Tokenizer.load(path)
    assert type(again) is type(TRAINED[kind])
    assert again.fingerprint == TRAINED[kind].fingerprint
    assert again.encode_batch(TEXTS) == TRAINED[kind].encode_batch(TEXTS)


@kinds
def test_training_repeats_itself_in_another_process(kind: str) -> None:
    program = (
        "import sys, json; from regard.data.tokenizers import train_tokenizer\n"
        "texts = json.loads(sys.argv[2]); print(train_tokenizer(sys.argv[1], texts, 61).fingerprint)"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", program, kind, json.dumps(TEXTS)],
            env={"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads, "PATH": ""},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()
        for seed, threads in (("1", "1"), ("2", "3"))
    }
    assert prints == {train_tokenizer(kind, TEXTS, 61).fingerprint}


@kinds
def test_a_generator_serves_as_well_as_a_list(kind: str) -> None:
    assert (
        train_tokenizer(kind, (text for text in TEXTS), 61).fingerprint == train_tokenizer(kind, TEXTS, 61).fingerprint
    )


def test_the_most_frequent_get_an_id_and_ties_go_by_the_alphabet() -> None:
    words = train_tokenizer("words", ["c b a", "c b", "d"], NUM_SPECIAL + 3)
    assert words.tokens(range(words.size)) == ["<pad>", "<unk>", "<bos>", "<eos>", "b", "c", "a"]
    frequent = train_tokenizer("words", ["c b a", "c b", "d"], 1000, min_count=2)
    assert frequent.tokens(range(NUM_SPECIAL, frequent.size)) == ["b", "c"]


def test_a_byte_pair_vocabulary_keeps_to_its_size_and_drops_only_the_rarest_characters() -> None:
    rare = [chr(0x4E00 + number) for number in range(97)]
    texts = ["abc abd"] * 40_000 + rare
    tokenizer = train_tokenizer("bpe", texts, 61)
    assert tokenizer.size <= 61
    assert tokenizer.decode(tokenizer.encode("dab")) == "dab"
    assert sum(UNK in tokenizer.encode(letter) for letter in rare) > 0


@kinds
@pytest.mark.parametrize("size", [-1, 0, NUM_SPECIAL])
def test_a_size_without_room_is_refused(kind: str, size: int) -> None:
    with pytest.raises(ConfigError, match="too small"):
        train_tokenizer(kind, TEXTS, size)


def test_a_size_below_the_alphabet_is_refused_with_one_that_is_enough() -> None:
    with pytest.raises(ConfigError, match="take at least 8, better"):
        train_tokenizer("bpe", ["abc"] * 5, 7)
    assert train_tokenizer("bpe", ["abc"] * 5, 8).size == 8


@kinds
@pytest.mark.parametrize("texts", [[], ["", " \n"]])
def test_no_text_is_refused(kind: str, texts: list[str]) -> None:
    with pytest.raises(DataError, match="without any text"):
        train_tokenizer(kind, texts, 100)


def test_a_min_count_that_nothing_reaches_is_refused() -> None:
    with pytest.raises(ConfigError, match="occurs 5 times"):
        train_tokenizer("words", ["a a b"], 100, min_count=5)


def test_an_unknown_kind_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'words'"):
        train_tokenizer("word", TEXTS, 100)


@kinds
def test_damaged_files_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    TRAINED[kind].save(path)
    whole = path.read_text(encoding="utf-8")
    damages = {
        whole[: len(whole) // 2]: "it is not JSON",
        whole.replace(TRAINED[kind].pieces[-1], "other"): "fingerprint",
        whole.replace('"version": 1', '"version": 2'): "version 2",
        "[]": "not a tokenizer file",
        "{}": "not a tokenizer file",
    }
    for text, sentence in damages.items():
        assert text != whole
        path.write_text(text, encoding="utf-8")
        with pytest.raises(CheckpointError, match=sentence):
            Tokenizer.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CheckpointError, match="not JSON"):
        Tokenizer.load(path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        Tokenizer.load(tmp_path / "missing.json")


def test_a_registered_kind_is_trained_saved_and_loaded(tmp_path: Path) -> None:
    class LowerCase(Tokenizer):
        kind = "lower"

        @classmethod
        def train(cls, texts, size, min_count):
            return cls(WordTokenizer.train([text.lower() for text in texts], size, min_count).pieces[NUM_SPECIAL:])

        def encode(self, text):
            return [self._ids.get(f" {word}", UNK) for word in normalise(text.lower()).split()]

    tokenizer_kinds.register("lower")(LowerCase)
    try:
        tokenizer = train_tokenizer("lower", ["Red ball"], 100)
        tokenizer.save(tmp_path / "t.json")
        loaded = Tokenizer.load(tmp_path / "t.json")
        assert loaded.decode(loaded.encode("BALL red")) == "ball red"
    finally:
        tokenizer_kinds.remove("lower")
