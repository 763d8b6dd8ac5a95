"""Optimizers by name, built from a model and a `TrainingConfig`."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn, optim

from regard.core.errors import ConfigError
from regard.core.registry import Registry
from regard.training.config import TrainingConfig
from regard.training.layers import layer_heights

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
    groups = parameter_groups(model, config.weight_decay, config.layer_decay)
    if not groups:
        raise ConfigError("There is nothing to train: every parameter of the model is frozen.")
    return optimizers[config.optimizer](groups, config, device_type in FUSED_DEVICES)


def parameter_groups(model: nn.Module, weight_decay: float, layer_decay: float = 1.0) -> list[dict]:
    """What decays, and what never does because shrinking it has no use (biases, norms, vectors).

    With a `layer_decay` there are two such groups a layer; `share` is that of the learning rate which a group gets.
    """
    heights = dict.fromkeys(dict(model.named_parameters()), 0) if layer_decay == 1 else layer_heights(model)
    groups: dict[tuple[int, bool], list[nn.Parameter]] = {}
    seen: set[int] = set()
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            if not parameter.requires_grad or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            exempt = parameter.ndim < 2 or name.endswith("bias") or isinstance(module, NORMS)
            height = heights.get(f"{path}.{name}" if path else name, 0)
            groups.setdefault((height, exempt), []).append(parameter)
    return [
        {
            "params": groups[height, exempt],
            "weight_decay": 0.0 if exempt else weight_decay,
            "share": layer_decay**height,
        }
        for height, exempt in sorted(groups)
    ]
