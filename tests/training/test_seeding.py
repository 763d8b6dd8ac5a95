import random

import numpy as np
import torch

from regard.training.seeding import seed_everything, seed_step

CPU = torch.device("cpu")


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), torch.rand(()).item()


def test_a_step_draws_the_same_whatever_came_before():
    seed_step(1, 17, 0, CPU)
    first = draw()
    seed_everything(5)
    draw()
    seed_step(1, 17, 0, CPU)
    assert draw() == first


def test_steps_processes_and_seeds_differ():
    drawn = set()
    for place in [(1, 17, 0), (1, 18, 0), (1, 17, 1), (2, 17, 0), (0, 1, 17)]:
        seed_step(*place, CPU)
        drawn.add(draw())
    assert len(drawn) == 5
