"""Contracts of edits: what is said to be changed is changed, in the context and in the recording, and nothing else is.

A subject has `build(rate, seed)` and is called by `answer`, which serves translators and classifiers alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress

import torch
from torch import Tensor, nn

import regard
from regard.core.errors import EditError
from regard.core.seq2seq import Seq2Seq
from regard.core.special import BOS
from regard.core.tap import taps
from regard.recording import Recording, edits

from .classifier_subjects import pictures
from .model_checks import Subject
from .subjects import SOURCE_VOCABULARY, batch

Edit = Callable[..., AbstractContextManager[None]]


def answer(model: nn.Module, seed: int = 0) -> Tensor:
    """What the model says to a batch."""
    with torch.no_grad():
        if isinstance(model, Seq2Seq):
            return model(*batch(seed)).logits
        return model(pictures(seed)).logits


def check_muting_everything_leaves_no_context(subject: Subject, edit: Edit = regard.edit) -> None:
    """The values are not seen any more: with all heads muted, it does not matter what they were."""
    model = opened(subject)
    before = answer(model)
    with edit(model, {"*": edits.mute()}), regard.record(model) as recording:
        muted = answer(model)
    assert not torch.equal(muted, before), "muting every head changes nothing"
    assert not any(recording[address].weights().any() for address in recording), "not recorded as muted"
    for address in {next(iter(recording)), list(recording)[-1]}:
        with edit(model, {address: edits.mute()}):
            one = answer(model)
        with edit(model, {address: edits.mute()}), edit(model, {address: edits.uniform()}):
            level = answer(model)
        with edit(model, {address: [edits.uniform(), edits.mute()]}):
            again = answer(model)
        assert torch.equal(answer(model), before), "an edit stays when its block has ended"
        assert torch.equal(one, again), f"what {address} looked at matters though it is muted"
        assert not torch.equal(one, level) or level_is_silent(model, address), f"{address} stays muted"


def check_an_identity_changes_nothing(subject: Subject, edit: Edit = regard.edit) -> None:
    """The model's own relation, put in its place, gives the model's own answer; so does keeping every head."""
    model = opened(subject)
    before, recording = answer(model), recorded(model)
    with edit(model, {address: edits.freeze(recording[address]) for address in recording}):
        torch.testing.assert_close(answer(model), before, rtol=1e-4, atol=1e-5)
    with edit(model, {"*": edits.keep()}):
        torch.testing.assert_close(answer(model), before, rtol=1e-4, atol=1e-5)
    assert torch.equal(answer(model), before), "something of an edit stays"


def check_a_frozen_relation_is_looked_at(subject: Subject, edit: Edit = regard.edit) -> None:
    """The relation of uniform heads, frozen, gives what uniform heads give; it is what is recorded then."""
    model = opened(subject)
    with edit(model, {"*": edits.uniform()}), regard.record(model) as level:
        expected = answer(model)
    assert not torch.equal(expected, answer(model)), "uniform heads change nothing"
    with (
        edit(model, {address: edits.freeze(level[address]) for address in level}),
        regard.record(model) as frozen,
    ):
        torch.testing.assert_close(answer(model), expected, rtol=1e-4, atol=1e-5)
    address = list(level)[-1]
    weights = level[address].weights()
    torch.testing.assert_close(frozen[address].weights(), weights, rtol=1e-5, atol=1e-6)
    used = weights > 0
    spread = used.float() / used.sum(dim=-1, keepdim=True).clamp(min=1)
    if level[address].relation.form != "grouped":  # places may share a place on the grid
        torch.testing.assert_close(weights, spread, rtol=1e-5, atol=1e-6, msg=f"{address} is not uniform")


def check_heads_are_addressed_one_by_one(subject: Subject, edit: Edit = regard.edit) -> None:
    """An edit of one head leaves the others as they were recorded, and two heads that are swapped exchange rows."""
    model = opened(subject)
    recording = recorded(model)
    first = next(iter(recording))
    heads, before = recording[first].shape[1], recording[first].weights()
    with edit(model, {first: edits.mute(heads - 1)}), regard.record(model, taps=first) as muted:
        answer(model)
    weights = muted[first].weights()
    assert not weights[:, -1].any(), "the head that was named is not muted"
    torch.testing.assert_close(weights[:, :-1], before[:, :-1], rtol=1e-5, atol=1e-6)
    if heads > 1:
        with edit(model, {first: edits.swap(0, heads - 1)}), regard.record(model, taps=first) as swapped:
            answer(model)
        order = [heads - 1, *range(1, heads - 1), 0]
        torch.testing.assert_close(swapped[first].weights(), before[:, order], rtol=1e-5, atol=1e-6)


def check_steps_under_edits_equal_the_whole(subject: Subject, edit: Edit = regard.edit) -> None:
    """Hypotheses that grow, fork, die and leave, while rows are frozen, replaced and heads made uniform."""
    model = opened(subject)
    if not isinstance(model, Seq2Seq):
        return
    source, _ = batch()
    generator = torch.Generator().manual_seed(4)
    written = torch.randint(4, SOURCE_VOCABULARY, (len(source), 4), generator=generator)
    written[:, 0] = BOS
    with regard.record(model) as recording, torch.no_grad():
        model(source, written)
    reading = [address for address, tap in taps(model).items() if tap.queries == "target"]

    def changes(examples: Tensor | None) -> dict[str, list[edits.Edit]]:
        given: dict[str, list[edits.Edit]] = {}
        for address in reading:
            relation = recording[address].relation
            frozen = edits.freeze(relation if examples is None else relation.select(examples))
            given[address] = [edits.uniform(), frozen, edits.replace(1, [1.0] + [0.0] * (relation.num_keys - 1))]
        return given

    with torch.no_grad():
        state = model.start(model.encode(source), max_length=9)
        prefixes, examples = torch.full((len(source), 1, 1), BOS), torch.arange(len(source))
        for kept, width in (([0, 1, 2], 3), ([2, 0], 3), ([0, 1], 2), ([1], 5), ([0], 1)):
            with suppress(EditError), edit(model, changes(None)):
                value, state = model.step(prefixes[:, :, -1], state)
            beside = examples.repeat_interleave(prefixes.shape[1])
            with suppress(EditError), edit(model, changes(beside)):
                # One more position than is looked at, so that the replaced query is there from the first step on.
                longer = torch.nn.functional.pad(prefixes.flatten(0, 1), (0, 1), value=5)
                whole = model(source.repeat_interleave(prefixes.shape[1], dim=0), longer).features[:, -2]
            torch.testing.assert_close(value.flatten(0, 1), whole, rtol=1e-4, atol=1e-5)
            sentences = torch.tensor(kept)
            beams = torch.randint(prefixes.shape[1], (len(kept), width), generator=generator)
            following = torch.randint(4, SOURCE_VOCABULARY, (len(kept), width, 1), generator=generator)
            source, state, examples = source[sentences], state.keep(sentences).reorder(beams), examples[sentences]
            prefixes = torch.cat([prefixes[sentences[:, None], beams], following], dim=2)


def check_an_idle_edit_is_named(subject: Subject, edit: Edit = regard.edit) -> None:
    model = opened(subject)
    address, message = list(taps(model))[-1], ""
    try:
        with edit(model, {address: edits.mute()}):
            pass
    except EditError as error:
        message = str(error)
    assert f"mute at {address}" in message, "an edit that never took effect is passed over in silence"


def opened(subject: Subject) -> nn.Module:
    """The model in evaluation, with no gate that would hide its attention at the start."""
    model = subject.build().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("gate"):
                parameter.fill_(1.0)
    return model


def recorded(model: nn.Module) -> Recording:
    with regard.record(model) as recording:
        answer(model)
    return recording


def level_is_silent(model: nn.Module, address: str) -> bool:
    """Whether nothing but muting could be seen anyway, because one query or key is all there is."""
    return min(recorded(model)[address].shape[2:]) == 1


def checks() -> Iterator[tuple[str, Callable[..., None]]]:
    for name, value in globals().items():
        if name.startswith("check_"):
            yield name.removeprefix("check_"), value


CHECKS = dict(checks())
