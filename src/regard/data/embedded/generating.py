"""The corpus: as many different sentences of a split as are asked for, always the same for the same seed.

Which split a sentence belongs to is read off a hash of its English words. So train, valid and test never share
a sentence, whatever their seeds and sizes, and a longer corpus begins with the shorter one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Literal, get_args

from regard.core.errors import ConfigError, UnknownNameError
from regard.data.embedded.deck import DECK_PAIR
from regard.data.embedded.dice import Dice
from regard.data.embedded.pairs import AlignedPair
from regard.data.embedded.telling import Teller

Split = Literal["train", "valid", "test"]

MIN_TOKENS = 3
MAX_TOKENS = 60
"""Limits of both sides; sentences beyond are not made."""

SALT = b"regard embedded corpus"


def split_of(pair: AlignedPair) -> str:
    """One sentence in eight is for validation, one for testing, the rest for training."""
    digest = hashlib.blake2b(pair.source_text.encode(), digest_size=1, key=SALT).digest()
    return {0: "valid", 1: "test"}.get(digest[0] % 8, "train")


def sentences(seed: int, split: Split) -> Iterator[AlignedPair]:
    """All sentences of a split, without end and without repetition."""
    teller = Teller(Dice(f"{split} {seed}"))
    seen = {DECK_PAIR.source}
    while True:
        pair = teller.sentence()
        if split_of(pair) != split or pair.source in seen:
            continue
        shorter, longer = sorted((len(pair.source), len(pair.target)))
        if shorter < MIN_TOKENS or longer > MAX_TOKENS:
            continue
        seen.add(pair.source)
        yield pair


def generate(num_sentences: int, seed: int = 1, split: Split = "train") -> list[AlignedPair]:
    """`num_sentences` different aligned pairs of a split."""
    if split not in get_args(Split):
        raise UnknownNameError("split of the embedded corpus", split, get_args(Split))
    if num_sentences < 1:
        raise ConfigError(f"The embedded corpus was asked for {num_sentences} sentences; ask for at least 1.")
    found = sentences(seed, split)
    return [next(found) for _ in range(num_sentences)]
