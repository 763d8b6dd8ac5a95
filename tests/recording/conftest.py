"""A recording of two sentences whose maps have every form, with axes shorter than the padded batch."""

from __future__ import annotations

import pytest
import torch

from regard.core.axes import Text
from regard.core.bias import OffsetBias
from regard.core.masks import Allow, allow_causal, allow_padding, allow_window
from regard.core.relations import DenseRelation, DotRelation, Relation, SparseRelation
from regard.recording import Recording

EXAMPLES, HEADS, TARGETS, SOURCES, WIDTH = 2, 3, 5, 7, 11


def relations() -> dict[str, Relation]:
    queries = torch.randn(EXAMPLES, HEADS, TARGETS, WIDTH)
    keys = torch.randn(EXAMPLES, HEADS, SOURCES, WIDTH)
    present = torch.arange(SOURCES) < torch.tensor([SOURCES, 4])[:, None]
    pairs = torch.rand(EXAMPLES, 1, TARGETS, SOURCES) < 0.7
    places = torch.randint(SOURCES, (EXAMPLES, HEADS, TARGETS, 1))
    return {
        "decoder.0.cross": DotRelation(queries, keys, 0.3, allow_padding(present)),
        "decoder.1.cross": DenseRelation(torch.randn(EXAMPLES, HEADS, TARGETS, SOURCES).softmax(-1)),
        "decoder.2.cross": SparseRelation(places, torch.ones(EXAMPLES, HEADS, TARGETS, 1), SOURCES),
        "decoder.3.cross": DotRelation(queries, keys[:, :1], 1.0, Allow(pairs=pairs)),
        "decoder.0.attention": DotRelation(queries, queries, 1.0, allow_causal() & allow_window(2)),
        "decoder.1.attention": DotRelation(queries, queries, 1.0, Allow(), OffsetBias(torch.randn(HEADS, 9))),
        "decoder.2.attention": DotRelation(queries, queries, 1.0, Allow(), torch.randn(1, HEADS, TARGETS, TARGETS)),
    }


@pytest.fixture
def recording() -> Recording:
    heard = relations()
    roles = {address: ("target", "source" if "cross" in address else "target") for address in heard}
    recording = Recording(heard, roles, outputs={"translation": ["Il dort .", "Été"]})
    sources = [Text(tuple("abcdefg")), Text(("the", "cat", "sleeps", "."))]
    return recording.label(source=sources, target=[Text(tuple("vwxyz")), Text(("l'", "été", "."))])
