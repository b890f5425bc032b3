"""Whom we could not reach is left alone for a while, and the last error is told meanwhile."""

from __future__ import annotations

from itertools import pairwise

import pytest

from collector.errors import SourceRefusedError
from collector.sources.backoff import Backoff


class FakeClock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class FakeHost:
    """Nobody listens there until somebody does; notes when it was tried."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.up = False
        self.tried: list[float] = []

    def __call__(self) -> str:
        self.tried.append(self.clock.now)
        if not self.up:
            raise SourceRefusedError("nobody listens there")
        return "connected"


def try_in_vain(clock: FakeClock, backoff: Backoff, host: FakeHost, times: int) -> None:
    while len(host.tried) < times:
        with pytest.raises(SourceRefusedError, match="nobody listens there"):
            backoff.attempt(host)
        clock.now += 0.01


def test_it_waits_longer_after_each_failure_and_never_longer_than_five_seconds() -> None:
    clock = FakeClock()
    host = FakeHost(clock)
    try_in_vain(clock, Backoff(clock), host, 9)
    assert host.tried[0] == 0
    for number, (before, after) in enumerate(pairwise(host.tried)):
        longest = min(0.5 * 2**number, 5.0)
        assert longest / 2 - 0.01 <= after - before <= longest + 0.011


def test_after_a_success_it_begins_anew() -> None:
    clock = FakeClock()
    backoff, host = Backoff(clock), FakeHost(clock)
    try_in_vain(clock, backoff, host, 5)
    clock.now += 5
    host.up = True
    assert backoff.attempt(host) == "connected"
    assert backoff.attempt(host) == "connected"
    host.up = False
    try_in_vain(clock, backoff, host, 7 + 2)
    assert host.tried[-1] - host.tried[-2] <= 0.52
