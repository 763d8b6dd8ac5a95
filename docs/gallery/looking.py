"""What is asked of each trained model: recordings, numbers from them, and the tables that are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from reactions import Reaction
from torch import Tensor, nn

import regard
from regard.core.axes import Text
from regard.recording import Recording


def of_sentence(model: nn.Module, tokenizer: Any, sentence: str) -> Recording:
    """A recording whose positions are the sentence's tokens."""
    inputs = tokenizer(sentence, return_tensors="pt")
    with torch.no_grad(), regard.record(model) as recording:
        model(**inputs)
    return recording.label_text("tokens", inputs["input_ids"], tokenizer)


def of_reaction(model: nn.Module, vocabulary: dict[str, int], reaction: Reaction) -> Recording:
    """A recording whose positions are the reaction's atoms and signs."""
    numbers = torch.tensor([[vocabulary[token] for token in reaction.tokens]])
    with torch.no_grad(), regard.record(model) as recording:
        model(numbers)
    return recording.label(tokens=[Text(reaction.tokens)])


def atom_map(recording: Recording, address: str, reaction: Reaction) -> Tensor:
    """Of every head: how much each atom of the product looks at each atom on the left."""
    weights = recording[address].weights(example=0)
    return weights[:, reaction.products][:, :, reaction.reactants]


def right_atoms(looks: Tensor, reaction: Reaction) -> Tensor:
    """Of every head: how many atoms of the product look most at an atom that they may have come from."""
    left = [reaction.numbers[place] for place in reaction.reactants]
    truth = [reaction.numbers[place] for place in reaction.products]
    found = looks.argmax(dim=-1).tolist()
    hits = [sum(left[place] == number for place, number in zip(row, truth, strict=True)) for row in found]
    return torch.tensor(hits, dtype=torch.float32)


@dataclass(frozen=True)
class MappingScore:
    """The share of right atoms, pass by head, over all reactions."""

    addresses: list[str]
    shares: Tensor
    atoms: int

    @property
    def best(self) -> tuple[int, int]:
        """Pass and head, both counted from zero."""
        return divmod(int(self.shares.argmax()), self.shares.shape[1])


def score_heads(model: nn.Module, vocabulary: dict[str, int], reactions: list[Reaction]) -> MappingScore:
    """Every head of every pass as a mapper of atoms."""
    totals: list[Tensor] = []
    addresses: list[str] = []
    for reaction in reactions:
        recording = of_reaction(model, vocabulary, reaction)
        addresses = recording.addresses
        looks = [atom_map(recording, address, reaction) for address in addresses]
        totals.append(torch.stack([right_atoms(one, reaction) for one in looks]))
    atoms = sum(len(reaction.products) for reaction in reactions)
    return MappingScore(addresses, sum(totals, torch.zeros_like(totals[0])) / atoms, atoms)


def class_token_looks(recording: Recording) -> Tensor:
    """Layer by token: where the class token looks, on average over heads."""
    return torch.stack([recording[address].weights(example=0, rows=0).mean(dim=0) for address in recording])


@dataclass(frozen=True)
class LanguageHeads:
    """Layer by head: how much goes to the first token, and to the token after the same word's last occurrence."""

    first: Tensor
    induction: Tensor

    @property
    def best(self) -> tuple[int, int]:
        return divmod(int(self.induction.argmax()), self.induction.shape[1])


def language_heads(model: nn.Module, length: int = 60, seed: int = 11) -> LanguageHeads:
    """Measured on words without sense, said twice: whoever goes on rightly can only have copied."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(1000, 40000, (1, length), generator=generator)
    with torch.no_grad(), regard.record(model) as recording:
        model(torch.cat([words, words], dim=1))
    again = torch.arange(length, 2 * length)
    first, induction = [], []
    for address in recording:
        weights = recording[address].weights(example=0)
        first.append(weights[:, 1:, 0].mean(dim=-1))
        induction.append(weights[:, again, again - length + 1].mean(dim=-1))
    return LanguageHeads(torch.stack(first), torch.stack(induction))
