"""Run by `test_resume.py`: trains, and is killed by SIGKILL between the two batches of a step."""

import os
import signal
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from training.test_resume import OPTIONS
from training.toy import toy_loss, toy_trainer

torch.set_num_threads(1)
losses_left = int(sys.argv[2])


def deadly_loss(model, batch):
    global losses_left
    losses_left -= 1
    if losses_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return toy_loss(model, batch)


toy_trainer(Path(sys.argv[1]), validate=None, loss_function=deadly_loss, **OPTIONS).fit()
