"""Taps: an address in the module tree, and nothing to pay while nobody listens."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from regard.core.relations import DenseRelation, Relation
from regard.core.tap import Tap, is_listening, listening, taps


class Ear:
    def __init__(self) -> None:
        self.heard: list[tuple[Tap, Relation]] = []

    def hear(self, tap: Tap, relation: Relation) -> None:
        self.heard.append((tap, relation))


def make() -> Relation:
    return DenseRelation(torch.ones(1, 1, 1, 1))


def refuse() -> Relation:
    raise AssertionError("a relation was made for nobody")


def test_nothing_is_made_when_nobody_listens() -> None:
    tap = Tap("target", "source")
    assert not tap.open
    tap.emit(refuse)


def test_all_who_listen_hear_the_same() -> None:
    tap, inner, outer = Tap("target", "source"), Ear(), Ear()
    with listening(outer):
        with listening(inner):
            assert tap.open
            assert is_listening(inner)
            tap.emit(make)
        assert not is_listening(inner)
        tap.emit(make)
    assert not tap.open
    assert len(inner.heard) == 1
    assert len(outer.heard) == 2
    assert inner.heard[0] == outer.heard[0]


def test_an_error_ends_the_listening() -> None:
    ear = Ear()

    def fail() -> None:
        with listening(ear):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert not is_listening(ear)


def test_other_threads_are_not_heard() -> None:
    tap, ear = Tap("target", "source"), Ear()
    with listening(ear):
        thread = threading.Thread(target=tap.emit, args=(refuse,))
        thread.start()
        thread.join()
    assert ear.heard == []


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mechanism = nn.Module()
        self.mechanism.tap = Tap("positions", "positions")


def test_addresses_leave_out_how_a_layer_is_built() -> None:
    model = nn.Module()
    model.decoder = nn.ModuleList(Layer() for _ in range(2))
    model.plain = Tap("target", "source")
    assert list(taps(model)) == ["decoder.0", "decoder.1", "plain"]
    assert taps(model)["decoder.1"] is model.decoder[1].mechanism.tap
    assert list(taps(Layer())) == ["attention"], "a mechanism by itself"
    assert taps(nn.Linear(2, 3)) == {}


def test_a_compiled_model_has_the_same_addresses() -> None:
    """`torch.compile` wraps a module in one that holds it as `_orig_mod`; inner modules may be compiled as well."""
    model = nn.Module()
    model._orig_mod = nn.Module()
    model._orig_mod.encoder = nn.Module()
    model._orig_mod.encoder._orig_mod = Layer()
    assert list(taps(model)) == ["encoder"]


def test_two_taps_cannot_share_an_address() -> None:
    model = Layer()
    model.tap = Tap("positions", "positions")
    with pytest.raises(AssertionError, match="would share the address 'attention'"):
        taps(model)


def test_a_tap_has_no_weights_and_says_what_it_relates() -> None:
    tap = Tap("target", "source")
    assert tap.state_dict() == {}
    assert repr(tap) == "Tap(target -> source)"
