"""The token ids that mean the same in every vocabulary of this house."""

from __future__ import annotations

PAD = 0
UNK = 1
BOS = 2
EOS = 3

SPECIAL_NAMES = ("<pad>", "<unk>", "<bos>", "<eos>")
"""How the specials are written in pictures; in `SPECIAL_NAMES[id]` order."""

NUM_SPECIAL = len(SPECIAL_NAMES)
