import pytest
import torch
from torch import nn

from regard.core.errors import CheckpointError
from regard.training.optimizers import build_optimizer
from regard.training.weights import gather_model, gather_optimizer, scatter_model, scatter_optimizer

from .toy import ToyModel, assert_same_weights, toy_config


def expanded(model):
    tensors, aliases = gather_model(model)
    return {**tensors, **{name: tensors[original] for name, original in aliases.items()}}


def test_a_tied_tensor_is_kept_once_and_comes_back_tied():
    model = ToyModel()
    tensors, aliases = gather_model(model)
    assert aliases == {"heads.2.weight": "heads.0.weight"}
    assert "heads.2.weight" not in tensors
    other = ToyModel()
    scatter_model(other, expanded(model), "file")
    assert_same_weights(model, other)
    assert other.heads[2].weight is other.heads[0].weight


def test_views_of_one_storage_get_memory_of_their_own():
    class Halves(nn.Module):
        def __init__(self):
            super().__init__()
            both = torch.arange(14.0).view(2, 7)
            self.upper, self.lower = nn.Parameter(both[0]), nn.Parameter(both[1])

    tensors, aliases = gather_model(Halves())
    assert aliases == {}
    assert {tensor.untyped_storage().nbytes() for tensor in tensors.values()} == {28}
    assert tensors["lower"].tolist() == list(range(7, 14))


def test_untied_weights_do_not_slip_into_a_tied_model():
    with pytest.raises(CheckpointError, match=r"'heads.0.weight' and 'heads.2.weight'.*without tying"):
        scatter_model(ToyModel(), expanded(ToyModel(tied=False)), "file")


def test_a_wrong_shape_is_named_with_both_shapes():
    with pytest.raises(
        CheckpointError, match=r"'block.linear.weight' has shape \[13, 5\], but the model's has \[11, 5\]"
    ):
        scatter_model(ToyModel(), expanded(ToyModel(width=13)), "file")


def test_a_renamed_key_is_named_with_its_likely_counterpart():
    tensors = expanded(ToyModel())
    tensors["block.lin.weight"] = tensors.pop("block.linear.weight")
    with pytest.raises(CheckpointError) as caught:
        scatter_model(ToyModel(), tensors, "model.safetensors")
    message = str(caught.value)
    assert "'block.linear.weight' of the model is not in the file (perhaps it is 'block.lin.weight')" in message
    assert "'block.lin.weight' is not in the model (perhaps it is 'block.linear.weight')" in message


def test_a_refused_file_leaves_the_model_as_it_was():
    model, before = ToyModel(), None
    before = expanded(model)
    before = {name: tensor.clone() for name, tensor in before.items()}
    tensors = expanded(ToyModel())
    del tensors["heads.1.bias"]
    with pytest.raises(CheckpointError):
        scatter_model(model, tensors, "file")
    assert all(torch.equal(tensor, before[name]) for name, tensor in expanded(model).items())


@pytest.mark.parametrize("name", ["adamw", "sgd"])
@pytest.mark.parametrize("device_type", ["cpu", "somewhere"])
def test_the_optimizer_goes_on_as_if_nothing_had_happened(name, device_type):
    def step(model, optimizer, number):
        torch.manual_seed(number)
        optimizer.zero_grad()
        model(torch.randn(3, 5)).square().sum().backward()
        optimizer.step()

    config = toy_config(optimizer=name, weight_decay=0.1)
    model = ToyModel()
    optimizer = build_optimizer(model, config, device_type)
    step(model, optimizer, 0)
    step(model, optimizer, 1)

    other = ToyModel()
    scatter_model(other, expanded(model), "file")
    fresh = build_optimizer(other, config, device_type)
    tensors, others = gather_optimizer(model, optimizer)
    scatter_optimizer(other, fresh, {name: tensor.clone() for name, tensor in tensors.items()}, others, "file")
    step(model, optimizer, 2)
    step(other, fresh, 2)
    assert_same_weights(model, other)


def test_optimizer_state_of_another_model_is_refused():
    model = ToyModel()
    optimizer = build_optimizer(model, toy_config(), "cpu")
    with pytest.raises(CheckpointError, match=r"'elsewhere\.weight'"):
        scatter_optimizer(model, optimizer, {"elsewhere.weight/exp_avg": torch.zeros(2)}, {}, "file")
