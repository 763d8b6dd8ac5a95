"""Small convolutional networks, and what each of them has to keep."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.core.classifier import Classifier, ClassifierOutput
from regard.core.models import ModelConfig, models
from regard.core.tap import taps
from regard.recording import record

CLASSES, CHANNELS = 7, 3


def build(config: ModelConfig, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    model = models[config.kind].build(config, CLASSES, CHANNELS)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("gate"):
                parameter.fill_(0.7)  # at zero, as it starts, nothing behind it is seen
    return model


def pictures(height: int, width: int, count: int = 3) -> Tensor:
    return torch.randn(count, CHANNELS, height, width, generator=torch.Generator().manual_seed(5))


def check_alone_equals_batch(config: ModelConfig, height: int, width: int) -> None:
    model, images = build(config).eval(), pictures(height, width)
    with torch.no_grad():
        together = model(images).logits
        for row in range(len(images)):
            torch.testing.assert_close(model(images[row : row + 1]).logits[0], together[row], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(together[0], together[1], atol=1e-4)


def check_every_parameter_gets_a_gradient(config: ModelConfig, height: int, width: int) -> None:
    model = build(config).train()
    output = model(pictures(height, width))
    torch.nn.functional.cross_entropy(output.logits, torch.tensor([1, 4, 6])).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def check_recording_changes_nothing(config: ModelConfig, height: int, width: int) -> None:
    images = pictures(height, width)
    for training, autocast in ((False, False), (True, False), (True, True)):
        results = []
        for recorded in (False, True):
            model = build(config).train(training)
            torch.manual_seed(1)
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                if recorded:
                    with record(model):
                        value = model(images).logits
                else:
                    value = model(images).logits
            value.float().square().sum().backward()
            results.append([value, *(parameter.grad for parameter in model.parameters()), torch.get_rng_state()])
        for without, with_recording in zip(*results, strict=True):
            assert torch.equal(without, with_recording), (training, autocast)


def check_taps_fit_the_axes(config: ModelConfig, height: int, width: int) -> None:
    """All fire, on the axes that the model states; rows sum to one."""
    model, images = build(config).eval(), pictures(height, width)
    axes = model.axes(height, width)
    roles = {role for tap in taps(model).values() for role in (tap.queries, tap.keys)}
    assert roles == set(axes)
    with record(model) as recording, torch.no_grad():
        model(images)
    recording.label(**{role: [axis] * len(images) for role, axis in axes.items()})
    for address in recording:
        seen = recording[address]
        assert seen.shape[2:] == (len(axes[seen.queries]), len(axes[seen.keys])), address
        sums = seen.weights().sum(dim=-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-5)


def check_output(config: ModelConfig, height: int, width: int) -> None:
    model = build(config)
    output = model(pictures(height, width))
    assert isinstance(model, Classifier)
    assert isinstance(output, ClassifierOutput)
    assert output.logits.shape == (3, CLASSES)
    assert type(config).model_validate_json(config.model_dump_json()) == config


CHECKS = {name.removeprefix("check_"): value for name, value in list(globals().items()) if name.startswith("check_")}
