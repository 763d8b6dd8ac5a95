"""Models for testing decoders: random but exactly repeatable, so that a batch can be compared with its parts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.seq2seq import Seq2SeqOutput
from regard.data.special import BOS, EOS, PAD


def mixed(numbers: Tensor) -> Tensor:
    """Integers that look random, as wrapping 64-bit arithmetic."""
    for shift, factor in ((33, 0x2545F4914F6CDD1D), (29, 0x369DEA0F31A53F85)):
        numbers = (numbers ^ (numbers >> shift)) * factor
    return numbers ^ (numbers >> 32)


@dataclass(frozen=True)
class HashState:
    keys: Tensor
    steps_left: int

    def keep(self, sentences: Tensor) -> HashState:
        return replace(self, keys=self.keys[sentences])

    def reorder(self, beams: Tensor) -> HashState:
        return replace(self, keys=self.keys[torch.arange(len(beams))[:, None], beams])


@dataclass(eq=False)
class HashModel(nn.Module):
    """Its logits are a hash of the source, the tokens so far and the next token: the same in any company."""

    vocabulary: int = 97
    spread: float = 9.0
    eos_bias: float = 0.0
    seed: int = 0
    rows_seen: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.readout = nn.Linear(self.vocabulary, self.vocabulary, bias=False)
        nn.init.eye_(self.readout.weight)
        self.modes_seen: set[bool] = set()

    def forward(self, source: Int[Tensor, "batch sources"], target: Int[Tensor, "batch targets"]) -> Seq2SeqOutput:
        state = self.start(self.encode(source), target.shape[1])
        features = []
        for column in target.split(1, 1):
            feature, state = self.step(column, state)
            features.append(feature)
        return Seq2SeqOutput(torch.cat(features, 1), self.readout)

    def encode(self, source: Tensor) -> Tensor:
        keys = torch.full((len(source),), self.seed + 1)
        for column in source.T:
            keys = torch.where(column == PAD, keys, mixed(keys + column))
        return keys

    def start(self, memory: Tensor, max_length: int) -> HashState:
        return HashState(memory[:, None], max_length)

    def step(self, tokens: Tensor, state: HashState) -> tuple[Float[Tensor, "batch width features"], HashState]:
        assert state.steps_left > 0, "more steps than `start` was told"
        assert tokens.shape == state.keys.shape
        self.rows_seen.append(len(tokens))
        self.modes_seen.add(self.training)
        keys = mixed(state.keys * 3 + tokens)
        numbers = mixed(keys[..., None] + torch.arange(self.vocabulary)) & 0xFFFFFF
        logits = numbers / 0x1000000 * self.spread
        logits[..., EOS] += self.eos_bias
        return logits.to(self.readout.weight.dtype), HashState(keys, state.steps_left - 1)


class TableModel(nn.Module):
    """The same logits whatever came before; `rows` overrides them for a first source token."""

    def __init__(self, logits: list[float], rows: dict[int, list[float]] | None = None) -> None:
        super().__init__()
        self.logits = torch.tensor(logits)
        self.rows = {token: torch.tensor(values) for token, values in (rows or {}).items()}
        self.readout = nn.Linear(len(logits), len(logits), bias=False)
        nn.init.eye_(self.readout.weight)

    def forward(self, source: Tensor, target: Tensor) -> Any:
        raise AssertionError("decoding has no use for teacher forcing")

    def encode(self, source: Tensor) -> Tensor:
        return torch.stack([self.rows.get(row[0], self.logits) for row in source.tolist()])

    def start(self, memory: Tensor, max_length: int) -> HashState:
        return HashState(memory[:, None], max_length)

    def step(self, tokens: Tensor, state: HashState) -> tuple[Tensor, HashState]:
        return state.keys, state


@dataclass(frozen=True)
class PrefixState:
    source: Tensor
    prefixes: Tensor

    def keep(self, sentences: Tensor) -> PrefixState:
        return PrefixState(self.source[sentences], self.prefixes[sentences])

    def reorder(self, beams: Tensor) -> PrefixState:
        index = beams[..., None].expand(-1, -1, self.prefixes.shape[2])
        return PrefixState(self.source, self.prefixes.gather(1, index))


class MarianAsSeq2Seq(nn.Module):
    """Marian of `transformers` behind our protocol, without any cache: each step reads the whole prefix again."""

    def __init__(self, marian: Any) -> None:
        super().__init__()
        self.marian = marian
        self.readout = nn.Linear(marian.config.d_model, marian.config.vocab_size)
        self.readout.weight = marian.lm_head.weight
        self.readout.bias = nn.Parameter(marian.final_logits_bias[0].clone())

    def forward(self, source: Tensor, target: Tensor) -> Any:
        raise AssertionError("decoding has no use for teacher forcing")

    def encode(self, source: Tensor) -> Tensor:
        return source

    def start(self, memory: Tensor, max_length: int) -> PrefixState:
        return PrefixState(memory, memory.new_zeros(len(memory), 1, 0))

    def step(self, tokens: Tensor, state: PrefixState) -> tuple[Tensor, PrefixState]:
        prefixes = torch.cat((state.prefixes, tokens[..., None]), 2)
        width = tokens.shape[1]
        source = state.source.repeat_interleave(width, 0)
        features = self.marian.model(
            input_ids=source, attention_mask=source != PAD, decoder_input_ids=prefixes.flatten(0, 1), use_cache=False
        ).last_hidden_state[:, -1]
        return features.unflatten(0, (-1, width)), PrefixState(state.source, prefixes)


def random_sources(count: int, longest: int, vocabulary: int, seed: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (count,), generator=generator).tolist()
    return [torch.randint(4, vocabulary, (length,), generator=generator).tolist() for length in lengths]


def padded(sources: list[list[int]]) -> Int[Tensor, "batch sources"]:
    return nn.utils.rnn.pad_sequence([torch.tensor(source) for source in sources], True, PAD)


@torch.no_grad()
def log_probabilities_after(model: HashModel, source: list[int], prefix: tuple[int, ...]) -> Tensor:
    """What comes next, computed apart from any decoder."""
    target = torch.tensor([[BOS, *prefix]])
    return model(torch.tensor([source]), target).logits[0, -1].log_softmax(-1)
