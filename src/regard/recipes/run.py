"""From a config to a trained run, and from a run folder back to everything that is needed to use it.

A run folder holds `config.json`, the tokenizers, metrics and checkpoints; nothing in it depends on where it lies.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import nn

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.core.files import write_json
from regard.core.models import models
from regard.core.special import EOS, NUM_SPECIAL, SPECIAL_NAMES, UNK
from regard.core.tap import taps
from regard.data.config import DataConfig
from regard.data.corpus import ParallelCorpus, load_corpus
from regard.data.multi30k import TESTS
from regard.data.sources import Part
from regard.data.text import normalise
from regard.data.tokenized import TokenizedCorpus
from regard.data.tokenizers import Tokenizer, tokenizer_kinds
from regard.recipes.config import RunConfig
from regard.recording import Recording
from regard.tasks.decoding import DecodingConfig
from regard.tasks.translation import Translation, TranslationBatches, TranslationTask
from regard.tasks.translation.alignment import links_from_weights
from regard.tasks.translation.batches import collate
from regard.training import (
    RunFolder,
    Trainer,
    TrainingResult,
    load_model_weights,
    optimizers,
    schedules,
    seed_everything,
)
from regard.training.processes import on_main

importlib.import_module("regard.models")  # which fills the registry

SOURCE_TOKENIZER = "source_tokenizer.json"
TARGET_TOKENIZER = "target_tokenizer.json"
END = SPECIAL_NAMES[EOS]

LOWER_IS_BETTER = ("aer", "loss")
"""Measures of which a recipe expects at most, and not at least, its number."""


@dataclass(frozen=True)
class Look:
    """A translation with all the attention behind it."""

    translation: Translation
    recording: Recording
    """Every tap, labelled with tokens; its `outputs` are the translation's."""
    source_words: tuple[str, ...]
    """Columns of `translation.weights`, the end of the sentence included."""
    target_words: tuple[str, ...]
    """Rows of `translation.weights`."""


@dataclass
class Run:
    """A trained model with all that belongs to it."""

    folder: RunFolder
    config: RunConfig
    model: nn.Module
    task: TranslationTask
    weights: str = "best"
    """The checkpoint that the weights are from."""

    @property
    def name(self) -> str:
        return self.config.recipe

    @property
    def has_attention(self) -> bool:
        return bool(taps(self.model))

    def translate(self, sentences: Sequence[str], **options: Any) -> list[Translation]:
        """See `TranslationTask.translate`."""
        return self.task.translate(self.model, sentences, **options)

    def read(self, part: Part, data: DataConfig | None = None) -> TokenizedCorpus:
        """A part of the run's corpus, or of another one, cut by the run's tokenizers."""
        tokenizers = (self.task.source_tokenizer, self.task.target_tokenizer)
        return load_corpus(data or self.config.data, tokenizers, parts=(part,)).part(part)

    def evaluate(
        self,
        part: Part = "test",
        *,
        data: DataConfig | None = None,
        decoding: DecodingConfig | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> dict[str, Any]:
        """What `TranslationTask.evaluate` measures, with the loss."""
        corpus = self.read(part, data)
        batches = TranslationBatches(corpus, token_budget=self.config.data.token_budget, seed=0)
        with torch.inference_mode():
            loss = self.task.validate(self.model, batches)
        measured = self.task.evaluate(self.model, corpus, decoding, progress)
        return {"loss": round(loss["loss"], 4), **measured}

    def look(self, sentence: str, target: str | None = None, decoding: DecodingConfig | None = None) -> Look:
        """Translates, or takes the translation that is given, and records where the model looks while writing it."""
        if not self.has_attention:
            raise ConfigError(
                f"{self.folder.path} is a {self.config.model.kind!r} model, which has no attention to look at: all it "
                "knows of the source goes through one vector. Look at one with attention, such as rnnsearch."
            )
        sentence = normalise(sentence)
        source = self.task.source_tokenizer.encode(sentence)
        if not source:
            raise DataError("There is nothing to look at: the sentence is empty.")
        if is_unknown(source):
            raise DataError(f"The model knows no word of {shortened(sentence)!r}. Is it in the language it reads?")
        if target is None:
            written, translation = self._found(sentence, source, decoding)
        else:
            written, translation = self._given(sentence, source, normalise(target))
        if not written:
            raise DataError("There is nothing to look at: the translation is empty.")
        weights = self.task.align(self.model, [source], [written])[0]
        translation = replace(translation, weights=weights, links=links_from_weights(weights))
        recording = self.task.record(self.model, [source], [written])
        recording.outputs.update(translation.to_json())
        return Look(
            translation,
            recording,
            (*_words(self.task.source_tokenizer, source, sentence), END),
            _words(self.task.target_tokenizer, written, translation.text),
        )

    def _found(
        self, sentence: str, source: list[int], decoding: DecodingConfig | None
    ) -> tuple[list[int], Translation]:
        """The model's own translation, with exactly the tokens that it wrote."""
        read = self.task.target_tokenizer.decode
        best, *others = self.task.decode(self.model, [source], decoding)[0]
        alternatives = tuple((read(other.tokens), other.score) for other in others)
        text = read(best.tokens)
        translation = Translation(sentence, text, best.log_probability, best.score, best.finished, alternatives)
        return list(best.tokens), translation

    @torch.inference_mode()
    def _given(self, sentence: str, source: list[int], target: str) -> tuple[list[int], Translation]:
        """A translation that the model did not choose, with the probability it has under the model."""
        written = self.task.target_tokenizer.encode(target)
        loss = self.task.loss(self.model, collate([(source, written)]))
        log_probability = -float(loss.total)
        score = log_probability / (len(written) + 1) ** self.task.config.decoding.length_penalty
        return written, Translation(sentence, target, log_probability, score, finished=True)


@dataclass
class Prepared:
    """A training that is ready to start: whatever can be wrong with a config or its data has been found out."""

    config: RunConfig
    corpus: ParallelCorpus
    model: nn.Module
    task: TranslationTask

    @property
    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def has_attention(self) -> bool:
        return bool(taps(self.model))

    def train(self, folder: RunFolder, *, resume: bool = False) -> tuple[Run, TrainingResult]:
        """Trains in the folder, and loads the best weights at the end."""
        on_main(lambda: self._save_tokenizers(folder.path))
        batching = {"token_budget": self.config.data.token_budget, "seed": self.config.data.seed}
        trainer = Trainer(
            self.model,
            self.task.loss,
            TranslationBatches(self.corpus.train, **batching),
            validate=partial(self.task.validate, batches=TranslationBatches(self.corpus.valid, **batching)),
            config=self.config.training,
            folder=folder,
        )
        result = trainer.fit(resume=resume)
        load_model_weights(self.model, folder.weights("best"))
        return Run(folder, self.config, self.model.eval(), self.task), result

    def _save_tokenizers(self, path: Path) -> None:
        if not (path / TARGET_TOKENIZER).exists():
            self.task.source_tokenizer.save(path / SOURCE_TOKENIZER)
            self.task.target_tokenizer.save(path / TARGET_TOKENIZER)


def prepare(
    config: RunConfig,
    *,
    resume: RunFolder | None = None,
    corpus: ParallelCorpus | None = None,
    progress: Callable[[str], None] | None = None,
) -> Prepared:
    """Reads the data and builds the model, with the tokenizers of the folder to resume where it has them."""
    _check_choices(config)
    if corpus is None:
        tokenized = resume is not None and (resume.path / TARGET_TOKENIZER).exists()
        tokenizers = _load_tokenizers(resume.path) if resume is not None and tokenized else None
        corpus = load_corpus(config.data, tokenizers, parts=("train", "valid"), progress=progress)
    model = build_model(config, corpus.source_tokenizer.size, corpus.target_tokenizer.size)
    return Prepared(config, corpus, model, build_task(config, corpus.source_tokenizer, corpus.target_tokenizer))


def _check_choices(config: RunConfig) -> None:
    """Wrong names, and sizes that do not go together, are said at once and not after an hour of reading."""
    config.training.check()
    schedules[config.training.schedule]
    optimizers[config.training.optimizer]
    tokenizer_kinds[config.data.tokenizer_kind]
    build_model(config, NUM_SPECIAL + 1, NUM_SPECIAL + 1)


def train(
    config: RunConfig, folder: RunFolder, *, resume: bool = False, corpus: ParallelCorpus | None = None
) -> tuple[Run, TrainingResult]:
    """Trains from the beginning, or goes on where a run folder stopped."""
    return prepare(config, resume=folder if resume else None, corpus=corpus).train(folder, resume=resume)


def build_model(config: RunConfig, source_vocabulary: int, target_vocabulary: int) -> nn.Module:
    """The model of a config, with fresh weights from the run's seed."""
    seed_everything(config.training.seed)
    return models[config.model.kind].build(config.model, source_vocabulary, target_vocabulary)


def build_task(config: RunConfig, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> TranslationTask:
    # The generated corpus has its tokens apart, as the alignments count them.
    tokenized = config.data.source == "embedded"
    return TranslationTask(config.task, source_tokenizer, target_tokenizer, tokenized=tokenized)


def open_run(path: str | Path, weights: str = "auto", device: str = "cpu") -> Run:
    """A run folder as something to use; `weights` is best, averaged, last, a step, or auto.

    auto is best: the weights of the best validation, which are the averaged ones where those measured best.
    """
    folder = RunFolder.open(path)
    config = read_config(folder)
    source_tokenizer, target_tokenizer = _load_tokenizers(folder.path)
    model = build_model(config, source_tokenizer.size, target_tokenizer.size)
    checkpoint = folder.weights("best" if weights == "auto" else weights)
    load_model_weights(model, checkpoint)
    task = build_task(config, source_tokenizer, target_tokenizer)
    return Run(folder, config, model.to(torch.device(device)).eval(), task, checkpoint.name)


def read_config(folder: RunFolder) -> RunConfig:
    """The config of a run folder, or an error that says which field does not fit."""
    try:
        return RunConfig.model_validate(folder.config)
    except ValidationError as error:
        raise CheckpointError(f"{folder.config_file} does not fit this version of Regard: {explain(error)}.") from error


def write_config(folder: RunFolder, config: RunConfig) -> None:
    """Puts another config into a run folder, such as one with a larger budget."""
    header = {**folder.read_header(), "config": config.model_dump(mode="json")}
    on_main(lambda: write_json(folder.config_file, header))


def with_files(data: DataConfig, *, only_test: bool = False) -> DataConfig:
    """The data config with `source` set to files where the paths that were given can mean nothing else.

    `only_test` is for measuring: the run's training text is then neither needed nor looked for.
    """
    named = [path for path in (data.train, data.valid, data.test) if path is not None]
    if (
        not named
        or data.source == "files"
        or (data.source == "multi30k" and named == [data.test] and data.test in TESTS)
    ):
        return data
    update: dict[str, Any] = {"source": "files"}
    if only_test and data.train is None:
        update["train"] = named[0]
    return data.model_copy(update=update)


def reached(measured: dict[str, Any], expected: dict[str, float]) -> dict[str, bool]:
    """For each number that a recipe expects and that was measured, whether it is as good."""
    return {
        name: measured[name] <= number if name in LOWER_IS_BETTER else measured[name] >= number
        for name, number in expected.items()
        if name in measured
    }


def explain(error: ValidationError) -> str:
    """pydantic's findings as one line a person can act on."""
    return "; ".join(_findings(error, ()))


def is_unknown(tokens: Sequence[int]) -> bool:
    """Whether a sentence has words, but none that the vocabulary knows."""
    return bool(tokens) and all(token < NUM_SPECIAL for token in tokens) and UNK in tokens


def shortened(text: str, length: int = 60) -> str:
    """The beginning of a text that may be long, for messages."""
    return text if len(text) <= length else f"{text[: length - 3]}..."


def _findings(error: ValidationError, above: tuple[str | int, ...]) -> list[str]:
    findings = []
    for finding in error.errors():
        place = (*above, *finding["loc"])
        inner = finding.get("ctx", {}).get("error")
        if isinstance(inner, ValidationError):  # the model's own config, which is read through its registry
            findings += _findings(inner, place)
            continue
        text = finding["msg"].removeprefix("Value error, ")
        findings.append(f"{'.'.join(map(str, place)) or 'the whole'}: {text[:1].lower()}{text[1:]}")
    return findings


def _words(tokenizer: Tokenizer, tokens: Sequence[int], text: str) -> tuple[str, ...]:
    """The words that alignments count, as they were written where that is possible."""
    known, written = tokenizer.decode(tokens).split(), text.split()
    return tuple(written if len(known) == len(written) else known)


def _load_tokenizers(path: Path) -> tuple[Tokenizer, Tokenizer]:
    source = Tokenizer.load(path / SOURCE_TOKENIZER)
    target = Tokenizer.load(path / TARGET_TOKENIZER)
    return source, (source if source.fingerprint == target.fingerprint else target)
