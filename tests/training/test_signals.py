import os
import signal
import threading

import pytest

from regard.training.signals import Interrupted, StopSignals


def handlers():
    return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_wish_and_handlers_come_back(number):
    before, said = handlers(), []
    with StopSignals(said.append) as signals:
        assert signals.received is None
        os.kill(os.getpid(), number)
        assert signals.received == number
    assert handlers() == before
    assert len(said) == 1
    assert signal.Signals(number).name in said[0]


def interrupt_and_then(number):
    with StopSignals(lambda _: None):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), number)


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_the_second_signal_ends_at_once(number, error):
    before = handlers()
    with pytest.raises(error) as caught:
        interrupt_and_then(number)
    assert handlers() == before
    if number == signal.SIGTERM:
        assert caught.value.code == 143


def test_a_block_that_may_be_abandoned_is():
    with StopSignals(lambda _: None) as signals:
        with pytest.raises(Interrupted), signals.may_abandon():
            os.kill(os.getpid(), signal.SIGINT)
        assert signals.received == signal.SIGINT


def test_a_block_that_may_be_abandoned_is_not_even_begun_after_a_signal():
    with StopSignals(lambda _: None) as signals:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Interrupted), signals.may_abandon():
            pytest.fail("begun")


def test_a_block_that_may_not_be_abandoned_goes_on():
    with StopSignals(lambda _: None) as signals, signals.may_abandon(False):
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.received == signal.SIGINT


def test_handlers_come_back_after_an_error():
    before = handlers()
    with pytest.raises(ValueError, match="mine"), StopSignals(lambda _: None):
        raise ValueError("mine")
    assert handlers() == before


def test_another_thread_trains_without_handlers():
    before, seen = handlers(), []

    def train():
        with StopSignals(lambda _: None):
            seen.append(handlers())

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert seen == [before]
