"""Contracts of picture classifiers; a subject has `build(rate, seed)`, to make one with dropout `rate`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.core.axes import Grid
from regard.core.classifier import ClassifierOutput
from regard.core.errors import RecordingError
from regard.core.tap import taps
from regard.recording import record
from regard.training.weights import gather_model, scatter_model

from .classifier_subjects import BATCH, CLASSES, HEIGHT, WIDTH, loss, pictures

Record = Callable[[nn.Module], Any]


class Subject(Protocol):
    def build(self, rate: float = 0.0, seed: int = 0) -> nn.Module: ...


def check_scores_are_finite(subject: Subject) -> None:
    """Numbers of the right shape from every head, that depend on the picture."""
    model = subject.build().eval()
    with torch.no_grad():
        output, other = model(pictures()), model(pictures(seed=1))
    assert isinstance(output, ClassifierOutput)
    assert output.features.dim() == 2
    assert len(output.features) == BATCH
    for name, scores in {"logits": output.logits, **output.auxiliary}.items():
        assert scores.shape == (BATCH, CLASSES), f"the {name} have the shape {tuple(scores.shape)}"
        assert scores.isfinite().all(), f"the {name} are not finite"
    assert not torch.allclose(output.logits, other.logits, atol=1e-6), "the picture is not looked at"


def check_alone_equals_batch(subject: Subject) -> None:
    model = subject.build().eval()
    images = pictures()
    with torch.no_grad():
        together = model(images)
        for row in range(BATCH):
            alone = model(images[row : row + 1])
            torch.testing.assert_close(together.logits[row : row + 1], alone.logits, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(together.features[row : row + 1], alone.features, rtol=1e-4, atol=1e-5)


def check_every_parameter_gets_a_gradient(subject: Subject) -> None:
    model = subject.build()
    loss(model, pictures()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, f"{name} gets no gradient"
        assert parameter.grad.any(), f"{name} gets no gradient"
        assert parameter.grad.isfinite().all(), f"the gradient of {name} is not finite"


def check_recording_changes_nothing(subject: Subject, record: Record = record) -> None:
    """Bit for bit: scores, gradients and the random numbers that come after; evaluation, training, autocast."""
    for training, autocast in ((False, False), (True, False), (True, True)):
        results = []
        for recorded in (False, True):
            model = subject.build(rate=0.3).train(training)
            if not taps(model):
                return
            torch.manual_seed(1)
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                if recorded:
                    with record(model):
                        output = model(pictures())
                else:
                    output = model(pictures())
            output.logits.float().square().sum().backward()
            results.append([output.logits, output.features, *(p.grad for p in model.parameters())])
            results[-1].append(torch.get_rng_state())
        for without, with_recording in zip(*results, strict=True):
            same = without is None or torch.equal(without, with_recording)
            assert same, f"recording changes what is computed ({training=}, {autocast=})"


def check_every_tap_fires(subject: Subject) -> None:
    """Rows are weights: none is negative, and each sums to one, or to zero for a place that asks nothing."""
    model = subject.build().eval()
    if not taps(model):
        return
    try:
        with record(model) as recording, torch.no_grad():
            model(pictures())
    except RecordingError as error:
        raise AssertionError(str(error)) from error
    for address in taps(model):
        weights = recording[address].weights()
        assert (weights >= 0).all(), f"{address} has a negative weight"
        sums = weights.sum(dim=-1)
        torch.testing.assert_close(sums, (sums > 0.5).float(), rtol=0, atol=1e-5)
        axis = model.axes(HEIGHT, WIDTH)[recording[address].queries]
        asking = len(axis) - len(axis.extras) if isinstance(axis, Grid) else len(axis)
        assert (sums[:, :, -asking:] > 0.5).all(), f"a query of {address} attends to nothing"


def check_axes_fit_the_recording(subject: Subject) -> None:
    """Every role has an axis, as long as what was recorded, whose patches cover the picture."""
    model = subject.build().eval()
    if not taps(model):
        return
    with record(model) as recording, torch.no_grad():
        model(pictures())
    axes = model.axes(HEIGHT, WIDTH)
    for address in taps(model):
        seen = recording[address]
        assert {seen.queries, seen.keys} <= axes.keys(), f"{address} relates unknown axes"
        wanted = (BATCH, seen.shape[1], len(axes[seen.queries]), len(axes[seen.keys]))
        assert seen.shape == wanted, f"{address} is {seen.shape}, its axes are {wanted}"
    for role, axis in axes.items():
        if isinstance(axis, Grid):
            right, bottom = axis.box(len(axis) - 1)[2:]
            assert right >= WIDTH, f"the patches of {role} end before the picture does"
            assert bottom >= HEIGHT, f"the patches of {role} end before the picture does"
    recording.label(**{role: [axis] * BATCH for role, axis in axes.items()})


def check_checkpoints_keep_everything(subject: Subject) -> None:
    """Through a file and back, running statistics too: equal scores."""
    one, other = subject.build(seed=1), subject.build(seed=2).eval()
    with torch.no_grad():
        one(pictures(seed=1))
    one.eval()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        tensors, aliases = gather_model(one)
        save_file(tensors, path)
        loaded = load_file(path)
        scatter_model(other, loaded | {name: loaded[first] for name, first in aliases.items()}, "the file")
    with torch.no_grad():
        expected, got = one(pictures()), other(pictures())
    assert torch.equal(got.logits, expected.logits), "something learned is not in the checkpoint"
    assert torch.equal(got.features, expected.features), "something learned is not in the checkpoint"


def check_evaluation_is_deterministic(subject: Subject) -> None:
    """Dropout is off, no tensor stays on a module, and a call does not depend on the one before."""
    model = subject.build(rate=0.5).eval()
    known = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    with torch.no_grad():
        once = model(pictures()).logits
        model(pictures(seed=1)[:, :, :, : WIDTH - 8])
        again = model(pictures()).logits
    assert torch.equal(once, again), "a call is not repeated"
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            assert not isinstance(value, Tensor) or id(value) in known, f"{path}.{name} is left behind"


def check_autocast_is_close(subject: Subject) -> None:
    """bfloat16 moves the scores by no more than its rounding can, and gradients stay numbers.

    Scores are compared in evaluation: batch norms over the few positions of a small picture's last stage would
    divide by a spread that is itself rounding.
    """
    model = subject.build()
    with torch.autocast("cpu", torch.bfloat16):
        loss(model, pictures()).backward()
        logits = model.eval()(pictures()).logits
    exact = model(pictures()).logits
    assert logits.isfinite().all(), "bfloat16 gives no numbers"
    spread = exact.abs().max()
    assert (logits.float() - exact).abs().max() <= 0.1 * spread + 0.02, "bfloat16 gives other scores"
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters()), "bfloat16 spoils gradients"


def check_one_batch_can_be_learned(subject: Subject) -> None:
    model = subject.build()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    first = last = loss(model, pictures()).detach()
    for _ in range(60):
        optimizer.zero_grad()
        last = loss(model, pictures())
        last.backward()
        optimizer.step()
        if last < 0.1 * first:
            return
    raise AssertionError(f"the loss of one batch went from {first:.2f} to {last:.2f} only")


def checks() -> Iterator[tuple[str, Callable[[Subject], None]]]:
    for name, value in globals().items():
        if name.startswith("check_"):
            yield name.removeprefix("check_"), value


CHECKS = dict(checks())
