"""Writing a sentence with any `Seq2Seq`: greedy, beam search and sampling."""

from regard.tasks.decoding.config import DecodingConfig
from regard.tasks.decoding.hypotheses import Hypothesis
from regard.tasks.decoding.loop import decode, decode_all

__all__ = ["DecodingConfig", "Hypothesis", "decode", "decode_all"]
