"""Run by `test_processes.py` under `accelerate launch`: small trainings on two processes, in the folder given.

`sharded` as the second argument shards the parameters (FSDP2), which Accelerate offers for GPUs only: it has to
be told that these processes have them. The rest of that path is the same.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from regard.core.errors import DataError, TrainingError
from regard.training import RunFolder
from regard.training.processes import connect, on_main
from training.toy import ToyBatches, toy_loss, toy_trainer

root, sharded = Path(sys.argv[1]), sys.argv[2:] == ["sharded"]
torch.set_num_threads(1)
processes = connect()
if sharded:
    from accelerate.utils import DistributedType

    type(processes)._shared_state["distributed_type"] = DistributedType.MULTI_GPU
rank = processes.process_index
# Batches of six leave one of a single row at the end of an epoch, and two a step leave it a step to itself.
options = {"batch_size": 6, "accumulate": 2, "average_last": 2}


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def weights(model):
    return {name: whole(tensor.detach()) for name, tensor in model.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def steady():
    """From beginning to end, with the result of each process."""
    trainer = toy_trainer(root / "steady", **options)
    result = trainer.fit()
    kind = type(next(trainer.model.parameters())).__name__
    return {"steps": result.steps, "best": result.best, "processes": result.processes, "kind": kind}


def resumed():
    """Stopped and taken up, with dropout, against one from beginning to end."""
    straight = toy_trainer(root / "straight", dropout_rate=0.4, **options)
    straight.fit()
    toy_trainer(root / "stopped", dropout_rate=0.4, **{**options, "max_steps": 5}).fit()
    trainer = toy_trainer(root / "stopped", resume=True, dropout_rate=0.4, **options)
    trainer.fit(resume=True)
    return {"same": same(weights(trainer.model), weights(straight.model))}


def interrupted():
    """The second process alone gets a signal."""
    losses = [0]

    def loss(model, batch):
        losses[0] += 1
        if rank == 1 and losses[0] == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return toy_loss(model, batch)

    result = toy_trainer(root / "interrupted", loss_function=loss, **options).fit()
    return {"steps": result.steps, "reason": result.stopped_because, "signal": result.signal}


def poisoned():
    """An example that only the second process reads is not finite."""
    batches = ToyBatches(batch_size=6)
    planned = batches.epoch(0)[2]
    batches.inputs[planned[3]] = float("inf")
    try:
        toy_trainer(root / "poisoned", batches=batches, **options).fit()
    except TrainingError as error:
        return {"error": str(error), "rows": planned[1::2].tolist()}


def failing():
    """What goes wrong in the main process is known in all of them."""

    def fail():
        raise DataError(f"process {rank}")

    try:
        on_main(fail)
    except DataError as error:
        return {"error": str(error)}


def named():
    return {"path": RunFolder.create(root, "named").path.name}


def halves():
    return {"precision": toy_trainer(root / "halves", precision="bfloat16", **options).fit().precision}


scenes = [steady, resumed, halves] if sharded else [steady, resumed, interrupted, poisoned, failing, named]
seen = {scene.__name__: scene() for scene in scenes}
(root / f"seen-{rank}.json").write_text(json.dumps(seen))
processes.wait_for_everyone()
processes.destroy_process_group()
