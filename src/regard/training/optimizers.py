"""Optimizers by name, built from a model and a `TrainingConfig`."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn, optim

from regard.core.errors import ConfigError
from regard.core.registry import Registry
from regard.training.config import TrainingConfig

OptimizerBuilder = Callable[[list[dict], TrainingConfig, bool], optim.Optimizer]
"""(parameter groups, config, whether a fused implementation exists) -> optimizer."""

optimizers: Registry[OptimizerBuilder] = Registry("optimizer", hint="Option: training.optimizer.")

# Where torch updates all parameters of AdamW and SGD in one kernel.
FUSED_DEVICES = ("cpu", "cuda", "mps", "xpu")
NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.modules.batchnorm._NormBase)


@optimizers.register("adamw")
def adamw(groups: list[dict], config: TrainingConfig, fused: bool) -> optim.Optimizer:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""
    return optim.AdamW(groups, lr=config.learning_rate, betas=config.betas, eps=config.eps, fused=fused)


@optimizers.register("sgd")
def sgd(groups: list[dict], config: TrainingConfig, fused: bool) -> optim.Optimizer:
    """Stochastic gradient descent with Nesterov momentum."""
    momentum = config.betas[0]
    return optim.SGD(groups, lr=config.learning_rate, momentum=momentum, nesterov=momentum > 0, fused=fused)


def build_optimizer(model: nn.Module, config: TrainingConfig, device_type: str) -> optim.Optimizer:
    """The optimizer for the parameters of `model` that are to be trained."""
    groups = [group for group in parameter_groups(model, config.weight_decay) if group["params"]]
    if not groups:
        raise ConfigError("There is nothing to train: every parameter of the model is frozen.")
    return optimizers[config.optimizer](groups, config, device_type in FUSED_DEVICES)


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Two groups: what decays, and what never does because shrinking it has no use (biases, norms, vectors)."""
    decayed: list[nn.Parameter] = []
    kept: list[nn.Parameter] = []
    seen: set[int] = set()
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if not parameter.requires_grad or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            exempt = parameter.ndim < 2 or name.endswith("bias") or isinstance(module, NORMS)
            (kept if exempt else decayed).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": kept, "weight_decay": 0.0}]
