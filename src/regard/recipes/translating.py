"""Runs whose task is translation: prepared from parallel text, asked for translations and for where they come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from regard.core.errors import DataError
from regard.core.special import EOS, NUM_SPECIAL, SPECIAL_NAMES, UNK
from regard.core.task import LossFunction
from regard.data.config import DataConfig
from regard.data.corpus import ParallelCorpus, load_corpus
from regard.data.multi30k import TESTS
from regard.data.text import normalise
from regard.data.tokenized import TokenizedCorpus
from regard.data.tokenizers import Tokenizer, tokenizer_kinds
from regard.recipes.config import RunConfig, RunKind, run_kinds
from regard.recipes.judging import judge_translation
from regard.recipes.run import FILMED, Prepared, Run, build_model, checked_part, moved
from regard.recording import Recording
from regard.recording.film import compact
from regard.recording.verdict import Verdict
from regard.tasks.decoding import DecodingConfig
from regard.tasks.translation import Translation, TranslationBatches, TranslationConfig, TranslationTask
from regard.tasks.translation.alignment import links_from_weights
from regard.tasks.translation.batches import collate
from regard.training import RunFolder

SOURCE_TOKENIZER = "source_tokenizer.json"
TARGET_TOKENIZER = "target_tokenizer.json"
END = SPECIAL_NAMES[EOS]


class TranslationRunConfig(RunConfig):
    """Model, data, task and budget of one training."""

    data: DataConfig = DataConfig()
    """Which corpus, and how it is cut into tokens and batches."""
    task: TranslationConfig = TranslationConfig()
    """Loss, search and alignment."""

    def with_source(self) -> Self:
        return self.model_copy(update={"data": with_files(self.data)})

    def absolute(self) -> Self:
        return self.model_copy(update={"data": self.data.absolute()})


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
class TranslationRun(Run):
    """A trained translator."""

    config: TranslationRunConfig
    task: TranslationTask

    def translate(self, sentences: Sequence[str], **options: Any) -> list[Translation]:
        """See `TranslationTask.translate`."""
        return self.task.translate(self.model, sentences, **options)

    def read(self, part: str, data: DataConfig | None = None) -> TokenizedCorpus:
        """A part of the run's corpus, or of another one, cut by the run's tokenizers; with its sentences."""
        name = checked_part(part)
        tokenizers = (self.task.source_tokenizer, self.task.target_tokenizer)
        return load_corpus(data or self.config.data, tokenizers, parts=(name,), keep_texts=(name,)).part(name)

    def judge(self, sentence: str, *, tap: str | None = None, orders: int = 100, points: int = 20) -> Verdict:
        """Whether where the model looks in a sentence says anything about its translation."""
        return judge_translation(self, sentence, tap=tap, orders=orders, points=points)

    def fresh_model(self) -> nn.Module:
        sizes = self.task.source_tokenizer.size, self.task.target_tokenizer.size
        return build_model(self.config, *sizes).to(next(self.model.parameters()).device).eval()

    def plan(self, part: str) -> TranslationBatches:
        return TranslationBatches(self.read(part), token_budget=self.config.data.token_budget, seed=0)

    def evaluate(
        self,
        part: str = "test",
        *,
        progress: Callable[[int], None] | None = None,
        data: DataConfig | None = None,
        decoding: DecodingConfig | None = None,
    ) -> dict[str, Any]:
        """What `TranslationTask.evaluate` measures, with the loss, and what was left out of the text (`report`)."""
        corpus = self.read(part, data)
        batches = TranslationBatches(corpus, token_budget=self.config.data.token_budget, seed=0)
        with torch.inference_mode():
            loss = self.task.validate(self.model, batches)
        measured = self.task.evaluate(self.model, corpus, decoding, progress)
        return {"loss": round(loss["loss"], 4), **measured, "report": corpus.report.to_json()}

    def look(self, sentence: str, target: str | None = None, decoding: DecodingConfig | None = None) -> Look:
        """Translates, or takes the translation that is given, and records where the model looks while writing it."""
        self.needs_attention()
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
class PreparedTranslation(Prepared):
    """A translator and its corpus."""

    config: TranslationRunConfig
    corpus: ParallelCorpus
    task: TranslationTask

    @classmethod
    def read(
        cls,
        config: TranslationRunConfig,
        *,
        resume: RunFolder | None,
        corpus: ParallelCorpus | None,
        progress: Callable[[str], None] | None,
    ) -> PreparedTranslation:
        """With the tokenizers of the folder to resume, where it has them."""
        # Wrong names, and sizes that do not go together, are said at once and not after an hour of reading.
        tokenizer_kinds[config.data.tokenizer_kind]
        build_model(config, NUM_SPECIAL + 1, NUM_SPECIAL + 1)
        if corpus is None:
            tokenized = resume is not None and (resume.path / TARGET_TOKENIZER).exists()
            tokenizers = _load_tokenizers(resume.path) if resume is not None and tokenized else None
            corpus = load_corpus(config.data, tokenizers, parts=("train", "valid"), progress=progress)
        model = build_model(config, corpus.source_tokenizer.size, corpus.target_tokenizer.size)
        return cls(config, corpus, model, build_task(config, corpus.source_tokenizer, corpus.target_tokenizer))

    @property
    def loss(self) -> LossFunction:
        return self.task.loss

    def batches(self) -> TranslationBatches:
        return self._batches(self.corpus.train)

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        return self.task.validate(model, self._batches(self.corpus.valid))

    @torch.no_grad()
    def record(self, model: nn.Module) -> Recording:
        corpus = self.corpus.valid
        pairs = [corpus[index] for index in range(min(FILMED, len(corpus)))]
        sources, targets = ([side.tolist() for side in sides] for sides in zip(*pairs, strict=True))
        recording = compact(self.task.record(model, sources, targets))
        loss = self.task.loss(model, moved(collate(pairs), next(model.parameters()).device))
        recording.outputs["loss"] = float(loss.total) / loss.count
        recording.outputs["sources"] = [self.task.source_tokenizer.decode(source) for source in sources]
        recording.outputs["targets"] = [self.task.target_tokenizer.decode(target) for target in targets]
        return recording

    def save(self, path: Path) -> None:
        if not (path / TARGET_TOKENIZER).exists():
            self.task.source_tokenizer.save(path / SOURCE_TOKENIZER)
            self.task.target_tokenizer.save(path / TARGET_TOKENIZER)

    def trained(self, folder: RunFolder) -> TranslationRun:
        return TranslationRun(folder, self.config, self.model, self.task)

    def _batches(self, corpus: TokenizedCorpus) -> TranslationBatches:
        return TranslationBatches(corpus, token_budget=self.config.data.token_budget, seed=self.config.data.seed)


def open_translation(folder: RunFolder, config: TranslationRunConfig, weights: str) -> TranslationRun:
    """The run without its weights yet."""
    source_tokenizer, target_tokenizer = _load_tokenizers(folder.path)
    model = build_model(config, source_tokenizer.size, target_tokenizer.size)
    return TranslationRun(folder, config, model, build_task(config, source_tokenizer, target_tokenizer), weights)


run_kinds.register("translation")(
    RunKind(TranslationRunConfig, "translator", "bleu", PreparedTranslation.read, open_translation)
)


def build_task(
    config: TranslationRunConfig, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer
) -> TranslationTask:
    # The generated corpus has its tokens apart, as the alignments count them.
    tokenized = config.data.source == "embedded"
    return TranslationTask(config.task, source_tokenizer, target_tokenizer, tokenized=tokenized)


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


def is_unknown(tokens: Sequence[int]) -> bool:
    """Whether a sentence has words, but none that the vocabulary knows."""
    return bool(tokens) and all(token < NUM_SPECIAL for token in tokens) and UNK in tokens


def unknown_words(tokenizer: Tokenizer, sentence: str) -> list[str]:
    """The words of a normalised sentence that the vocabulary does not know, or not wholly, each once."""
    tokens, words = tokenizer.encode(sentence), sentence.split()
    places = {place for place, token in zip(tokenizer.words(tokens), tokens, strict=True) if token == UNK}
    return list(dict.fromkeys(word for place, word in enumerate(words) if place in places))


def shortened(text: str, length: int = 60) -> str:
    """The beginning of a text that may be long, for messages."""
    return text if len(text) <= length else f"{text[: length - 3]}..."


def _words(tokenizer: Tokenizer, tokens: Sequence[int], text: str) -> tuple[str, ...]:
    """The words that alignments count, as they were written where that is possible."""
    known, written = tokenizer.decode(tokens).split(), text.split()
    return tuple(written if len(known) == len(written) else known)


def _load_tokenizers(path: Path) -> tuple[Tokenizer, Tokenizer]:
    source = Tokenizer.load(path / SOURCE_TOKENIZER)
    target = Tokenizer.load(path / TARGET_TOKENIZER)
    return source, (source if source.fingerprint == target.fingerprint else target)
