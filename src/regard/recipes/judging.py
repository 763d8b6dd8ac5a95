"""Verdicts on runs: what stands for a map, what stands for its absence, and the two controls.

    translation      tokens of the source are taken away; the map is the attention that alignments are read off, mean
                     over heads and target positions; the score is the probability of the translation, by its token
    classification   patches are filled with the mean picture; the map is the last attention, mean over heads, of the
                     class token (or of all places); the score is the probability of the class

Controls: the map of a model of the same build with fresh weights, which shows what the build alone would say; and the
map's order on the model with all attention uniform, which shows what is left when where it looks cannot matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor, nn

from regard.core.axes import Grid
from regard.core.errors import ConfigError
from regard.core.special import PAD
from regard.recording import Recording, edit, edits
from regard.recording.verdict import Score, Verdict, judge
from regard.tasks.translation.batches import collate

if TYPE_CHECKING:
    from regard.recipes.classifying import ClassificationRun
    from regard.recipes.translating import TranslationRun

RANDOM_WEIGHTS, UNIFORM = "random weights", "uniform attention"

CASES = 64
"""How many cut inputs are shown to the model at once."""


def judge_translation(
    run: TranslationRun, sentence: str, *, tap: str | None = None, orders: int = 100, points: int = 20
) -> Verdict:
    """A translation's attention on the tokens of its source; `tap` is the attention that is read for alignments."""
    run.needs_attention()
    look = run.look(sentence)
    source = run.task.source_tokenizer.encode(look.translation.source)
    written = run.task.target_tokenizer.encode(look.translation.text)
    address = tap or run.task.alignment_tap(run.model)

    def relevance(model: nn.Module) -> Float[Tensor, "positions"]:
        heard = run.task.record(model, [source], [written], address)[address]
        if (heard.queries, heard.keys) != ("target", "source"):
            raise ConfigError(f"{address} looks from {heard.queries} to {heard.keys}, not from target to source.")
        return heard.weights(example=0).mean(dim=(0, 1))[: len(source)]

    score = _translation_score(run.model, source, written)
    outputs: dict[str, object] = {
        "source": look.translation.source,
        "translation": look.translation.text,
        "tap": address,
    }
    outputs["positions"] = list(run.task.source_tokenizer.tokens(source))
    return _judged(run.model, run.fresh_model(), relevance, score, outputs, orders, points)


def judge_classification(
    run: ClassificationRun,
    picture: UInt8[np.ndarray, "_ _ 3"],
    *,
    tap: str | None = None,
    orders: int = 100,
    points: int = 20,
) -> Verdict:
    """A classifier's attention on the patches of a picture; `tap` is the last one that looks at places."""
    run.needs_attention()
    images = run.task.images([picture]).to(next(run.model.parameters()).device)
    prediction = run.task.predict(run.model, [picture])[0]
    recording = run.task.record(run.model, images)
    address = tap or _last_tap_on_places(recording)
    axis = recording[address].key_axes[0]
    if not isinstance(axis, Grid):
        raise ConfigError(f"{address} does not look at places of the picture; choose another tap.")
    label = run.task.form.class_names.index(prediction.names[0])

    def relevance(model: nn.Module) -> Float[Tensor, "positions"]:
        heard = run.task.record(model, images)[address]
        asking = heard.query_axes[0]
        rows = slice(0, 1) if isinstance(asking, Grid) and "class" in asking.extras[:1] else slice(None)
        return heard.weights(example=0, rows=rows).mean(dim=(0, 1))[len(axis.extras) :]

    score = _classification_score(run.model, images, axis, label)
    outputs: dict[str, object] = {
        "class": prediction.names[0],
        "probability": prediction.probabilities[0],
        "tap": address,
    }
    return _judged(run.model, run.fresh_model(), relevance, score, outputs, orders, points)


def _judged(
    model: nn.Module,
    fresh: nn.Module,
    relevance: Callable[[nn.Module], Tensor],
    score: Score,
    outputs: dict[str, object],
    orders: int,
    points: int,
) -> Verdict:
    own = relevance(model)

    def without_choice(present: Bool[Tensor, "cases positions"]) -> Float[Tensor, "cases"]:
        with edit(model, {"*": edits.uniform()}):
            return score(present)

    controls = {RANDOM_WEIGHTS: (score, relevance(fresh)), UNIFORM: (without_choice, own)}
    return judge(score, own, controls=controls, orders=orders, points=points, outputs=outputs)


def _translation_score(model: nn.Module, source: Sequence[int], written: Sequence[int]) -> Score:
    """The geometric mean of the probabilities of the written tokens, from a source with only some of its tokens."""
    device = next(model.parameters()).device

    @torch.inference_mode()
    def score(present: Bool[Tensor, "cases positions"]) -> Float[Tensor, "cases"]:
        scores = []
        for part in present.split(CASES):
            left = [[token for token, there in zip(source, row, strict=True) if there] for row in part.tolist()]
            batch = collate([(tokens, written) for tokens in left])
            logits = model(batch.source.to(device), batch.target_in.to(device)).logits.float()
            targets = batch.target_out.to(device)
            chosen = logits.log_softmax(dim=-1).gather(2, targets[:, :, None])[:, :, 0]
            there = targets != PAD
            scores.append(((chosen * there).sum(dim=1) / there.sum(dim=1)).exp().cpu())
        return torch.cat(scores)

    return score


def _classification_score(model: nn.Module, images: Tensor, axis: Grid, label: int) -> Score:
    """The probability of the class, from a picture with only some of its patches; the others are the mean picture."""

    @torch.inference_mode()
    def score(present: Bool[Tensor, "cases positions"]) -> Float[Tensor, "cases"]:
        scores = []
        for part in present.split(CASES):
            seen = _of_pixels(part, axis, *images.shape[2:]).to(images.device)
            logits = model(images * seen[:, None].to(images.dtype)).logits.float()
            scores.append(logits.softmax(dim=1)[:, label].cpu())
        return torch.cat(scores)

    return score


def _of_pixels(
    present: Bool[Tensor, "cases positions"], axis: Grid, height: int, width: int
) -> Bool[Tensor, "cases height width"]:
    """Which pixels are there, if these patches are; a last patch may lie partly beyond the picture."""
    rows = (torch.arange(height) * axis.rows) // axis.image_height
    columns = (torch.arange(width) * axis.columns) // axis.image_width
    return present.unflatten(1, (axis.rows, axis.columns))[:, rows][:, :, columns]


def _last_tap_on_places(recording: Recording) -> str:
    looking = [address for address in recording if any(isinstance(axis, Grid) for axis in recording[address].key_axes)]
    if not looking:
        raise ConfigError(f"No attention of this model looks at places in the picture. It has: {', '.join(recording)}.")
    return looking[-1]
