"""The recurrent attention model: what it sees, what it records, what it costs, and how it is rewarded."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from regard.core.axes import Series
from regard.data.pictures.batches import PictureBatch
from regard.data.pictures.form import PictureForm
from regard.layers.glimpse import covered, glimpse, glimpse_relation, in_pixels
from regard.models.glimpses import Glimpses, GlimpsesConfig
from regard.recording import record
from regard.tasks.classification import ClassificationConfig, ClassificationTask

CONFIG = GlimpsesConfig(num_glimpses=3, glimpse_size=4, num_scales=2, glimpse_width=11, width=13)


def model(**options: int) -> Glimpses:
    torch.manual_seed(0)
    return Glimpses(CONFIG.model_copy(update=options), 5, 1)


def test_a_glimpse_is_a_crop_and_its_coarser_surroundings() -> None:
    images = torch.randn(2, 3, 20, 24)
    locations = torch.tensor([[0.0, 0.0], [1.0, -1.0]])
    seen = glimpse(images, locations, 4, 2)
    assert seen.shape == (2, 2, 3, 4, 4)
    assert torch.equal(seen[0, 0], images[0, :, 8:12, 10:14])
    torch.testing.assert_close(seen[0, 1], F.avg_pool2d(images[0, :, 6:14, 8:16], 2))
    corner = F.pad(images[1], (4, 4, 4, 4))
    assert torch.equal(seen[1, 0], corner[:, 2:6, 26:30])
    torch.testing.assert_close(seen[1, 1], F.avg_pool2d(corner[:, 0:8, 24:32], 2))


def test_the_relation_covers_what_is_seen() -> None:
    locations = torch.tensor([[0.0, 0.0], [1.0, -1.0]])
    relation = glimpse_relation(locations, 20, 24, 4, 2)
    assert relation.shape == (2, 2, 1, 480)
    weights = relation.weights().unflatten(3, (20, 24))
    torch.testing.assert_close(weights.sum((3, 4)), torch.ones(2, 2, 1))
    assert torch.equal(weights[0, 0, 0] > 0, F.pad(torch.ones(4, 4, dtype=torch.bool), (10, 10, 8, 8)))
    assert (weights[1, 1, 0] > 0).sum() == 16, "a quarter of the larger square lies inside"
    places, inside = covered(locations, 20, 24, 8)
    assert inside.sum(1).tolist() == [64, 16]
    assert places[0, 0] == 6 * 24 + 8


def test_steps_become_one_relation_with_a_scan_path() -> None:
    one = model().eval()
    images = torch.randn(2, 1, 20, 24)
    with record(one) as recording, torch.no_grad():
        output = one(images)
    seen = recording["sensor"]
    assert seen.shape == (2, 2, 3, 480)
    axis = one.axes(20, 24)["glimpses"]
    assert isinstance(axis, Series)
    assert axis.label(0) == "glimpse 1"
    path = output.drawn["scan_path"]
    assert path.shape == (2, 3, 2)
    assert path[:, 0].tolist() == [[12.0, 10.0]] * 2, "the first glimpse of an evaluation is in the middle"
    weights = seen.weights(example=1, head=0).unflatten(1, (20, 24))
    for step in range(3):
        rows, columns = (weights[step] > 0).nonzero(as_tuple=True)
        assert abs(columns.float().mean() + 0.5 - path[1, step, 0]) <= 1
        assert abs(rows.float().mean() + 0.5 - path[1, step, 1]) <= 1


def test_the_cost_does_not_depend_on_the_picture() -> None:
    one = model().eval()
    costs = []
    for side in (16, 60, 300):
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            one(torch.zeros(2, 1, side, side))
        costs.append(counter.get_total_flops())
    assert costs[0] > 0
    assert len(set(costs)) == 1
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(num_glimpses=6).eval()(torch.zeros(2, 1, 60, 60))
    assert counter.get_total_flops() > 1.8 * costs[0], "each glimpse costs"


def test_pictures_alone_and_together_and_twice() -> None:
    one = model().eval()
    images = torch.randn(3, 1, 20, 24)
    with torch.no_grad():
        together = one(images).logits
        torch.testing.assert_close(one(images[1:2]).logits, together[1:2], rtol=1e-5, atol=1e-6)
        assert torch.equal(one(images).logits, together)


def test_recording_changes_nothing() -> None:
    results = []
    for recorded in (False, True):
        one = model().train()
        torch.manual_seed(1)
        if recorded:
            with record(one):
                output = one(torch.ones(2, 1, 20, 24))
        else:
            output = one(torch.ones(2, 1, 20, 24))
        results.append((output.logits, output.choices.log_probabilities, torch.get_rng_state()))
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_log_probabilities_are_those_of_the_normal_distribution() -> None:
    one = model().train()
    with torch.no_grad():
        one.location.weight.zero_()
        one.location.bias.copy_(torch.tensor([0.3, -0.2]))
    output = one(torch.randn(4, 1, 40, 40))
    mean = torch.tanh(torch.tensor([0.3, -0.2]))
    path = output.drawn["scan_path"][:, 1:] / 20 - 1
    expected = torch.distributions.Normal(mean, one.deviation).log_prob(path).sum(-1)
    torch.testing.assert_close(output.choices.log_probabilities, expected, rtol=1e-3, atol=1e-3)
    assert one.eval()(torch.randn(4, 1, 40, 40)).choices is None


def test_every_parameter_learns_by_its_own_loss() -> None:
    """Locations by the reward, baselines by their error, all else by the classes."""
    one = model().train()
    task = ClassificationTask(ClassificationConfig(), PictureForm(20, 24, (0.5,), (0.5,), tuple("abcde")))
    images = torch.randn(6, 1, 20, 24)
    with torch.no_grad():
        one.head.bias[2] = 100.0  # so that every second answer is right
    loss = task.loss(one, PictureBatch(images, torch.tensor([2, 1, 2, 0, 2, 4])))
    loss.total.backward()
    for name, parameter in one.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name
    assert set(loss.parts) == {"main", "baseline"}
    torch.testing.assert_close(loss.total, loss.parts["main"] + loss.parts["baseline"])
    core = one.core_input.weight.grad.clone()
    one.zero_grad()
    torch.manual_seed(0)
    output = one(images)
    (output.choices.log_probabilities.sum() + output.choices.baselines.sum()).backward()
    assert one.core_input.weight.grad is None, "nothing of this flows into the core"
    assert core.any()


@pytest.mark.parametrize("training", [True, False])
def test_one_glimpse_chooses_nothing(training: bool) -> None:
    assert model(num_glimpses=1).train(training)(torch.zeros(2, 1, 9, 9)).choices is None


def test_places_in_pixels_stay_inside() -> None:
    assert in_pixels(torch.tensor([[-3.0, 0.5]]), 20, 24).tolist() == [[0.0, 15.0]]
