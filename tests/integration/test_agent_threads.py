"""The agent's threads: real scheduler, spool and recorder; a fake source, clock and delivery."""

from __future__ import annotations

import datetime as dt
import logging
import statistics
import threading
import time
from typing import TYPE_CHECKING, Any

import apscheduler.executors.base
import apscheduler.schedulers.base
import pytest

from collector.agent import schedule
from collector.agent.agent import Agent
from collector.agent.plan import Plan, Task
from collector.agent.scrape_attempt import Scraper
from collector.catalogue import Family, Metric
from collector.config.schema import Limits
from collector.errors import CommitError, ConfigError, SourceTimeoutError, SpoolError
from collector.model import Answer, Identity, Reading, Series
from collector.settings import Size
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

S = 1_000_000
_SECONDS = 60
METRIC = Metric(name="m", unit="1", description="", object="a:b=c")


class FakeClock:
    """The host's clocks; the wall clock can be set."""

    def __init__(self) -> None:
        self.offset = 0.0

    def wall_us(self) -> int:
        return round((time.time() + self.offset) * S)

    def steady_us(self) -> int:
        return time.monotonic_ns() // 1_000


class FakeSource:
    """A source that answers, fails or hangs, and records its requests."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.closed = False
        self.fails = False
        self.hangs, self.hung = threading.Event(), threading.Event()
        self.hangs.set()

    def identify(self) -> Identity:
        return Identity("c", "1", "4.3.1", 1)

    def read(self, _: Family) -> Answer:
        self.asked.append(time.time())
        if not self.hangs.is_set():
            self.hung.set()
        self.hangs.wait(300)
        if self.fails:
            raise SourceTimeoutError("it hangs")
        return Answer((Reading("m", "gauge", frozenset({Series("m")})),), 1)

    def close(self) -> None:
        self.closed = True


class FakeDelivery:
    """Takes batches as long as it does not fail."""

    def __init__(self) -> None:
        self.fails = False
        self.calls_failed = 0

    def deliver_next(self) -> int:
        if self.fails:
            self.calls_failed += 1
            raise CommitError("the lake is away")
        return 0


class FakeReload:
    """A reload with a plan or an error."""

    is_open = False

    def __init__(self) -> None:
        self.next: Plan | Exception | None = None

    def found(self) -> None:
        return None

    def adopted(self) -> None:
        return None

    def wanted(self) -> bool:
        return self.next is not None

    def plan(self) -> Plan:
        found, self.next = self.next, None
        if isinstance(found, Exception):
            raise found
        assert found is not None
        return found


class Stage:
    """An agent of one or more families, each with a source of its own."""

    def __init__(
        self,
        spool: Spool,
        families: int = 1,
        window_us: int = 300 * S,
        limits: Limits | None = None,
    ) -> None:
        self.clock, self.delivery = FakeClock(), FakeDelivery()
        self.recorder = Recorder(spool, Scope({"broker-1": None}, {}, "hash"), window_us)
        self.spool, self.stop = spool, threading.Event()
        self.sources = [FakeSource() for _ in range(families)]
        tasks = [
            Task(_family(number), S, Scraper(source, self.clock), f"via-{number}")
            for number, source in enumerate(self.sources)
        ]
        self.tasks, self.reload = tasks, FakeReload()
        deliver = self.delivery.deliver_next
        self.agent = Agent(tasks, self.recorder, deliver, S, self.clock, limits=limits)
        about = {"version": "1", "config": "2", "catalogue": "3", "lake": "/lake"}
        self._thread = threading.Thread(
            target=self.agent.run, args=(self.stop, self.reload, about, ())
        )

    def __enter__(self) -> Stage:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for source in self.sources:
            source.hangs.set()
        self.stop.set()
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive()

    def await_asked(self, times: int, source: int = 0) -> None:
        """Wait for a number of further requests of a source."""
        asked = self.sources[source].asked
        before = len(asked)
        wait_for(lambda: len(asked) >= before + times, _SECONDS)

    def interval(self) -> float | None:
        """The cadence of the first family as /metrics shows it."""
        labels = {"source": "", "family": "family-0"}
        return self.agent.stats.registry.get_sample_value("jmxlake_agent_interval_seconds", labels)

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for waiting in self.spool.waiting(1 << 30):
            found += waiting.batch.rows.get(table, [])
            self.spool.acknowledge(waiting.number)
        return found


def _family(number: int) -> Family:
    return Family(
        name=f"family-{number}", via="jmx", cadence_seconds=1, roles=("broker",), metrics=(METRIC,)
    )


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        yield spool


def test_unwritable_spool_stops_neither_start_nor_end(
    spool: Spool,
) -> None:
    stage = Stage(spool)
    stage.delivery.fails = True
    spool.close()

    def stop_when_asked() -> None:
        stage.await_asked(1)
        stage.stop.set()

    stopper = threading.Thread(target=stop_when_asked)
    stopper.start()
    with pytest.raises(SpoolError):
        stage.agent.run(stage.stop)
    stopper.join()
    assert stage.agent.stats.spool_error
    assert stage.delivery.calls_failed, "what is in the spool may be delivered all the same"
    assert stage.sources[0].closed


def test_failed_read_of_owners_is_one_line_and_stops_no_scrape(
    spool: Spool, caplog: pytest.LogCaptureFixture
) -> None:
    stage, read = Stage(spool), threading.Event()

    def read_owners() -> None:
        read.set()
        raise CommitError("the table is missing")

    def stop_when_read() -> None:
        read.wait(_SECONDS)
        stage.await_asked(2)
        stage.stop.set()

    stopper = threading.Thread(target=stop_when_read)
    stopper.start()
    with caplog.at_level(logging.WARNING):
        stage.agent.run(stage.stop, read_owners=read_owners)
    stopper.join()
    assert caplog.text.count("the table is missing") == 1


def test_scrapes_come_at_ticks_of_the_epoch(spool: Spool) -> None:
    """Most of the last five do. A busy machine can delay some."""
    with Stage(spool) as stage:
        stage.await_asked(6)  # the first one comes at the start
        asked = stage.sources[0].asked
        wait_for(lambda: statistics.median(at % 1 for at in asked[-5:]) < 0.3, _SECONDS)


@pytest.mark.parametrize("step", [-3600.0, 365 * 86400.0], ids=["an hour back", "a year forward"])
def test_a_clock_that_is_set_stops_nothing(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    with Stage(spool) as stage:
        clock = stage.clock

        class Shifted(dt.datetime):
            @classmethod
            def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
                return dt.datetime.fromtimestamp(time.time() + clock.offset, tz)

        for module in (apscheduler.schedulers.base, apscheduler.executors.base, schedule):
            monkeypatch.setattr(module, "datetime", Shifted)
        stage.await_asked(2)
        clock.offset = step
        stage.await_asked(4)
    events = stage.rows("events")
    assert [event[4] for event in events] == ["agent_start", "clock_step"]


def test_a_source_that_hangs_delays_no_other(spool: Spool) -> None:
    with Stage(spool, families=2) as stage:
        stage.await_asked(1)
        stage.sources[0].hangs.clear()
        assert stage.sources[0].hung.wait(_SECONDS)
        stage.await_asked(4, source=1)
        stage.sources[0].hangs.set()
        stage.await_asked(1)
    outcomes = {(row[3], row[6]) for row in stage.rows("scrapes")}
    assert ("family-0", "timeout") in outcomes
    assert ("family-0", "skipped") in outcomes
    assert {outcome for family, outcome in outcomes if family == "family-1"} == {"ok"}


def test_a_full_disk_is_one_line_and_the_agent_goes_on(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused: list[bytes] = []

    def full(entry: bytes) -> None:
        refused.append(entry)
        raise SpoolError("spool: database or disk is full")

    with Stage(spool) as stage:
        stage.await_asked(2)
        with monkeypatch.context() as patch:
            patch.setattr(spool, "append", full)
            wait_for(lambda: len(refused) >= 3, _SECONDS)
        stage.await_asked(3)
    assert caplog.text.count("database or disk is full") == 1
    assert "Traceback" not in caplog.text
    assert sum(row[7] for row in stage.rows("scrapes")) >= 3


def test_a_lake_that_is_away_is_one_line_until_it_is_back(
    spool: Spool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def says(text: str) -> bool:
        return text in caplog.text

    with Stage(spool) as stage:
        stage.delivery.fails = True
        wait_for(lambda: stage.delivery.calls_failed >= 3, _SECONDS)
        stage.await_asked(4)  # it goes on reading meanwhile; the fourth may not be kept yet
        assert not says("recovered")
        stage.delivery.fails = False
        wait_for(lambda: says("recovered"), _SECONDS)
    assert caplog.text.count("the lake is away") == 1
    assert sum(row[7] for row in stage.rows("scrapes")) >= 3


def test_start_logs_version_configuration_and_catalogue(spool: Spool) -> None:
    with Stage(spool) as stage:
        stage.await_asked(1)
    (event,) = stage.rows("events")
    assert event[4] == "agent_start"
    assert event[-1] == "version=1 config=2 catalogue=3"


def test_at_its_end_it_waits_for_no_source_that_hangs(spool: Spool) -> None:
    stage = Stage(spool, families=2)
    stage.sources[0].hangs.clear()
    ended = threading.Event()

    def run() -> None:
        stage.agent.run(stage.stop)
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    stage.await_asked(2, source=1)
    stage.stop.set()
    try:
        assert ended.wait(_SECONDS), "it waits for the source"
        assert stage.sources[1].closed
        rows = stage.rows("scrapes")
        assert {row[3] for row in rows} >= {"family-1"}, "sealed all the same"
        asked = len(stage.sources[1].asked)
        stage.agent._scrape(stage.tasks[1])
        assert len(stage.sources[1].asked) == asked, "what was queued behind it is let be"
    finally:
        stage.sources[0].hangs.set()


def test_reload_that_cannot_be_kept_is_refused(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise SpoolError("spool: database or disk is full")

    with Stage(spool) as stage:
        stage.await_asked(1)
        plan = Plan(
            [stage.tasks[0]._replace(interval_us=2 * S)], Scope({"broker-1": None}, {}, "hash")
        )
        with monkeypatch.context() as patch:
            patch.setattr(stage.recorder, "reconfigure", full)
            stage.reload.next = plan
            wait_for(lambda: "config_reload_rejected" in caplog.text, _SECONDS)
        assert stage.interval() == 1
        stage.reload.next = ConfigError("window: is wrong")
        wait_for(lambda: "window: is wrong" in caplog.text, _SECONDS)
        stage.reload.next = plan
        wait_for(lambda: stage.interval() == 2, _SECONDS)
    registry = stage.agent.stats.registry
    assert registry.get_sample_value("jmxlake_agent_reloads_total") == 3
    assert registry.get_sample_value("jmxlake_agent_reload_failures_total") == 2


def test_family_above_row_limit_is_coarsened_with_an_event(spool: Spool) -> None:
    limits = Limits(window_rows=0, memory=Size("1024GiB"))
    with Stage(spool, window_us=5 * S, limits=limits) as stage:
        stats = stage.agent.stats
        wait_for(lambda: stats.factors == {"family-0": 0}, _SECONDS)
        assert stage.interval() is None
    events = [(row[4], row[-2], row[-1]) for row in stage.rows("events")]
    assert events[1:] == [("family_coarsened", "family-0 every 1 s", "family-0 not read")]
