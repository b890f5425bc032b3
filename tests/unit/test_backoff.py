"""Whom we could not reach is left alone for a while, and the last error is told meanwhile."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from collector.errors import CredentialsError, SourceRefusedError
from collector.sources.base.calls import Backoff

if TYPE_CHECKING:
    from pathlib import Path


class FakeClock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class FakeHost:
    """Refuses us until it is up; notes when it was tried."""

    def __init__(self, clock: FakeClock, error: type[SourceRefusedError]) -> None:
        self.clock = clock
        self.error = error
        self.up = False
        self.tried: list[float] = []

    def __call__(self) -> str:
        self.tried.append(self.clock.now)
        if not self.up:
            raise self.error("nothing listens there")
        return "connected"


def try_in_vain(
    clock: FakeClock, backoff: Backoff, host: FakeHost, times: int, step: float = 0.01
) -> None:
    while len(host.tried) < times:
        with pytest.raises(SourceRefusedError, match="nothing listens there"):
            backoff.attempt(host)
        clock.now += step


@pytest.mark.parametrize(
    ("error", "first", "most"), [(SourceRefusedError, 0.5, 5), (CredentialsError, 5, 600)]
)
def test_it_waits_longer_after_each_failure_and_never_longer_than_it_may(
    error: type[SourceRefusedError], first: float, most: float
) -> None:
    clock = FakeClock()
    host = FakeHost(clock, error)
    step = first / 50
    try_in_vain(clock, Backoff(clock=clock), host, 10, step)
    assert host.tried[0] == 0
    for number, (before, after) in enumerate(pairwise(host.tried)):
        longest = min(first * 2**number, most)
        assert longest / 2 - step <= after - before <= longest + 1.1 * step


def test_it_goes_on_trying_however_often_it_has_failed() -> None:
    clock = FakeClock()
    backoff, host = Backoff(clock=clock), FakeHost(clock, SourceRefusedError)
    for _ in range(2_000):
        clock.now += 6
        with pytest.raises(SourceRefusedError):
            backoff.attempt(host)
    assert len(host.tried) == 2_000


def test_credentials_that_have_changed_are_tried_at_once(tmp_path: Path) -> None:
    clock, file = FakeClock(), tmp_path / "password"
    backoff, host = Backoff(file, clock), FakeHost(clock, CredentialsError)
    file.write_text("wrong")
    try_in_vain(clock, backoff, host, 5)
    for text in ("as wrong as before", "right"):
        file.write_text(text)
        with pytest.raises(CredentialsError):
            backoff.attempt(host)
    assert len(host.tried) == 7
    with pytest.raises(CredentialsError):
        backoff.attempt(host)
    assert len(host.tried) == 7, "it did not change again"
    file.unlink()
    host.up = True
    assert backoff.attempt(host) == "connected"


def test_after_a_success_it_begins_anew() -> None:
    clock = FakeClock()
    backoff, host = Backoff(clock=clock), FakeHost(clock, SourceRefusedError)
    try_in_vain(clock, backoff, host, 5)
    clock.now += 5
    host.up = True
    assert backoff.attempt(host) == "connected"
    assert backoff.attempt(host) == "connected"
    host.up = False
    try_in_vain(clock, backoff, host, 7 + 2)
    assert host.tried[-1] - host.tried[-2] <= 0.52
