"""While the lake is unavailable, the worker retries with growing pauses and reports why."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

import pytest

from collector.agent.schedule import DeliveryWorker
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
    """Memory of a delivery: a list with weak references."""


class FakeDelivery:
    """Returns configured numbers of batches, or raises configured errors."""

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
    """Records the pauses without waiting."""

    def __init__(self, delivery: FakeDelivery, stop_after: int = 1000) -> None:
        super().__init__()
        self.waits: list[float] = []
        self._delivery, self._stop_after = delivery, stop_after

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        assert self._delivery.held[-1]() is None, "it would stay in memory for ten minutes"
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


def test_worker_retries_and_reports_each_failure() -> None:
    delivery, said, stats = FakeDelivery(3, away(), away(), 64, 1, 0), list[str](), AgentStats()
    stop = FakeStop(delivery)
    courier(delivery, said, stats).deliver(stop)
    assert said == ["the lake is away"] * 2
    assert delivery.tried == 6
    assert (stats.delivered, stats.lake_error) == (68, None)
    assert count(stats, "commits") == 68
    assert count(stats, "commit_failures") == 2


def test_pauses_grow_to_ten_minutes_with_jitter() -> None:
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


def test_delivered_group_resets_the_pauses() -> None:
    delivery = FakeDelivery(*(away() for _ in range(9)), 64, away(), 0)
    stop = FakeStop(delivery)
    courier(delivery, []).deliver(stop)
    assert stop.waits[-1] <= 2


@pytest.mark.parametrize(
    ("failure", "error"), [(away(), "the lake is away"), (SpoolError("full"), None)]
)
def test_only_an_error_of_the_lake_is_its_state(failure: Exception, error: str | None) -> None:
    delivery, stats = FakeDelivery(3, failure), AgentStats()
    with pytest.raises(type(failure)):
        courier(delivery, [], stats).drain()
    assert stats.lake_error == error


def test_stop_ends_the_wait() -> None:
    delivery, said, stats = FakeDelivery(*(away() for _ in range(99))), list[str](), AgentStats()
    stop = FakeStop(delivery, stop_after=3)
    with pytest.raises(CommitError, match="the lake is away"):
        courier(delivery, said, stats).deliver(stop)
    assert delivery.tried == 4
    assert stats.lake_error == "the lake is away"


def test_stop_ends_a_pause() -> None:
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


def test_errors_of_the_spool_are_not_retried() -> None:
    """The agent handles an unreadable spool."""
    delivery, stats = FakeDelivery(SpoolError("the disk is gone"), 0), AgentStats()
    stop = FakeStop(delivery)
    with pytest.raises(SpoolError):
        courier(delivery, [], stats).deliver(stop)
    assert stop.waits == []
    assert count(stats, "commit_failures") == 1


def test_drain_is_limited_and_not_retried() -> None:
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
