from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

from regard.core.axes import Grid
from regard.core.classifier import ClassifierOutput
from regard.data.pictures.batches import PictureBatch, PictureBatches
from regard.data.pictures.config import PictureConfig
from regard.data.pictures.dataset import PictureCorpus, load_pictures
from regard.models.cnn import CNN, CNNConfig
from regard.tasks.classification import ClassificationConfig, ClassificationTask

CONFIG = PictureConfig(num_pictures=29, size=16, batch_size=7)


@pytest.fixture(scope="module")
def corpus() -> PictureCorpus:
    return load_pictures(CONFIG)


@pytest.fixture
def task(corpus: PictureCorpus) -> ClassificationTask:
    return ClassificationTask(ClassificationConfig(label_smoothing=0.1), corpus.form)


@pytest.fixture
def model(corpus: PictureCorpus) -> nn.Module:
    torch.manual_seed(0)
    config = CNNConfig(width=4, num_convolutions=(1, 1), num_heads=2)
    return CNN(config, corpus.form.num_classes, corpus.form.channels)


class TwoHeads(nn.Module):
    """A model with a further head, as DeiT has."""

    def __init__(self, main: torch.Tensor, other: torch.Tensor) -> None:
        super().__init__()
        self.main, self.other = nn.Parameter(main), nn.Parameter(other)

    def forward(self, images: torch.Tensor) -> ClassifierOutput:
        return ClassifierOutput(self.main, self.main, {"other": self.other})


def test_the_loss_is_torchs(task: ClassificationTask, model: nn.Module, corpus: PictureCorpus) -> None:
    batches = PictureBatches.of(CONFIG, corpus.train)
    batch = batches.collate(batches.epoch(3)[1])
    loss = task.loss(model, batch)
    expected = F.cross_entropy(model(batch.images).logits, batch.targets, label_smoothing=0.1)
    torch.testing.assert_close(loss.total / loss.count, expected)
    assert loss.count == len(batch.images) == batches.count(batches.epoch(3)[1])


def test_mixed_targets(task: ClassificationTask, model: nn.Module) -> None:
    shares = torch.rand(3, 10).softmax(dim=1)
    batch = PictureBatch(torch.randn(3, 3, 16, 16), shares)
    logits = model.eval()(batch.images).logits
    torch.testing.assert_close(task.loss(model, batch).total, -(shares * logits.log_softmax(dim=1)).sum())


def test_further_heads_share_the_loss_in_training_only(task: ClassificationTask) -> None:
    main, other, labels = torch.randn(5, 10), torch.randn(5, 10), torch.tensor([0, 3, 9, 9, 1])
    model = TwoHeads(main, other)
    batch = PictureBatch(torch.zeros(5, 3, 1, 1), labels)
    main_loss, other_loss = (
        F.cross_entropy(logits, labels, reduction="sum", label_smoothing=0.1) for logits in (main, other)
    )
    torch.testing.assert_close(task.loss(model, batch).total, (main_loss + other_loss) / 2)
    plain = F.cross_entropy(main, labels, reduction="sum")
    torch.testing.assert_close(task.loss(model.eval(), batch).total, plain)


def test_validating_and_evaluating_agree(task: ClassificationTask, model: nn.Module, corpus: PictureCorpus) -> None:
    batches = PictureBatches(corpus.valid, batch_size=2, seed=0)
    model.eval()
    with torch.no_grad():
        validated = task.validate(model, batches)
    measured = task.evaluate(model, batches)
    assert measured["accuracy"] == pytest.approx(validated["accuracy"], abs=0.01)
    assert measured["loss"] == pytest.approx(validated["loss"], abs=1e-4)
    assert measured["pictures"] == len(corpus.valid) == np.sum(measured["confusion"])


def test_predictions_are_the_models(task: ClassificationTask, model: nn.Module, corpus: PictureCorpus) -> None:
    pictures = corpus.test.read(np.arange(2))
    model.eval()
    first, second = task.predict(model, list(pictures), top=3)
    with torch.no_grad():
        expected = model(task.images(list(pictures))).logits.softmax(dim=1)
    assert first.names[0] == corpus.form.class_names[int(expected[0].argmax())]
    assert second.probabilities == pytest.approx(expected[1].topk(3).values.tolist())


def test_a_picture_of_another_size_is_fitted(task: ClassificationTask, model: nn.Module) -> None:
    wide = np.full((37, 53, 3), 128, np.uint8)
    assert task.images([wide]).shape == (1, 3, 16, 16)
    assert len(task.predict(model.eval(), [wide])[0].names) == 10


def test_a_recording_knows_patches_and_picture(
    task: ClassificationTask, model: nn.Module, corpus: PictureCorpus
) -> None:
    pictures = corpus.test.read(np.arange(2))
    recording = task.record(model.eval(), task.images(list(pictures)))
    (address,) = recording.addresses
    axis = recording[address].key_axes[0]
    assert isinstance(axis, Grid)
    assert (axis.rows, axis.columns, axis.image_height) == (8, 8, 16)
    assert recording[address].weights(example=1).shape == (2, 64, 64)
    stored = Image.open(io.BytesIO(base64.b64decode(recording.outputs["pictures"][1])))
    assert np.array_equal(np.asarray(stored), pictures[1])
    assert recording.outputs["predictions"][0]["class"] == task.predict(model, list(pictures))[0].names[0]
