"""From a config to a trained run, and from a run folder back to everything that is needed to use it.

A run folder holds `config.json`, the tokenizers, metrics and checkpoints; nothing in it depends on where it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import nn

import regard.models  # noqa: F401  fills the registry
from regard.core.errors import CheckpointError
from regard.core.models import models
from regard.data.corpus import ParallelCorpus, load_corpus
from regard.data.tokenizers import Tokenizer
from regard.recipes.config import RunConfig
from regard.tasks.translation import Translation, TranslationBatches, TranslationTask
from regard.training import RunFolder, Trainer, TrainingResult, load_model_weights, seed_everything

SOURCE_TOKENIZER = "source_tokenizer.json"
TARGET_TOKENIZER = "target_tokenizer.json"


@dataclass
class Run:
    """A trained model with all that belongs to it."""

    folder: RunFolder
    config: RunConfig
    model: nn.Module
    task: TranslationTask

    @property
    def name(self) -> str:
        return self.config.recipe

    def translate(self, sentences: Sequence[str], **options: Any) -> list[Translation]:
        """See `TranslationTask.translate`."""
        return self.task.translate(self.model, sentences, **options)


def build_model(config: RunConfig, source_vocabulary: int, target_vocabulary: int) -> nn.Module:
    """The model of a config, with fresh weights from the run's seed."""
    seed_everything(config.training.seed)
    return models[config.model.kind].build(config.model, source_vocabulary, target_vocabulary)


def build_task(config: RunConfig, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> TranslationTask:
    # The generated corpus has its tokens apart, as the alignments count them.
    tokenized = config.data.source == "embedded"
    return TranslationTask(config.task, source_tokenizer, target_tokenizer, tokenized=tokenized)


def train(
    config: RunConfig, folder: RunFolder, *, resume: bool = False, corpus: ParallelCorpus | None = None
) -> tuple[Run, TrainingResult]:
    """Trains from the beginning, or goes on where a run folder stopped."""
    tokenizers = _load_tokenizers(folder.path) if resume else None
    if corpus is None:
        corpus = load_corpus(config.data, tokenizers, parts=("train", "valid"))
    source_tokenizer, target_tokenizer = corpus.source_tokenizer, corpus.target_tokenizer
    if not resume:
        source_tokenizer.save(folder.path / SOURCE_TOKENIZER)
        target_tokenizer.save(folder.path / TARGET_TOKENIZER)
    model = build_model(config, source_tokenizer.size, target_tokenizer.size)
    task = build_task(config, source_tokenizer, target_tokenizer)
    batching = {"token_budget": config.data.token_budget, "seed": config.data.seed}
    valid = TranslationBatches(corpus.valid, **batching)
    trainer = Trainer(
        model,
        task.loss,
        TranslationBatches(corpus.train, **batching),
        validate=partial(task.validate, batches=valid),
        config=config.training,
        folder=folder,
    )
    result = trainer.fit(resume=resume)
    load_model_weights(model, folder.weights("best"))
    return Run(folder, config, model.eval(), task), result


def open_run(path: str | Path, weights: str = "auto", device: str = "cpu") -> Run:
    """A run folder as something to use; `weights` is best, averaged, last, a step, or auto (averaged if any)."""
    folder = RunFolder.open(path)
    config = read_config(folder)
    source_tokenizer, target_tokenizer = _load_tokenizers(folder.path)
    model = build_model(config, source_tokenizer.size, target_tokenizer.size)
    if weights == "auto":
        weights = "averaged" if (folder.checkpoints / "averaged").is_dir() else "best"
    load_model_weights(model, folder.weights(weights))
    task = build_task(config, source_tokenizer, target_tokenizer)
    return Run(folder, config, model.to(torch.device(device)).eval(), task)


def read_config(folder: RunFolder) -> RunConfig:
    """The config of a run folder, or an error that says which field does not fit."""
    try:
        return RunConfig.model_validate(folder.config)
    except ValidationError as error:
        raise CheckpointError(f"{folder.config_file} does not fit this version of Regard: {explain(error)}.") from error


def explain(error: ValidationError) -> str:
    """pydantic's findings as one line a person can act on."""
    findings = []
    for finding in error.errors():
        place = ".".join(str(step) for step in finding["loc"])
        findings.append(f"{place or 'the whole'}: {finding['msg']}")
    return "; ".join(findings)


def _load_tokenizers(path: Path) -> tuple[Tokenizer, Tokenizer]:
    source = Tokenizer.load(path / SOURCE_TOKENIZER)
    target = Tokenizer.load(path / TARGET_TOKENIZER)
    return source, (source if source.fingerprint == target.fingerprint else target)
