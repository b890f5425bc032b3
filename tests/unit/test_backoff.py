"""Whom we could not reach is left alone for a while, and the last error is told meanwhile."""

from __future__ import annotations

import pytest

from collector.errors import SourceRefusedError
from collector.sources.backoff import Backoff


class FakeClock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def waits(clock: FakeClock, backoff: Backoff) -> float:
    began = clock.now
    while True:
        try:
            backoff.check()
        except SourceRefusedError:
            clock.now += 0.01
        else:
            return clock.now - began


def test_it_waits_longer_after_each_failure_and_never_longer_than_five_seconds() -> None:
    clock = FakeClock()
    backoff = Backoff(clock)
    backoff.check()
    found = []
    for _ in range(8):
        backoff.failed(SourceRefusedError("nobody listens there"))
        with pytest.raises(SourceRefusedError, match="nobody listens there"):
            backoff.check()
        found.append(waits(clock, backoff))
    for number, wait in enumerate(found):
        longest = min(0.5 * 2**number, 5.0)
        assert longest / 2 - 0.01 <= wait <= longest + 0.01


def test_after_a_success_it_begins_anew() -> None:
    clock = FakeClock()
    backoff = Backoff(clock)
    for _ in range(5):
        backoff.failed(SourceRefusedError("down"))
    backoff.succeeded()
    backoff.check()
    backoff.failed(SourceRefusedError("down"))
    assert waits(clock, backoff) <= 0.51
