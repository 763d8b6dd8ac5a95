"""How `train` and `eval` speak of translation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from regard.cli.output import count, say, table
from regard.data.config import DataConfig
from regard.data.report import ReadReport
from regard.data.tokenized import TokenizedCorpus
from regard.data.tokenizers import Tokenizer
from regard.recipes.run import LOWER_IS_BETTER
from regard.recipes.translating import PreparedTranslation, TranslationRun, unknown_words, with_files
from regard.tasks.decoding import DecodingConfig

NAMES = {"bleu": "BLEU", "chrf": "chrF", "aer": "alignment error rate", "loss": "loss per token"}

CHECKED_SENTENCES = 300
"""So many validation sentences are translated after training, to give a first impression."""

SHOWN_WORDS = 5
"""So many unknown words of a sentence are named."""


def measure(opened: TranslationRun, part: str, configs: dict[str, Any]) -> tuple[DataConfig, dict[str, Any]]:
    """What `regard eval` measures, and the data it did that on."""
    data = with_files(configs["data"], only_test=True)
    measured = opened.evaluate(part, data=data, decoding=configs["decoding"], progress=_progress())
    if measured["report"]["skipped"]:
        say(f"{part}: {ReadReport.from_json(measured['report']).summary()}")
    return data, measured


def size(measured: dict[str, Any]) -> str:
    return f"{measured['sentences']:,} sentences"


def summary(measured: dict[str, Any], expected: dict[str, float], outcome: dict[str, bool]) -> str:
    rows = []
    for name, title in NAMES.items():
        if name not in measured:
            continue
        digits = 2 if name in ("bleu", "chrf") else 4
        aim = ""
        if name in outcome:
            bound = "at most" if name in LOWER_IS_BETTER else "at least"
            aim = f"expected {bound} {expected[name]:g}: {'reached' if outcome[name] else 'MISSED'}"
        rows.append((title, f"{measured[name]:.{digits}f}", aim or measured.get(f"{name}_signature", "")))
    lines = [table(rows), "", "BLEU by the number of source words:"]
    by_length = measured["bleu_by_length"]
    lines.append(
        table(
            [(name, bin_["sentences"], bin_["bleu"]) for name, bin_ in by_length.items()],
            ("words", "sentences", "BLEU"),
        )
    )
    signatures = [f"{NAMES[name]}: {measured[f'{name}_signature']}" for name in ("bleu", "chrf") if name in outcome]
    lines += ["", *signatures] if signatures else [""]
    decoding = measured["decoding"]
    how = (
        f"{decoding['method']} of width {decoding['beam_width']}"
        if decoding["method"] == "beam"
        else decoding["method"]
    )
    lines.append(f"{how}, {measured['tokens_per_second']:,.0f} tokens/s, {measured['unfinished']} unfinished")
    return "\n".join(lines)


def announce(prepared: PreparedTranslation) -> Iterator[str]:
    """What is going to be trained on."""
    data, corpus = prepared.config.data, prepared.corpus
    yield (
        f"data: {data.source} {data.source_language}-{data.target_language}, {len(corpus.train):,} pairs to train on, "
        f"{len(corpus.valid):,} to validate; vocabularies of {corpus.source_tokenizer.size:,} and "
        f"{corpus.target_tokenizer.size:,}"
    )
    report = corpus.report
    if report.notes or any(part.skipped for part in report.parts.values()):
        yield report.summary()


def impression(prepared: PreparedTranslation, trained: TranslationRun) -> dict[str, Any]:
    """Some validation sentences, translated greedily."""
    valid = _some(prepared.corpus.valid, trained)
    decoding = trained.config.task.decoding.model_copy(update={"num_best": 1, "method": "greedy"})
    return trained.task.evaluate(trained.model, valid, DecodingConfig.model_validate(decoding.model_dump()))


def impression_line(measured: dict[str, Any]) -> str:
    aer = f", alignment error rate {measured['aer']:.3f}" if "aer" in measured else ""
    return f"{count(measured['sentences'], 'validation sentence')}, greedily: BLEU {measured['bleu']:.1f}{aer}"


def next_step(prepared: PreparedTranslation, trained: TranslationRun) -> str:
    """A command that shows what the run can do."""
    sentence = prepared.corpus.valid.source_text(0).replace('"', '\\"')
    command = "look" if trained.has_attention else "predict"
    return f'regard {command} {trained.folder.path} "{sentence}"'


def tell_unknown(tokenizer: Tokenizer, sentence: str) -> None:
    """A remark on words that the model cannot read; what it makes of them is guessed."""
    unknown = unknown_words(tokenizer, sentence)
    if unknown:
        shown = ", ".join(map(repr, unknown[:SHOWN_WORDS])) + (", ..." if len(unknown) > SHOWN_WORDS else "")
        hint = " It reads words with blanks between them, before a full stop too." if tokenizer.kind == "words" else ""
        say(f"The model does not know {shown}.{hint}")


def _some(valid: TokenizedCorpus, trained: TranslationRun) -> TokenizedCorpus:
    """Some sentences, evenly spread."""
    step = -(-len(valid) // CHECKED_SENTENCES)
    chosen = range(0, len(valid), step)
    pairs = [(valid.source_text(index), valid.target_text(index)) for index in chosen]
    alignments = [valid.alignment(index) for index in chosen] if valid.has_alignments else None
    tokenizers = (trained.task.source_tokenizer, trained.task.target_tokenizer)
    return TokenizedCorpus.from_pairs(pairs, *tokenizers, alignments)


def _progress(pause: int = 500) -> Callable[[int], None]:
    """Says how far it is, every so many sentences."""
    said = 0

    def progress(done: int) -> None:
        nonlocal said
        if done - said >= pause:
            said = done
            say(f"{done:,} sentences translated")

    return progress
