"""Dot products as scores: plain (Luong, Pham and Manning 2015), scaled (Vaswani et al. 2017), bilinear (Luong).

    s_jk = q_j . k_k            dot: no parameters, sizes must be equal
    s_jk = q_j . k_k / sqrt(d)  scaled dot: keeps the variance of the scores when d grows
    s_jk = q_j W k_k            bilinear ("general" in Luong's paper): a matrix between the two

All three run on the fused kernels: a bilinear score is a dot product with projected queries.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from regard.attention.mechanism import DotAttention, mechanisms, require_equal_widths
from regard.core.linear import Linear


@mechanisms.register("dot")
class DotProductAttention(DotAttention):
    """q . k, without parameters; queries and keys must be equally wide (Luong)"""

    def __init__(self, queries_width: int, keys_width: int, width: int) -> None:
        require_equal_widths("dot", queries_width, keys_width)
        super().__init__(queries_width, keys_width, width)


@mechanisms.register("scaled_dot")
class ScaledDotProductAttention(DotAttention):
    """q . k / sqrt(d), without parameters; queries and keys must be equally wide (Vaswani)"""

    scale = None  # the kernel's own 1 / sqrt(d)

    def __init__(self, queries_width: int, keys_width: int, width: int) -> None:
        require_equal_widths("scaled_dot", queries_width, keys_width)
        super().__init__(queries_width, keys_width, width)


@mechanisms.register("bilinear")
class BilinearAttention(DotAttention):
    """q W k, with a matrix between query and key (Luong's "general")"""

    def __init__(self, queries_width: int, keys_width: int, width: int) -> None:
        super().__init__(queries_width, keys_width, width)
        self.between = Linear(queries_width, keys_width, bias=False)

    def project(
        self, queries: Float[Tensor, "batch heads queries queries_width"]
    ) -> Float[Tensor, "batch heads queries keys_width"]:
        return self.between(queries)
