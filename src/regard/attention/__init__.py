"""Attention mechanisms, one a file, and the kernels they run on."""

from regard.attention import additive, dot
from regard.attention.additive import AdditiveAttention, ConcatenatedAdditiveAttention
from regard.attention.dot import BilinearAttention, DotProductAttention, ScaledDotProductAttention
from regard.attention.kernels import attend
from regard.attention.mechanism import DotAttention, Mechanism, ScoreAttention, build_mechanism, mechanisms
from regard.attention.multihead import MultiHeadCrossAttention, MultiHeadSelfAttention, SplitHeadSelfAttention

__all__ = [
    "AdditiveAttention",
    "BilinearAttention",
    "ConcatenatedAdditiveAttention",
    "DotAttention",
    "DotProductAttention",
    "Mechanism",
    "MultiHeadCrossAttention",
    "MultiHeadSelfAttention",
    "ScaledDotProductAttention",
    "ScoreAttention",
    "SplitHeadSelfAttention",
    "additive",
    "attend",
    "build_mechanism",
    "dot",
    "mechanisms",
]
