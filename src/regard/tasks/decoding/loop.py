"""From encoded sources to hypotheses: the loop that all searches share, for one batch or a whole data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.core.errors import ConfigError, RegardError
from regard.core.seq2seq import Seq2Seq
from regard.data.special import BOS, EOS, PAD
from regard.tasks.decoding.beam import BeamSearch
from regard.tasks.decoding.chains import Greedy
from regard.tasks.decoding.config import DecodingConfig
from regard.tasks.decoding.hypotheses import Hypothesis
from regard.tasks.decoding.sampling import Sampling
from regard.tasks.decoding.scores import candidates
from regard.tasks.decoding.search import Search

# Taking sentences out copies the caches of those that stay. Below this share of open sentences the steps saved
# are worth the copy.
_WORTH_KEEPING = 0.75


@torch.inference_mode()
def decode(
    model: Seq2Seq,
    source: Int[Tensor, "batch sources"],
    config: DecodingConfig,
    positions: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """The `num_best` hypotheses of each sentence, best first.

    `source` is padded at the end and on the model's device. A sentence without any token of its own is not shown
    to the model: its one translation is empty. `positions` are the sentences' places in the data, which fix their
    random draws; left out, they are the rows' numbers.
    """
    positions = range(len(source)) if positions is None else positions
    assert len(positions) == len(source), f"{len(positions)} positions for {len(source)} sentences"
    vocabulary = model.readout.out_features
    for token in config.forbidden:
        if not 0 <= token < vocabulary:
            raise ConfigError(
                f"The forbidden token {token} does not exist: the model's vocabulary has {vocabulary} tokens, "
                f"0 to {vocabulary - 1}."
            )
    special = torch.tensor((PAD, BOS, EOS), device=source.device)
    filled = (~torch.isin(source, special)).any(1).nonzero()[:, 0]
    rows = filled.tolist()
    hypotheses = [[Hypothesis((), 0.0, 0.0, True)] for _ in range(len(source))]
    if rows:
        source = source[filled]
        limits = config.limits((source != PAD).sum(1))
        search = _search(config, limits, vocabulary, [positions[row] for row in rows])
        _run(model, source, search, torch.tensor(config.forbidden, dtype=torch.long, device=source.device))
        for row, found in zip(rows, search.hypotheses(config.num_best), strict=True):
            if not found:
                raise RegardError(
                    f"Sentence {positions[row]} could not be decoded: the model's scores are not finite numbers, or "
                    "every token is forbidden. Check the model's weights (a diverged training?) and `forbidden`."
                )
            hypotheses[row] = found
    return hypotheses


def decode_all(
    model: Seq2Seq,
    sources: Sequence[Sequence[int]],
    config: DecodingConfig,
    *,
    token_budget: int = 4096,
    progress: Callable[[int], None] | None = None,
) -> list[list[Hypothesis]]:
    """Decodes many sentences, in padded batches of at most `token_budget` source tokens, in the order given.

    Sentences of like length share a batch, the longest come first, so that a lack of memory shows at once; one that
    is longer than the budget is a batch of its own. `progress` is told how many sentences are done. Those without a
    token of their own have an empty translation.
    """
    if token_budget < 1:
        raise ConfigError(f"token_budget is {token_budget}, but a batch has to have room for at least 1 token.")
    hypotheses: list[list[Hypothesis]] = [[] for _ in sources]
    num_done = 0
    for positions in _batches([len(source) for source in sources], token_budget):
        rows = [torch.as_tensor(sources[position], dtype=torch.long) for position in positions]
        source = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
        found = decode(model, source.to(model.readout.weight.device), config, positions)
        for position, sentence in zip(positions, found, strict=True):
            hypotheses[position] = sentence
        num_done += len(positions)
        if progress is not None:
            progress(num_done)
    return hypotheses


def _batches(lengths: Sequence[int], token_budget: int) -> Iterator[list[int]]:
    """Positions from the longest sentence to the shortest, cut where rows times the longest row pass the budget."""
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda position: -lengths[position]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > token_budget:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def _search(config: DecodingConfig, limits: Int[Tensor, "batch"], vocabulary: int, positions: Sequence[int]) -> Search:
    if config.method == "beam":
        return BeamSearch(limits, config.beam_width, vocabulary, config.length_penalty)
    if config.method == "sample":
        return Sampling(limits, vocabulary, config, positions)
    return Greedy(limits, 1, vocabulary, config.length_penalty)


def _run(
    model: Seq2Seq, source: Int[Tensor, "batch sources"], search: Search, forbidden: Int[Tensor, "forbidden"]
) -> None:
    """Steps until every sentence is done; the search holds the result."""
    with _evaluating(model):
        state = model.start(model.encode(source), search.max_steps)
        tokens = torch.full((len(source), 1), BOS, device=source.device)
        while True:
            features, state = model.step(tokens, state)
            tokens, beams = search.advance(candidates(model.readout, features, forbidden, search.num_candidates))
            open_rows = (~search.done).nonzero()[:, 0]
            if len(open_rows) == 0:
                return
            if len(open_rows) < _WORTH_KEEPING * len(tokens):
                search.keep(open_rows)
                state = state.keep(open_rows)
                tokens = tokens[open_rows]
                beams = None if beams is None else beams[open_rows]
            if beams is not None:
                state = state.reorder(beams)


@contextmanager
def _evaluating(model: object) -> Iterator[None]:
    """Dropout off, and each part's own mode back afterwards."""
    training = [part for part in model.modules() if part.training] if isinstance(model, nn.Module) else []
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True
