"""The special token ids, under the name that readers of text look for."""

from regard.core.special import BOS, EOS, NUM_SPECIAL, PAD, SPECIAL_NAMES, UNK

__all__ = ["BOS", "EOS", "NUM_SPECIAL", "PAD", "SPECIAL_NAMES", "UNK"]
