import copy
import math

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError, DataError, TrainingError
from regard.core.task import Loss
from regard.training import RunFolder, Trainer, load_model_weights
from regard.training import loop as loop_module
from regard.training.schedules import inverse_root
from regard.training.stepper import Stepper

from .toy import (
    ToyBatches,
    ToyModel,
    assert_same_weights,
    losses_of,
    toy_loss,
    toy_trainer,
    toy_validate,
)


def test_training_is_what_a_loop_written_by_hand_does(tmp_path):
    trainer = toy_trainer(tmp_path / "run", max_epochs=3, clip_norm=0.5, weight_decay=0.1)
    model, batches = copy.deepcopy(trainer.model), ToyBatches()
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for epoch in range(3):
        for indices in batches.epoch(epoch):
            for group in optimizer.param_groups:
                group["lr"] = 1e-2 * inverse_root(len(losses), 3, None)
            optimizer.zero_grad()
            loss = toy_loss(model, batches.collate(indices))
            mean = loss.total / loss.count
            mean.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            losses.append(mean.item())
    result = trainer.fit()
    assert losses_of(tmp_path / "run") == pytest.approx(losses, abs=1e-6)
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(trainer.model.state_dict()[name], tensor, atol=1e-6, rtol=1e-5)
    assert result.steps == 18
    assert result.epochs == 3.0
    assert result.stopped_because == "max_epochs"
    assert losses[-1] < losses[0]


def test_accumulating_equals_larger_batches(tmp_path):
    parts = toy_trainer(tmp_path / "parts", batch_size=4, accumulate=3)
    whole = toy_trainer(tmp_path / "whole", batch_size=12)
    assert parts.fit().steps == whole.fit().steps == 8
    assert losses_of(tmp_path / "parts") == pytest.approx(losses_of(tmp_path / "whole"), abs=1e-6)
    for name, tensor in parts.model.state_dict().items():
        torch.testing.assert_close(tensor, whole.model.state_dict()[name], atol=1e-6, rtol=1e-5)


def test_the_same_seed_gives_the_same_weights_and_another_one_others(tmp_path):
    first = toy_trainer(tmp_path / "1", dropout_rate=0.4)
    again = toy_trainer(tmp_path / "2", dropout_rate=0.4)
    other = toy_trainer(tmp_path / "3", dropout_rate=0.4, seed=1)
    for trainer in (first, again, other):
        trainer.fit()
    assert_same_weights(first.model, again.model)
    assert not torch.equal(first.model.block.linear.weight, other.model.block.linear.weight)


def test_what_validation_draws_does_not_matter(tmp_path):
    def drawing(model):
        torch.rand(7)
        np.random.random(7)
        return toy_validate(model)

    quiet = toy_trainer(tmp_path / "1", dropout_rate=0.4, validate_every=None)
    noisy = toy_trainer(tmp_path / "2", dropout_rate=0.4, validate_every=0.3, validate=drawing)
    quiet.fit()
    noisy.fit()
    assert_same_weights(quiet.model, noisy.model)


@pytest.mark.parametrize(
    ("options", "steps", "reason"),
    [
        ({"max_steps": 5}, 5, "max_steps"),
        ({"max_epochs": 0.5}, 3, "max_epochs"),
        ({"max_epochs": 1.4}, 9, "max_epochs"),
        ({"max_epochs": None, "max_minutes": 1e-9}, 1, "max_minutes"),
        ({"max_epochs": None, "patience": 2, "validate": lambda model: {"loss": 1.0}}, 18, "patience"),
    ],
)
def test_the_first_budget_to_be_used_up_ends_the_run(tmp_path, options, steps, reason):
    result = toy_trainer(tmp_path / "run", **options).fit()
    assert (result.steps, result.stopped_because, result.signal) == (steps, reason, None)


def validations(path):
    return [line for line in RunFolder.open(path).metrics() if "validation" in line]


@pytest.mark.parametrize(
    ("every", "steps"),
    [(1.0, [6, 12]), (0.5, [3, 6, 9, 12]), (0.3, [2, 4, 6, 8, 9, 11, 12]), (1.5, [9, 12]), (None, [12]), (7.0, [12])],
)
def test_validation_comes_as_often_as_asked_and_at_the_end(tmp_path, every, steps):
    toy_trainer(tmp_path / "run", validate_every=every).fit()
    assert [line["step"] for line in validations(tmp_path / "run")] == steps


@pytest.mark.parametrize(("lower_is_better", "best"), [(True, 3.0), (False, 9.0)])
def test_the_best_is_by_the_metric_and_its_direction(tmp_path, lower_is_better, best):
    values = iter([5.0, math.nan, 3.0, 9.0, 4.0])
    trainer = toy_trainer(
        tmp_path / "run",
        max_epochs=5,
        metric="score",
        lower_is_better=lower_is_better,
        validate=lambda model: {"loss": 0.0, "score": next(values)},
    )
    result = trainer.fit()
    assert result.best == best
    assert result.metrics == {"loss": 0.0, "score": best}
    assert [line["best"] for line in validations(tmp_path / "run")] == [True, False, best == 3, best == 9, False]
    assert result.weights.name == f"step-{result.best_step:08d}"
    assert load_model_weights(ToyModel(), result.weights)["step"] == result.best_step


def test_patience_counts_from_the_last_best(tmp_path):
    values = iter([5.0, 6.0, 4.0, 7.0, 8.0, 1.0])
    result = toy_trainer(
        tmp_path / "run", max_epochs=9, patience=2, validate=lambda model: {"loss": next(values)}
    ).fit()
    assert (result.epochs, result.best, result.stopped_because) == (5.0, 4.0, "patience")


def test_a_metric_that_is_not_measured_names_the_nearest(tmp_path):
    with pytest.raises(ConfigError, match=r"'negativ'.*loss, negative.*'negative'"):
        toy_trainer(tmp_path / "run", metric="negativ").fit()


def test_training_without_validation(tmp_path):
    result = toy_trainer(tmp_path / "run", validate=None).fit()
    assert (result.best, result.best_step, result.metrics) == (None, None, {})
    assert result.weights.name == "step-00000012"
    with pytest.raises(ConfigError, match="nothing to validate on"):
        toy_trainer(tmp_path / "other", validate=None, patience=2)


def test_only_what_is_needed_is_kept(tmp_path):
    values = iter([1.0, 2.0, 3.0, 4.0, 5.0])
    trainer = toy_trainer(
        tmp_path / "run",
        max_epochs=5,
        average_last=2,
        checkpoint_every_steps=4,
        validate=lambda model: {"loss": next(values, 9.0)},
    )
    trainer.fit()
    # The best, the two to be averaged, the last, and the one before that.
    assert trainer.folder.checkpoints.names() == [f"step-{step:08d}" for step in (6, 24, 28, 30)]


def test_averaged_weights_are_the_mean_and_are_measured(tmp_path):
    seen = []

    def validate(model):
        seen.append(model.block.linear.weight.detach().clone())
        return {"loss": 1.0 if len(seen) == 4 else 2.0}

    trainer = toy_trainer(tmp_path / "run", max_epochs=3, average_last=2, validate=validate)
    result = trainer.fit()
    assert len(seen) == 4
    torch.testing.assert_close(seen[3], (seen[1] + seen[2]) / 2)
    assert torch.equal(trainer.model.block.linear.weight, seen[2])
    assert result.averaged_metrics == {"loss": 1.0}
    assert result.weights.name == "averaged"
    other = ToyModel()
    load_model_weights(other, trainer.folder.weights("averaged"))
    assert torch.equal(other.block.linear.weight, seen[3])
    assert RunFolder.open(tmp_path / "run").metrics()[-1]["averaged"] == {"loss": 1.0}


def test_an_average_that_is_worse_is_not_the_best(tmp_path):
    values = iter([2.0, 1.0, 5.0])
    trainer = toy_trainer(tmp_path / "run", average_last=3, validate=lambda model: {"loss": next(values)})
    result = trainer.fit()
    assert result.averaged_metrics == {"loss": 5.0}
    assert result.weights.name == "step-00000012"


class Poisoned(ToyBatches):
    """One example whose inputs are not finite."""

    def __init__(self, example=23, value=math.inf):
        super().__init__()
        self.inputs[example, 2] = value


@pytest.mark.parametrize("looks_every_step", [True, False])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_loss_that_is_not_finite_stops_the_run_and_touches_nothing(
    tmp_path, monkeypatch, looks_every_step, accumulate
):
    made = Stepper.__init__

    def lazily(self, *args, **kwargs):
        made(self, *args, **kwargs)
        self.looks_every_step = looks_every_step

    monkeypatch.setattr(Stepper, "__init__", lazily)
    batches = Poisoned()
    place = next(number for number, indices in enumerate(batches.epoch(0)) if 23 in indices)
    step = place // accumulate
    trainer = toy_trainer(
        tmp_path / "run", batches=batches, accumulate=accumulate, checkpoint_every_steps=1, log_every=100
    )
    clean = toy_trainer(tmp_path / "clean", accumulate=accumulate, max_steps=step)
    clean.fit()
    with pytest.raises(TrainingError) as caught:
        trainer.fit()
    message = str(caught.value)
    assert f"At step {step}, batch {place} of epoch 0, the loss is not finite" in message
    assert ", ".join(map(str, batches.epoch(0)[place].tolist())) in message
    assert f"step-{step:08d}" in message
    assert_same_weights(trainer.model, clean.model)
    saved = ToyModel()
    load_model_weights(saved, trainer.folder.weights("last"))
    assert_same_weights(saved, clean.model)


def test_a_device_that_looks_seldom_still_never_applies_a_bad_step(tmp_path, monkeypatch):
    made = Stepper.__init__

    def lazily(self, *args, **kwargs):
        made(self, *args, **kwargs)
        self.looks_every_step = False

    monkeypatch.setattr(Stepper, "__init__", lazily)
    batches = Poisoned()
    place = next(number for number, indices in enumerate(batches.epoch(0)) if 23 in indices)
    trainer = toy_trainer(tmp_path / "run", batches=batches, log_every=100, validate_every=1.0)
    clean = toy_trainer(tmp_path / "clean", max_steps=place)
    clean.fit()
    with pytest.raises(TrainingError, match=rf"At step {place}, batch {place} of epoch 0,"):
        trainer.fit()
    assert_same_weights(trainer.model, clean.model)


def exploding_loss(model, batch):
    loss = toy_loss(model, batch)
    return Loss((loss.total * 1e-30).sqrt().mul(0.0).sqrt(), loss.count)


def test_a_gradient_that_is_not_finite_stops_it_too(tmp_path):
    trainer = toy_trainer(tmp_path / "run", loss_function=exploding_loss)
    with pytest.raises(TrainingError, match=r"gradient is not finite.*nothing had been saved"):
        trainer.fit()


def test_a_loss_that_counts_something_else_is_a_mistake(tmp_path):
    def miscounting(model, batch):
        return Loss(toy_loss(model, batch).total, 1)

    with pytest.raises(AssertionError, match=r"batches\.count"):
        toy_trainer(tmp_path / "run", loss_function=miscounting).fit()


class Empty(ToyBatches):
    def __init__(self, first_empty):
        super().__init__()
        self.first_empty = first_empty

    def epoch(self, number):
        return super().epoch(number) if number < self.first_empty else []


def test_no_data_is_an_error(tmp_path):
    with pytest.raises(DataError, match="single batch"):
        toy_trainer(tmp_path / "run", batches=Empty(0))
    with pytest.raises(DataError, match="Epoch 1"):
        toy_trainer(tmp_path / "other", batches=Empty(1)).fit()


def test_schedules_that_need_an_end_get_it_or_are_refused(tmp_path):
    toy_trainer(tmp_path / "run", schedule="cosine", max_epochs=1.5, warmup_steps=0).fit()
    rates = [line["learning_rate"] for line in RunFolder.open(tmp_path / "run").metrics() if "loss" in line]
    expected = [1e-2 * (1 + math.cos(math.pi * step / 9)) / 2 for step in range(9)]
    assert rates == pytest.approx(expected)
    with pytest.raises(ConfigError, match="cosine"):
        toy_trainer(tmp_path / "other", schedule="cosine", max_epochs=None, max_minutes=1)


def test_half_precision_keeps_whole_weights(tmp_path):
    seen = set()

    def watching(model, batch):
        seen.add(model.block.linear(batch.inputs).dtype)
        return toy_loss(model, batch)

    result = toy_trainer(tmp_path / "half", precision="bfloat16", loss_function=watching).fit()
    assert result.precision == "bfloat16"
    assert seen == {torch.bfloat16}
    trainer = toy_trainer(tmp_path / "whole", loss_function=watching)
    assert trainer.fit().precision == "float32"
    assert seen == {torch.bfloat16, torch.float32}
    assert {parameter.dtype for parameter in trainer.model.parameters()} == {torch.float32}


def test_logging_averages_over_the_interval(tmp_path):
    toy_trainer(tmp_path / "each", max_steps=7).fit()
    toy_trainer(tmp_path / "some", max_steps=7, log_every=3).fit()
    batches = ToyBatches()
    plan = [indices for epoch in range(2) for indices in batches.epoch(epoch)]
    things = np.array([batches.count(indices) for indices in plan[:7]])
    losses = np.array(losses_of(tmp_path / "each"))
    expected = [np.average(losses[part], weights=things[part]) for part in (slice(0, 3), slice(3, 6), slice(6, 7))]
    assert losses_of(tmp_path / "some") == pytest.approx(expected)
    line = RunFolder.open(tmp_path / "some").metrics()[0]
    assert set(line) == {
        "step", "epoch", "loss", "learning_rate", "gradient_norm", "per_second", "seconds", "parts"
    }  # fmt: skip


def test_standard_output_stays_clean(tmp_path, capsys):
    toy_trainer(tmp_path / "run").fit()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "validation: loss" in captured.err


def test_the_result_and_the_state_tell_time_and_memory(tmp_path):
    result = toy_trainer(tmp_path / "run").fit()
    state = load_model_weights(ToyModel(), result.weights)
    assert 0 < state["seconds"] <= result.seconds < 600
    assert 0 < state["cpu_seconds"] < 600
    assert 10**7 < state["peak_memory"] <= result.peak_memory


def test_threads_are_set(tmp_path):
    toy_trainer(tmp_path / "run", max_steps=1, threads=2).fit()
    assert torch.get_num_threads() == 2


def test_the_default_config_trains(tmp_path):
    folder = RunFolder.create(tmp_path, "toy")
    result = Trainer(ToyModel(), toy_loss, ToyBatches(examples=3), folder=folder, terminal=True).fit()
    assert result.epochs == 10
    assert list(folder.events.iterdir())


def test_saving_goes_by_the_clock_too(tmp_path, monkeypatch):
    now = [0.0]

    monkeypatch.setattr(loop_module.time, "monotonic", lambda: now.__setitem__(0, now[0] + 1.0) or now[0])
    saves = []
    trainer = toy_trainer(tmp_path / "run", validate_every=None, validate=None, checkpoint_every_minutes=0.2)
    save = trainer.folder.checkpoints.save
    trainer.folder.checkpoints.save = lambda name, *rest: saves.append(name) or save(name, *rest)
    trainer.fit()
    assert 3 <= len(saves) < 12
