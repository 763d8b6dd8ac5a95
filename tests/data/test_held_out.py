"""Held-out sentences: a fixed number, chosen by content alone."""

from __future__ import annotations

import random

import pytest

from regard.core.errors import DataError
from regard.data import held_out
from regard.data.held_out import HeldOut

SENTENCES = [f"sentence number {number}" for number in range(4999)]


def members(split: HeldOut, part: str) -> set[str]:
    return {sentence for sentence in SENTENCES if split.part_of(sentence) == part}


def test_one_percent_each_and_disjoint() -> None:
    split = HeldOut(SENTENCES, ("valid", "test"))
    assert [len(members(split, part)) for part in ("valid", "test", "train")] == [49, 49, 4901]
    assert not members(split, "valid") & members(split, "test")


def test_order_and_repetition_do_not_matter() -> None:
    split = HeldOut(SENTENCES, ("valid", "test"))
    mixed = SENTENCES.copy()
    random.Random(1).shuffle(mixed)
    assert members(HeldOut(mixed, ("valid", "test")), "test") == members(split, "test")
    assert members(HeldOut(mixed, ("valid",)), "valid") == members(split, "valid")
    repeated = HeldOut([*mixed, *[mixed[0]] * 50], ("valid", "test"))
    assert members(repeated, "valid") >= members(split, "valid")


def test_the_choice_is_pinned() -> None:
    split = HeldOut(SENTENCES, ("test",))
    assert sorted(members(split, "test"))[:3] == [
        "sentence number 1100",
        "sentence number 1163",
        "sentence number 1261",
    ]


def test_a_large_corpus_gives_no_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "MOST", 7)
    monkeypatch.setattr(held_out, "_BLOCK", 101)
    split = HeldOut(iter(SENTENCES), ("valid", "test"))
    assert [len(members(split, part)) for part in ("valid", "test")] == [7, 7]


@pytest.mark.parametrize("sentences", [[], ["a"], ["a", "b"], ["a", "b"] * 500])
def test_too_few_different_sentences_are_refused(sentences: list[str]) -> None:
    with pytest.raises(DataError, match="too few to hold some out for valid and test"):
        HeldOut(sentences, ("valid", "test"))


def test_three_sentences_are_enough() -> None:
    split = HeldOut(["a", "b", "c"], ("valid", "test"))
    assert sorted(split.part_of(sentence) for sentence in "abc") == ["test", "train", "valid"]
