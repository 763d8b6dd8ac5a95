"""Two translators that differ in attention only, trained and measured on the generated corpus, for `regard demo`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.corpus import ParallelCorpus, load_corpus
from regard.data.embedded import DECK_PAIR
from regard.data.tokenized import Alignment, TokenizedCorpus
from regard.recipes.config import recipes
from regard.recipes.run import prepare
from regard.recipes.translating import Look, TranslationRun, TranslationRunConfig
from regard.tasks.translation.alignment import Links
from regard.training import RunFolder

WITH_ATTENTION = "rnnsearch"
WITHOUT_ATTENTION = "cho"

NUM_PICTURES = 3
"""Held-out sentences that are drawn, besides the deck's own."""

NUM_TRANSLATIONS = 50
"""Held-out sentences whose translations are written side by side."""

Say = Callable[[str], None]


class DemoInterrupted(Exception):
    """Ctrl-C or SIGTERM during one of the trainings."""

    def __init__(self, signal: int, folder: Path) -> None:
        super().__init__(f"interrupted by signal {signal}")
        self.signal = signal
        self.folder = folder


@dataclass(frozen=True)
class Demo:
    """What the demo found."""

    attentive: TranslationRun
    fixed: TranslationRun
    measured: dict[str, Any]
    """Of the model with attention, on the test part."""
    measured_fixed: dict[str, Any]
    """The same for the model without."""
    deck: Look
    looks: list[Look]
    """Held-out sentences whose word order changes much."""
    translations: list[tuple[str, str, str, str]]
    """Source, reference, with attention, without."""

    @property
    def deck_right(self) -> bool:
        return self.deck.translation.text == DECK_PAIR.target_text

    @property
    def deck_reversal(self) -> bool:
        """Whether "European Economic Area" is read backwards, as the deck's picture shows."""
        source, target = DECK_PAIR.source.index("European"), DECK_PAIR.target.index("européenne")
        reversal = {(source, target), (source + 1, target - 1), (source + 2, target - 2)}
        return reversal <= (self.deck.translation.links or frozenset())


def run_demo(root: Path, say: Say, *, quick: bool = False) -> Demo:
    """Trains both below `root`/runs and measures them; `quick` only shows that everything works."""
    configs = [_config(name, quick) for name in (WITH_ATTENTION, WITHOUT_ATTENTION)]
    assert configs[0].data == configs[1].data, "the two are compared on the same data"
    corpus = load_corpus(configs[0].data)
    attentive, fixed = (_train(config, corpus, root, say) for config in configs)
    say("Measuring both on the test sentences.")
    measured, measured_fixed = attentive.evaluate(), fixed.evaluate()
    test = corpus.test
    chosen = _turned_round(test, NUM_PICTURES)
    return Demo(
        attentive,
        fixed,
        measured,
        measured_fixed,
        attentive.look(DECK_PAIR.source_text),
        [attentive.look(test.source_text(index)) for index in chosen],
        _side_by_side(test, attentive, fixed),
    )


def _config(name: str, quick: bool) -> TranslationRunConfig:
    config: TranslationRunConfig = recipes[name]()
    if not quick:
        return config
    return config.model_copy(
        update={
            "model": config.model.model_copy(update={"width": 16, "embedding_width": 8}),
            "data": config.data.model_copy(update={"num_sentences": 200}),
            "task": config.task.model_copy(
                update={"decoding": config.task.decoding.model_copy(update={"max_length": 20})}
            ),
            "training": config.training.model_copy(update={"max_steps": 3}),
        }
    )


def _train(config: TranslationRunConfig, corpus: ParallelCorpus, root: Path, say: Say) -> TranslationRun:
    prepared = prepare(config, corpus=corpus)
    folder = RunFolder.create(root / "runs", config.recipe, config.model_dump(mode="json"))
    kind = "with" if prepared.has_attention else "without"
    say(f"Training {config.recipe}, {kind} attention, {prepared.num_parameters:,} parameters, in {folder.path}")
    run, result = prepared.train(folder)
    if result.signal is not None:
        raise DemoInterrupted(result.signal, folder.path)
    return run


def _side_by_side(
    test: TokenizedCorpus, attentive: TranslationRun, fixed: TranslationRun
) -> list[tuple[str, str, str, str]]:
    shown = range(min(NUM_TRANSLATIONS, len(test)))
    sources = [test.source_text(index) for index in shown]
    ids = [test[index][0].tolist() for index in shown]
    found = []
    for run in (attentive, fixed):
        best = [hypotheses[0].tokens for hypotheses in run.task.decode(run.model, ids)]
        found.append([run.task.target_tokenizer.decode(tokens) for tokens in best])
    references = [test.target_text(index) for index in shown]
    return list(zip(sources, references, *found, strict=True))


def _turned_round(test: TokenizedCorpus, count: int, shortest: int = 8, longest: int = 16) -> list[int]:
    """Sentences whose gold alignment crosses itself most, those of a good length for a picture first."""
    fits = {index: shortest <= test.lengths[index].max() <= longest for index in range(len(test))}
    crossings = {index: _num_crossings(test.alignment(index)) for index in fits}
    return sorted(fits, key=lambda index: (not fits[index], -crossings[index], index))[:count]


def _num_crossings(alignment: Alignment) -> int:
    links: Links = sorted(alignment.sure)
    return sum(a[0] < b[0] and a[1] > b[1] for a in links for b in links)
