import threading
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from regard.core.errors import DataError
from regard.training.feeding import feed, share_of, to_device

from .toy import ToyBatches

CPU = torch.device("cpu")


def fed(batches, plan, **options):
    return list(feed(batches, plan, **{"start": 0, "accumulate": 1, "device": CPU, **options}))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_processes_together_read_each_row_once(size):
    planned = np.arange(100, 113)
    shares = [share_of(planned, rank, size) for rank in range(size)]
    assert sorted(np.concatenate([rows for rows, _ in shares]).tolist()) == planned.tolist()
    assert all(weight == 1 for _, weight in shares)


def test_a_process_without_a_row_keeps_company_at_no_weight():
    rows, weight = share_of(np.array([41, 43]), 2, 3)
    assert (rows.tolist(), weight) == ([41], 0.0)


def test_steps_group_batches_and_the_last_may_be_short():
    batches = ToyBatches(batch_size=7)
    plan = batches.epoch(0)
    steps = fed(batches, plan, accumulate=4)
    assert [len(step) for step in steps] == [4, 2]
    for share, planned in zip([share for step in steps for share in step], plan, strict=True):
        assert share.planned.tolist() == planned.tolist()
        assert share.things == share.planned_things == batches.count(planned)
        assert torch.equal(share.batch.inputs, torch.from_numpy(batches.inputs[planned]))


def test_starting_within_an_epoch_gives_the_rest_of_it():
    batches = ToyBatches(batch_size=7)
    plan = batches.epoch(0)
    late = fed(batches, plan, start=3)
    assert [step[0].planned.tolist() for step in late] == [planned.tolist() for planned in plan[3:]]


def test_things_are_counted_for_the_share_and_for_the_whole():
    batches = ToyBatches(batch_size=7)
    plan = batches.epoch(0)
    (share,) = fed(batches, plan, rank=1, size=2)[0]
    assert share.planned_things == batches.count(plan[0])
    assert share.things == batches.count(plan[0][1::2])


class Failing(ToyBatches):
    def collate(self, indices):
        raise DataError("line 7 is not text")


def test_an_error_of_the_reader_reaches_the_loop():
    with pytest.raises(DataError, match="line 7"):
        fed(Failing(), ToyBatches().epoch(0))


def test_leaving_early_ends_the_reading_thread():
    steps = feed(ToyBatches(), ToyBatches().epoch(0), start=0, accumulate=1, device=CPU)
    next(steps)
    assert any(thread.name.startswith("regard-collate") for thread in threading.enumerate())
    steps.close()
    assert not any(thread.name.startswith("regard-collate") for thread in threading.enumerate())


@dataclass(frozen=True)
class Nested:
    tensor: torch.Tensor
    others: dict
    name: str


Pair = namedtuple("Pair", ["left", "right"])


def test_batches_move_whatever_they_are_made_of():
    meta = torch.device("meta")
    tensor = torch.ones(2)
    batch = Nested(tensor, {"list": [tensor, 3], "pair": Pair(tensor, None), "tuple": (tensor,)}, "name")
    moved = to_device(batch, meta)
    assert isinstance(moved, Nested)
    assert isinstance(moved.others["pair"], Pair)
    tensors = [moved.tensor, moved.others["list"][0], moved.others["pair"].left, moved.others["tuple"][0]]
    assert all(tensor.device == meta for tensor in tensors)
    assert (moved.name, moved.others["list"][1], moved.others["pair"].right) == ("name", 3, None)
    assert to_device(batch, CPU) is batch
