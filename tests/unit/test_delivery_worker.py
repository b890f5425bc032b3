"""While the lake is away, the courier tries again with growing patience, and says why."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

import pytest

from collector.delivery.worker import DeliveryWorker
from collector.errors import CommitError, SpoolError
from collector.telemetry.agent_stats import AgentStats

if TYPE_CHECKING:
    from collections.abc import Iterator


class FakeClock:
    now_us = 0

    def wall_us(self) -> int:
        return self.now_us

    def steady_us(self) -> int:
        return self.now_us


class Rows(list[int]):
    """What a delivery holds in memory; a list that can be watched."""


class FakeDelivery:
    """Gives what it is told: batches that were delivered, or what was wrong."""

    def __init__(self, *answers: int | Exception) -> None:
        self.answers: Iterator[int | Exception] = iter(answers)
        self.tried = 0
        self.held: list[weakref.ref[Rows]] = []

    def deliver_next(self) -> int:
        self.tried += 1
        rows = Rows()
        self.held.append(weakref.ref(rows))
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


class FakeStop(threading.Event):
    """Is not waited for: it notes for how long it would have been."""

    def __init__(self, delivery: FakeDelivery, stop_after: int = 1000) -> None:
        super().__init__()
        self.waits: list[float] = []
        self._delivery, self._stop_after = delivery, stop_after

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        assert self._delivery.held[-1]() is None, "ten minutes long it would be kept in memory"
        self.waits.append(timeout)
        if len(self.waits) >= self._stop_after:
            self.set()
        return self.is_set()


def away() -> CommitError:
    return CommitError("the lake is away")


def count(stats: AgentStats, what: str) -> float | None:
    return stats.registry.get_sample_value(f"jmxlake_agent_{what}_total")


def courier(
    delivery: FakeDelivery, said: list[str], stats: AgentStats | None = None
) -> DeliveryWorker:
    return DeliveryWorker(delivery.deliver_next, FakeClock(), stats or AgentStats(), said.append)


def test_it_tries_until_all_is_delivered_and_says_each_failure() -> None:
    delivery, said, stats = FakeDelivery(3, away(), away(), 64, 1, 0), list[str](), AgentStats()
    stop = FakeStop(delivery)
    courier(delivery, said, stats).deliver(stop)
    assert said == ["the lake is away"] * 2
    assert delivery.tried == 6
    assert (stats.delivered, stats.lake_reached) == (68, True)
    assert count(stats, "commits") == 68
    assert count(stats, "commit_failures") == 2


def test_the_pauses_grow_to_ten_minutes_and_differ_from_agent_to_agent() -> None:
    waits = []
    for _ in range(50):
        delivery = FakeDelivery(*(away() for _ in range(14)), 0)
        stop = FakeStop(delivery)
        courier(delivery, []).deliver(stop)
        waits.append(stop.waits)
    for attempt, bound in enumerate([2, 4, 8, 16, 32, 64, 128, 256, 512, *[600] * 5]):
        paused = [one[attempt] for one in waits]
        assert 0 <= min(paused) <= max(paused) <= bound
        assert len(set(paused)) == 50, "full jitter"
        assert max(paused) > bound / 4, "it grows"  # all 50 below a quarter: 1 case in 10^30


def test_what_landed_begins_the_pauses_anew() -> None:
    delivery = FakeDelivery(*(away() for _ in range(9)), 64, away(), 0)
    stop = FakeStop(delivery)
    courier(delivery, []).deliver(stop)
    assert stop.waits[-1] <= 2


@pytest.mark.parametrize(("failure", "reached"), [(away(), False), (SpoolError("full"), True)])
def test_a_lake_that_goes_away_is_not_reached_any_longer(
    failure: Exception, *, reached: bool
) -> None:
    delivery, stats = FakeDelivery(3, failure), AgentStats()
    with pytest.raises(type(failure)):
        courier(delivery, [], stats).drain()
    assert stats.lake_reached == reached


def test_stop_ends_the_waiting() -> None:
    delivery, said, stats = FakeDelivery(*(away() for _ in range(99))), list[str](), AgentStats()
    stop = FakeStop(delivery, stop_after=3)
    with pytest.raises(CommitError, match="the lake is away"):
        courier(delivery, said, stats).deliver(stop)
    assert delivery.tried == 4
    assert not stats.lake_reached


def test_stop_wakes_it_from_its_pause() -> None:
    class Waiting(FakeDelivery):
        def deliver_next(self) -> int:
            tried.set()
            raise away()

    tried, stop, ended = threading.Event(), threading.Event(), threading.Event()

    def run() -> None:
        with pytest.raises(CommitError):
            courier(Waiting(), []).deliver(stop)
        ended.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert tried.wait(60)
    stop.set()
    assert ended.wait(60)
    thread.join(60)


def test_what_is_not_the_lakes_is_not_tried_again_here() -> None:
    """The agent knows best what a spool that cannot be read means."""
    delivery, stats = FakeDelivery(SpoolError("the disk is gone"), 0), AgentStats()
    stop = FakeStop(delivery)
    with pytest.raises(SpoolError):
        courier(delivery, [], stats).deliver(stop)
    assert stop.waits == []
    assert count(stats, "commit_failures") == 1


def test_a_farewell_is_bounded_and_not_repeated() -> None:
    delivery = FakeDelivery(2, away())
    with pytest.raises(CommitError):
        courier(delivery, []).drain()
    assert delivery.tried == 2

    clock, endless = FakeClock(), FakeDelivery(*[1] * 100)

    class Slow(FakeDelivery):
        def deliver_next(self) -> int:
            clock.now_us += 10_000_000
            return endless.deliver_next()

    DeliveryWorker(Slow().deliver_next, clock, AgentStats(), lambda _: None).drain()
    assert endless.tried == 3
