"""A signal to stop may come at any instant, also while the main loop holds the event's lock."""

from __future__ import annotations

import signal
import threading

from collector.cli import run
from lakehouse.cli import options


def test_a_signal_while_the_lock_is_held_stops_the_loop_all_the_same() -> None:
    stop, handler = threading.Event(), signal.getsignal(signal.SIGUSR2)

    def too_long(*_: object) -> None:
        raise TimeoutError

    alarm = signal.signal(signal.SIGALRM, too_long)
    signal.signal(signal.SIGUSR2, run.deferred(stop.set))
    signal.alarm(60)
    try:
        with stop._cond:  # as Event.wait does, every two seconds
            signal.raise_signal(signal.SIGUSR2)
        assert stop.wait(50)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGUSR2, handler)


def test_commands_of_the_lakehouse_do_the_same() -> None:
    handlers = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        stop = options.stop_signals()
        with stop._cond:
            signal.raise_signal(signal.SIGTERM)
        assert stop.wait(50)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
