"""Translation: from sentences to a loss, and from a model to translations with the alignment behind each.

A translation's alignment is what the model attends to when it is shown its own translation: one more pass, all
positions at once, under `record`. It is the same attention as while searching (a test holds the two equal), and it
serves every model, mechanism and search alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import torch
from torch import nn

from regard.core.axes import Text
from regard.core.errors import ConfigError, DataError
from regard.core.special import EOS, NUM_SPECIAL, PAD, SPECIAL_NAMES
from regard.core.tap import taps
from regard.core.task import Loss
from regard.data.text import normalise
from regard.data.tokenized import TokenizedCorpus
from regard.data.tokenizers import Tokenizer
from regard.recording import Recording, record
from regard.tasks.decoding import DecodingConfig, Hypothesis, decode_all
from regard.tasks.losses import readout_cross_entropy
from regard.tasks.translation.alignment import alignment_error_rate, links_from_weights, pharaoh, word_weights
from regard.tasks.translation.batches import TranslationBatch, TranslationBatches, collate
from regard.tasks.translation.config import TranslationConfig
from regard.tasks.translation.measures import bleu_by_length, quality

END = SPECIAL_NAMES[EOS]


@final
@dataclass(frozen=True)
class Translation:
    """A sentence, its translation and how the two are related."""

    source: str
    text: str
    log_probability: float
    score: float
    finished: bool
    alternatives: tuple[tuple[str, float], ...] = ()
    """The n-best list behind the first, with scores."""
    links: frozenset[tuple[int, int]] | None = None
    """(source word, target word), None for a model without attention."""
    weights: np.ndarray | None = field(default=None, repr=False, compare=False)
    """Attention of target words (rows) to source words and the end of the sentence (columns)."""

    @property
    def pharaoh(self) -> str | None:
        return None if self.links is None else pharaoh(self.links)

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "translation": self.text,
            "score": self.score,
            "log_probability": self.log_probability,
            "finished": self.finished,
            "alignment": self.pharaoh,
            "alternatives": [{"translation": text, "score": score} for text, score in self.alternatives],
        }


@final
class TranslationTask:
    """Everything about translating between two tokenizers' languages that is not the model."""

    def __init__(
        self,
        config: TranslationConfig,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        tokenized: bool = False,
    ) -> None:
        """`tokenized` says that sentences have spaces between their tokens already, which BLEU must then not cut."""
        self.config = config
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.tokenized = tokenized

    def loss(self, model: nn.Module, batch: TranslationBatch) -> Loss:
        """Cross entropy of the next token, summed over all tokens that are not padding."""
        output = model(batch.source, batch.target_in)
        present = batch.target_out != PAD
        targets = batch.target_out[present]
        smoothing = self.config.label_smoothing if model.training else 0.0
        total = readout_cross_entropy(output.features[present], output.readout, targets, smoothing)
        return Loss(total, len(targets))

    def validate(self, model: nn.Module, batches: TranslationBatches) -> dict[str, float]:
        """The loss without label smoothing, per token."""
        device = next(model.parameters()).device
        total, count = 0.0, 0
        for indices in batches.sequential():
            batch = batches.collate(indices)
            loss = self.loss(model, TranslationBatch(*(part.to(device) for part in vars(batch).values())))
            total, count = total + float(loss.total), count + loss.count
        return {"loss": total / count}

    def translate(
        self,
        model: nn.Module,
        sentences: Sequence[str],
        decoding: DecodingConfig | None = None,
        *,
        alignments: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """Translations in the order of the sentences; one that is empty has an empty translation."""
        sentences = [normalise(sentence) for sentence in sentences]
        sources = self.source_tokenizer.encode_batch(sentences)
        self._check_known(sentences, sources)
        found = self.decode(model, sources, decoding, progress)
        translations = []
        for sentence, hypotheses in zip(sentences, found, strict=True):
            best, *others = hypotheses
            translations.append(
                Translation(
                    sentence,
                    self.target_tokenizer.decode(best.tokens),
                    best.log_probability,
                    best.score,
                    best.finished,
                    tuple((self.target_tokenizer.decode(other.tokens), other.score) for other in others),
                )
            )
        if alignments and taps(model):
            targets = [hypotheses[0].tokens for hypotheses in found]
            weights = self.align(model, sources, targets)
            translations = [
                Translation(**{**vars(translation), "weights": table, "links": links_from_weights(table)})
                for translation, table in zip(translations, weights, strict=True)
            ]
        return translations

    def decode(
        self,
        model: nn.Module,
        sources: Sequence[Sequence[int]],
        decoding: DecodingConfig | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Hypotheses for token ids without special tokens."""
        was_training = model.training
        model.eval()
        try:
            with_end = [[*source, EOS] for source in sources]
            return decode_all(model, with_end, decoding or self.config.decoding, progress=progress)  # type: ignore[arg-type]
        finally:
            model.train(was_training)

    @torch.inference_mode()
    def record(
        self, model: nn.Module, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], taps: str = "*"
    ) -> Recording:
        """What the model attends to when it is shown these pairs (token ids without special tokens)."""
        device = next(model.parameters()).device
        batch = collate([(list(source), list(target)) for source, target in zip(sources, targets, strict=True)])
        was_training = model.training
        model.eval()
        try:
            with record(model, taps) as recording:
                model(batch.source.to(device), batch.target_in.to(device))
        finally:
            model.train(was_training)
        # A row is the prediction of a token, so the target axis shows what is written there, not what is read.
        return recording.label(
            source=[Text((*self.source_tokenizer.tokens(source), END)) for source in sources],
            target=[Text((*self.target_tokenizer.tokens(target), END)) for target in targets],
        )

    def align(
        self,
        model: nn.Module,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        *,
        token_budget: int = 4096,
    ) -> list[np.ndarray]:
        """For each pair the attention of target words to source words and the sentence end, mean over heads."""
        tap = self.alignment_tap(model)
        lengths = [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]
        order = sorted(range(len(sources)), key=lambda index: -lengths[index])
        aligned: list[np.ndarray] = [np.zeros((0, 1))] * len(sources)
        while order:
            size = max(1, token_budget // lengths[order[0]])
            members, order = order[:size], order[size:]
            part = self.record(model, [sources[i] for i in members], [targets[i] for i in members], tap)[tap]
            for place, index in enumerate(members):
                weights = part.weights(example=place).mean(dim=0)
                aligned[index] = word_weights(
                    weights.numpy(force=True),
                    [*self.target_tokenizer.words(targets[index]), -1],
                    [*self.source_tokenizer.words(sources[index]), -1],
                )
        return aligned

    def alignment_tap(self, model: nn.Module) -> str:
        """The attention from target to source that alignments are read off."""
        reading = [address for address, tap in taps(model).items() if (tap.queries, tap.keys) == ("target", "source")]
        if self.config.alignment_tap != "auto":
            if self.config.alignment_tap not in reading:
                raise ConfigError(
                    f"No attention from target to source is called {self.config.alignment_tap!r}; this model has: "
                    f"{', '.join(reading) or 'none'}."
                )
            return self.config.alignment_tap
        if not reading:
            raise ConfigError("This model has no attention from target to source, hence no alignment.")
        return reading[-2] if len(reading) > 1 else reading[-1]

    def evaluate(
        self,
        model: nn.Module,
        corpus: TokenizedCorpus,
        decoding: DecodingConfig | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> dict[str, Any]:
        """BLEU and chrF with signatures, BLEU by length, speed, and the alignment error rate where gold is known.

        The alignment error rate is measured on the reference translations, which the gold links belong to.
        """
        if not len(corpus):
            raise DataError("There is nothing to evaluate: this part of the corpus has no sentences.")
        sources = [corpus.source_text(index) for index in range(len(corpus))]
        references = [corpus.target_text(index) for index in range(len(corpus))]
        ids = [corpus[index][0].tolist() for index in range(len(corpus))]
        started = time.perf_counter()
        found = self.decode(model, ids, decoding, progress)
        seconds = time.perf_counter() - started
        translations = [self.target_tokenizer.decode(hypotheses[0].tokens) for hypotheses in found]
        written = sum(len(hypotheses[0].tokens) + 1 for hypotheses in found)
        result: dict[str, Any] = {
            "sentences": len(corpus),
            **quality(translations, references, tokenized=self.tokenized).to_json(),
            "bleu_by_length": bleu_by_length(sources, translations, references, tokenized=self.tokenized),
            "decoding": (decoding or self.config.decoding).model_dump(mode="json"),
            "unfinished": sum(not hypotheses[0].finished for hypotheses in found),
            "tokens_per_second": round(written / seconds, 1),
            "seconds": round(seconds, 2),
        }
        if corpus.has_alignments and taps(model):
            targets = [corpus[index][1].tolist() for index in range(len(corpus))]
            gold = [corpus.alignment(index) for index in range(len(corpus))]
            predicted = [links_from_weights(table) for table in self.align(model, ids, targets)]
            error_rate = alignment_error_rate(predicted, [g.sure for g in gold], [g.possible for g in gold])
            result["aer"] = round(error_rate, 4)
        return result

    def _check_known(self, sentences: Sequence[str], sources: Sequence[Sequence[int]]) -> None:
        """A sentence of unknown words only is refused: what came out would be made up."""
        for number, (sentence, source) in enumerate(zip(sentences, sources, strict=True), start=1):
            if source and all(token < NUM_SPECIAL for token in source):
                shown = sentence if len(sentence) <= 60 else sentence[:57] + "..."
                raise DataError(
                    f"Sentence {number} ({shown!r}) has no token that the model's vocabulary of "
                    f"{self.source_tokenizer.size} entries knows. Is it in the language the model was trained on?"
                )
