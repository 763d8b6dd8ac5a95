"""`importance`: a head whose worth is known by hand, a table that adds up, and batches that weigh what they hold."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.attention import MultiHeadSelfAttention
from regard.core.errors import DataError, RecordingError
from regard.core.task import Loss


@pytest.fixture
def model() -> MultiHeadSelfAttention:
    """Head 1 is read by nobody."""
    model = MultiHeadSelfAttention(15, 3, axis="positions")
    with torch.no_grad():
        model.output.weight[:, 5:10] = 0
    return model


def squares(model: nn.Module, batch: Tensor) -> Loss:
    return Loss(model(batch).square().sum(), batch.shape[0])


BATCHES = [torch.randn(size, 7, 15, generator=torch.Generator().manual_seed(size)) for size in (2, 5, 3)]


def test_changes_are_those_of_muting_by_hand(model: MultiHeadSelfAttention) -> None:
    measured = regard.importance(model, iter(BATCHES), squares)
    assert measured.count == 10
    with torch.no_grad():
        whole = float(squares(model, torch.cat(BATCHES)).total) / 10
        assert measured.loss == pytest.approx(whole, rel=1e-5)
        for row in measured.heads:
            without = MultiHeadSelfAttention(15, 3, axis="positions")
            without.load_state_dict(model.state_dict())
            without.output.weight[:, 5 * row.head : 5 * row.head + 5] = 0
            loss = float(squares(without, torch.cat(BATCHES)).total) / 10
            assert row.loss == pytest.approx(loss, rel=1e-5)
            assert row.change == pytest.approx(loss - whole, abs=1e-5)
    assert [row.head for row in measured.heads] == [0, 1, 2]
    assert measured.heads[1].change == 0
    assert measured.heads[1].error == 0
    assert measured.heads[0].error > 0
    assert measured.sorted()[0].change == max(row.change for row in measured.heads)


def test_metrics_that_are_bare_numbers(model: MultiHeadSelfAttention) -> None:
    measured = regard.importance(model, BATCHES[:1], lambda model, batch: model(batch).mean(), taps="att*")
    assert measured.count == 1
    assert measured.heads[0].error is None
    with torch.no_grad():
        assert measured.loss == pytest.approx(float(model(BATCHES[0]).mean()))


def test_the_model_is_as_it_was(model: MultiHeadSelfAttention) -> None:
    model.train()
    model.output.eval()
    regard.importance(model, BATCHES, squares)
    assert model.training
    assert not model.output.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_it_can_be_read(model: MultiHeadSelfAttention) -> None:
    done = []
    measured = regard.importance(model, BATCHES, squares, progress=done.append)
    assert done == [1, 2, 3]
    assert str(measured).splitlines()[1].split() == ["without", "head", "change"]
    assert measured.to_json()["heads"][2] == vars(measured.heads[2])
    assert len(str(measured).splitlines()) == 5


def test_nothing_to_measure(model: MultiHeadSelfAttention) -> None:
    with pytest.raises(DataError, match="not a single batch"):
        regard.importance(model, [], squares)
    with pytest.raises(RecordingError, match="No tap of MultiHeadSelfAttention matches 'x'"):
        regard.importance(model, BATCHES, squares, taps="x")
    with pytest.raises(RecordingError, match="no attention that Regard knows"):
        regard.importance(nn.Linear(15, 15), BATCHES, squares)
