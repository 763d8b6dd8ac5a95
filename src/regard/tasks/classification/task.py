"""Classification: from pictures to a loss, and from a model to names, probabilities and where it looked."""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from PIL import Image
from torch import Tensor, nn

from regard.core.classifier import Classifier, ClassifierOutput
from regard.core.errors import DataError
from regard.core.task import Loss
from regard.data.pictures.batches import PictureBatch, PictureBatches
from regard.data.pictures.form import PictureForm
from regard.recording import Recording, record
from regard.tasks.classification.config import ClassificationConfig
from regard.tasks.classification.cost import cost
from regard.tasks.classification.measures import measure
from regard.tasks.classification.reinforce import reinforce


@final
@dataclass(frozen=True)
class Prediction:
    """The classes of a picture, likeliest first."""

    names: tuple[str, ...]
    probabilities: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "class": self.names[0],
            "probability": self.probabilities[0],
            "classes": [
                {"class": name, "probability": p} for name, p in zip(self.names, self.probabilities, strict=True)
            ],
        }


@final
class ClassificationTask:
    """Everything about telling classes apart that is not the model; `form` is what it knows of pictures."""

    def __init__(self, config: ClassificationConfig, form: PictureForm) -> None:
        self.config = config
        self.form = form

    def loss(self, model: nn.Module, batch: PictureBatch) -> Loss:
        """Cross entropy summed over the pictures; further heads are taught the same."""
        output: ClassifierOutput = model(batch.images)
        smoothing = self.config.label_smoothing if model.training else 0.0
        main = _cross_entropy(output.logits, batch.targets, smoothing)
        parts = {name: _cross_entropy(logits, batch.targets, smoothing) for name, logits in output.auxiliary.items()}
        if output.choices is not None:
            rewards = _rewards(output.logits, batch.targets)
            policy, baseline = reinforce(output.choices, rewards)
            return Loss(main + policy + baseline, len(batch.images), {"main": main, "baseline": baseline})
        if not parts or not model.training:
            return Loss(main, len(batch.images))
        share = self.config.auxiliary_weight
        others = torch.stack(list(parts.values())).mean()
        return Loss((1 - share) * main + share * others, len(batch.images), {"main": main, **parts})

    def validate(self, model: nn.Module, batches: PictureBatches) -> dict[str, float]:
        """Loss per picture and accuracy in per cent."""
        total, right, count = 0.0, 0, 0
        for images, targets in self._pictures(model, batches):
            logits = model(images).logits.float()
            total += float(F.cross_entropy(logits, targets, reduction="sum"))
            right += int((logits.argmax(dim=1) == targets).sum())
            count += len(targets)
        return {"loss": total / count, "accuracy": 100 * right / count}

    @torch.inference_mode()
    def evaluate(
        self, model: nn.Module, batches: PictureBatches, progress: Callable[[int], None] | None = None
    ) -> dict[str, Any]:
        """Loss, top-1 and top-5 accuracy, calibration error, confusion matrix, cost and speed."""
        if not len(batches.pictures):
            raise DataError("There is nothing to evaluate: this part has no pictures.")
        probabilities, labels, seconds = [], [], 0.0
        loss, done = 0.0, 0
        for images, targets in self._pictures(model, batches):
            started = time.perf_counter()
            logits = model(images).logits.float()
            loss += float(F.cross_entropy(logits, targets, reduction="sum"))
            seconds += time.perf_counter() - started
            probabilities.append(logits.softmax(dim=1).numpy(force=True))
            labels.append(targets.numpy(force=True))
            done += len(targets)
            if progress is not None:
                progress(done)
        measured = measure(np.concatenate(probabilities), np.concatenate(labels))
        return {
            "loss": round(loss / done, 4),
            "pictures": done,
            **measured.to_json(),
            "class_names": list(self.form.class_names),
            **cost(model, self.form.channels, self.form.height, self.form.width),
            "pictures_per_second": round(done / seconds, 1),
            "seconds": round(seconds, 2),
        }

    @torch.inference_mode()
    def predict(
        self, model: nn.Module, pictures: Sequence[UInt8[np.ndarray, "_ _ 3"]], top: int | None = None
    ) -> list[Prediction]:
        """What is in decoded pictures of any size, the `top` likeliest classes of each."""
        found: list[Prediction] = []
        for start in range(0, len(pictures), self.config.evaluation_batch):
            images = self.images(pictures[start : start + self.config.evaluation_batch])
            logits = model(images.to(_device(model))).logits.float()
            found += [self._prediction(row, top) for row in logits.softmax(dim=1)]
        return found

    def images(self, pictures: Sequence[UInt8[np.ndarray, "_ _ 3"]]) -> Float[Tensor, "batch channels height width"]:
        """Decoded pictures as the model reads them."""
        fitted = np.stack([self.form.fit(picture) for picture in pictures])
        return self.form.normalise(fitted.transpose(0, 3, 1, 2))

    @torch.inference_mode()
    def record(self, model: nn.Module, images: Float[Tensor, "batch channels height width"]) -> Recording:
        """What the model attends to in these pictures; the pictures themselves are among the outputs, as PNG."""
        assert isinstance(model, Classifier)
        with record(model) as recording:
            output = model(images.to(_device(model)))
        axes = model.axes(*images.shape[2:])
        used = {role for pair in recording.roles.values() for role in pair}
        recording.label(**{role: [axis] * len(images) for role, axis in axes.items() if role in used})
        recording.outputs.update({name: places.tolist() for name, places in output.drawn.items()})
        found = [self._prediction(row, 5) for row in output.logits.float().softmax(dim=1)]
        recording.outputs.update(self.shown(images, found))
        return recording

    def shown(
        self, images: Float[Tensor, "batch channels height width"], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """What a recording of pictures holds beside its relations."""
        return {
            "pictures": [_png(picture) for picture in self.form.restore(images)],
            "predictions": [prediction.to_json() for prediction in predictions],
        }

    def _prediction(self, probabilities: Float[Tensor, "classes"], top: int | None) -> Prediction:
        values, places = probabilities.topk(min(top or self.form.num_classes, self.form.num_classes))
        return Prediction(tuple(self.form.class_names[place] for place in places.tolist()), tuple(values.tolist()))

    def _pictures(self, model: nn.Module, batches: PictureBatches) -> Iterator[tuple[Tensor, Tensor]]:
        device = _device(model)
        for indices in batches.sequential():
            batch = batches.collate(indices)
            yield batch.images.to(device), batch.targets.to(device)


def _cross_entropy(
    logits: Float[Tensor, "batch classes"],
    targets: Int[Tensor, "batch"] | Float[Tensor, "batch classes"],
    smoothing: float,
) -> Float[Tensor, ""]:
    return F.cross_entropy(logits.float(), targets, reduction="sum", label_smoothing=smoothing)


def _rewards(
    logits: Float[Tensor, "batch classes"], targets: Int[Tensor, "batch"] | Float[Tensor, "batch classes"]
) -> Float[Tensor, "batch"]:
    """1 for a right answer and 0 for a wrong one; of a mixed picture the share of the class that was said."""
    said = logits.detach().argmax(dim=1)
    if targets.dim() == 1:
        return (said == targets).float()
    return targets.gather(1, said[:, None])[:, 0].float()


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def _png(picture: UInt8[np.ndarray, "height width channels"]) -> str:
    """As text that fits into JSON."""
    buffer = io.BytesIO()
    Image.fromarray(picture.squeeze(2) if picture.shape[2] == 1 else picture).save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode("ascii")
