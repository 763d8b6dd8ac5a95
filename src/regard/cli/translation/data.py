"""`regard data` for a translator: what a recipe reads, before any time is spent on training with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.cli.choosing import parse_recipe
from regard.cli.options import Shared, changed, import_plugins, parse
from regard.cli.output import say, show, show_json, table
from regard.data.batching import BatchPlan
from regard.data.config import DataConfig
from regard.data.corpus import ParallelCorpus, load_corpus
from regard.data.sources import PARTS, Sources
from regard.data.tokenized import TokenizedCorpus
from regard.recipes.translating import with_files

DESCRIPTION = """Reads the data of a recipe, or your own, and tells what is in them: sizes, lengths,
vocabularies, unknown words, ill-formed lines with their numbers, and pairs with their tokens.

examples:
  regard data rnnsearch
  regard data --data.train my.tsv --data.on-bad skip
  regard data transformer-multi30k-de --data.vocabulary-size 8000 --json"""


@dataclass(frozen=True)
class DataOptions(Shared):
    """How much to show."""

    examples: int = 2
    """So many pairs of each part are shown with their tokens."""


def run(argv: list[str]) -> int:
    options, config = _chosen(argv)
    corpus = load_corpus(config, progress=say)
    described = {
        "source": config.source,
        "languages": [config.source_language, config.target_language],
        "files": _files(config),
        "tokenizer": config.tokenizer_kind,
        "vocabularies": [corpus.source_tokenizer.size, corpus.target_tokenizer.size],
        "joint": corpus.source_tokenizer is corpus.target_tokenizer,
        "parts": {name: _part(corpus.part(name), config, corpus, options.examples) for name in PARTS},
        "report": corpus.report.to_json(),
    }
    if options.json:
        show_json(described)
        return 0
    _show(described, corpus)
    return 0


def _chosen(argv: list[str]) -> tuple[DataOptions, DataConfig]:
    """A recipe's data, or, when no recipe is named, whatever the options say."""
    if argv and argv[0].startswith("-") and any(argument.startswith("--data.") for argument in argv):
        import_plugins(argv)
        start = DataConfig()
        options, sections = parse(DataOptions, argv, prog="data", description=DESCRIPTION, sections={"data": start})
        return options, with_files(changed(start, sections["data"]))
    options, recipe, values = parse_recipe(DataOptions, argv, prog="data", description=DESCRIPTION)
    data = recipe.data
    assert isinstance(data, DataConfig)
    return options, with_files(changed(data, values["data"]))


def _files(config: DataConfig) -> dict[str, list[str]]:
    if config.source == "embedded":
        return {}
    sources = Sources(config)
    return {part: [str(path) for path in sources.reader(part).paths.files] for part in PARTS}


def _part(part: TokenizedCorpus, config: DataConfig, corpus: ParallelCorpus, num_examples: int) -> dict[str, Any]:
    if not len(part):
        return {"pairs": 0}
    plan = BatchPlan(part.lengths, token_budget=config.token_budget, seed=config.seed)
    batches = plan.epoch(0)
    sides = [_lengths(part.lengths[:, side]) for side in (0, 1)]
    examples = []
    for index in range(min(num_examples, len(part))):
        source, target = part[index]
        tokens = [corpus.source_tokenizer.tokens(source.tolist()), corpus.target_tokenizer.tokens(target.tolist())]
        examples.append({"source_tokens": tokens[0], "target_tokens": tokens[1]})
    return {
        "pairs": len(part),
        "source_tokens": sides[0],
        "target_tokens": sides[1],
        "unknown_rates": [round(rate, 6) for rate in part.unknown_rates],
        "alignments": part.has_alignments,
        "batches": len(batches),
        "padding_rate": round(plan.padding_rate(batches), 4),
        "examples": examples,
    }


def _lengths(lengths: np.ndarray) -> dict[str, float]:
    """All, least, median, mean and most tokens of one side."""
    return {
        "all": int(lengths.sum()),
        "least": int(lengths.min()),
        "median": float(np.median(lengths)),
        "mean": round(float(lengths.mean()), 2),
        "most": int(lengths.max()),
    }


def _show(described: dict[str, Any], corpus: ParallelCorpus) -> None:
    source, target = described["languages"]
    show(f"{described['source']}, {source} to {target}")
    for part, files in described["files"].items():
        show(f"  {part}: {', '.join(files)}")
    sizes = described["vocabularies"]
    joint = (
        f"one vocabulary of {sizes[0]:,}" if described["joint"] else f"vocabularies of {sizes[0]:,} and {sizes[1]:,}"
    )
    show(f"tokens: {described['tokenizer']}, {joint}")
    show()
    rows = []
    for name, part in described["parts"].items():
        for side, language, column in (("source", source, 0), ("target", target, 1)):
            if part["pairs"]:
                numbers = part[f"{side}_tokens"]
                unknown = f"{100 * part['unknown_rates'][column]:.2f} %"
                rows.append((name, part["pairs"], language, *numbers.values(), unknown))
    show(table(rows, ("part", "pairs", "side", "tokens", "least", "median", "mean", "most", "unknown")))
    show()
    train = described["parts"]["train"]
    if train["pairs"]:
        show(f"training batches: {train['batches']:,} an epoch, {100 * train['padding_rate']:.1f} % padding")
    show(corpus.report.summary())
    for name, part in described["parts"].items():
        for example in part.get("examples", ()):
            show()
            show(f"{name}: {' | '.join(example['source_tokens'])}")
            show(f"{' ' * len(name)}  {' | '.join(example['target_tokens'])}")
