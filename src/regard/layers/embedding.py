"""How embeddings start."""

from __future__ import annotations

from torch import nn


def initialise_embeddings(*embeddings: nn.Embedding) -> None:
    """Small enough that an output tied to them starts near the uniform distribution."""
    for embedding in embeddings:
        nn.init.normal_(embedding.weight, std=embedding.embedding_dim**-0.5)
