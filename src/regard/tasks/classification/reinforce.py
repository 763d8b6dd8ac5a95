"""REINFORCE with a baseline (Williams 1992), as Mnih et al. 2014 write it: learning where to look without a gradient
through the looking.

    gradient of J = 1/M sum_i sum_t  grad log pi(u_t^i | s_1:t^i) (R^i - b_t)

R^i is the reward of episode i, one for a right answer and zero for a wrong one, given at its end to all of its choices.
The baseline b_t is what was expected of the state before choice t, learned by its squared error; because it does not
depend on the choice, the estimate stays unbiased, and only its variance shrinks.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from regard.core.classifier import Choices


def reinforce(choices: Choices, rewards: Float[Tensor, "batch"]) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Two losses, summed over the batch: one whose gradient is minus the estimate above, and the baselines' error.

    The value of the first says nothing, and is zero.
    """
    advantages = (rewards[:, None] - choices.baselines).detach()
    surrogate = -(choices.log_probabilities * advantages).sum()
    baseline = (rewards[:, None] - choices.baselines).square().sum()
    return surrogate - surrogate.detach(), baseline
