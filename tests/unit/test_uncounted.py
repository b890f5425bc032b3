"""Counters: figures beside time in which counts may be lost are "at least", others are bounded."""

from __future__ import annotations

import datetime as dt
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from deltalake import write_deltalake

from collector.delivery import arrow
from collector.encoding.bronze_rows import Origin, batches_of
from collector.encoding.encoder import Encoder
from collector.model import Answer, Identity, Reading, Scrape, Series
from collector.sources.base.error_mapping import NOTHING_LISTENS
from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts import build
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.uncounted import Stretch, hidden
from tests import rollups
from tests.lake_builder import BASE, CLUSTER, made, micros

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse.tables import Table

PRODUCE = "kafka.broker.produce.answers"
WINDOW, PERIOD, LAST = 300, (300, 1200), 1500
"""A report is on three windows of five, seconds after the base."""
S = 1_000_000


class Broker(NamedTuple):
    """What happened to a broker, at seconds after the base.

    Attributes:
        stops: From the end of a process to the start of the next.
        unread: When attempts time out.
        agents: When another agent takes over.
        since: When the agent reads for the first time.
        until: When it reads for the last time.
    """

    stops: tuple[tuple[float, float], ...] = ()
    unread: tuple[tuple[float, float], ...] = ()
    agents: tuple[float, ...] = ()
    since: float = 0
    until: float = LAST
    every: float = 7.3


def within(at: float, spans: tuple[tuple[float, float], ...]) -> bool:
    return any(start <= at < end for start, end in spans)


def errors_of(broker: Broker) -> list[float]:
    """When the broker truly answered an error."""
    every = (number * broker.every for number in range(int(LAST / broker.every)))
    return [at for at in every if not within(at, broker.stops)]


def scrape(broker: Broker, errors: list[float], at: int) -> Scrape:
    """What an attempt finds."""
    asked, interval = micros(at), 10 * S
    if within(at, broker.stops):
        return Scrape("requests", asked, asked, asked, interval, "refused", error=NOTHING_LISTENS)
    if within(at, broker.unread):
        return Scrape("requests", asked, asked, asked, interval, "timeout", error="no answer")
    began = max((end for _, end in broker.stops if end <= at), default=-3600.0)
    count = float(sum(began <= one < at for one in errors))
    values: dict[Series, float | None] = {
        Series(PRODUCE, labels=(("error", "NONE"),)): 3 * count,
        Series(PRODUCE, labels=(("error", "SICK"),)): count,
    }
    good: dict[Series, float | None] = {Series(f"{PRODUCE}_good"): 3 * count}
    readings = (
        Reading(PRODUCE, "counter", frozenset(), values),
        Reading(f"{PRODUCE}_good", "counter", frozenset(), good),
    )
    answer = Answer(readings, 3)
    identity = Identity(CLUSTER, "1", "4.3.1", micros(began))
    return Scrape("requests", asked, asked, asked + 1000, interval, "ok", identity, answer)


def scraped(source: str, broker: Broker) -> Iterator[tuple[Table, list[tuple[Any, ...]]]]:
    """Read the broker with the agents' real encoder."""
    errors, until = errors_of(broker), (*broker.agents, broker.until)
    for number, (start, end) in enumerate(zip((broker.since, *broker.agents), until, strict=True)):
        encoder = Encoder(WINDOW * S)
        for at in range(int(start), int(end), 10):
            encoder.record(scrape(broker, errors, at))
        sealed = encoder.flush(micros(end))
        (batch,) = batches_of([(sealed, Origin(CLUSTER, source, "test"))])
        for table in tables.BRONZE:
            yield table, [(*row, f"agent-{number}", 1) for row in batch.rows[table.name]]


def write(lake: Path, brokers: dict[str, Broker]) -> None:
    """Deliver what the agents read, one commit per table."""
    rows: defaultdict[Table, list[tuple[Any, ...]]] = defaultdict(list)
    for source, broker in brokers.items():
        for table, more in scraped(source, broker):
            rows[table] += more
    for table, every in rows.items():
        delta = made(lake, table)
        if every:
            write_deltalake(delta, arrow.to_arrow(table, every), mode="append")


def facts_of(lake: Path, brokers: dict[str, Broker]) -> Any:
    rollups.prepare(lake)
    write(lake, brokers)
    engine = LocalEngine(lakes.at(str(lake)))
    rollup(engine, objective_files.load(), Wanted(tidy="never"))
    start, end = (BASE + dt.timedelta(seconds=at) for at in PERIOD)
    objectives = objective_files.load(objective_files.OPTIONAL)
    return build.facts(engine, objectives, Period(start, end), now=end + dt.timedelta(hours=1))


LOST = {
    "stopped": Broker(stops=((600, 640),)),
    "restarted between two scrapes": Broker(stops=((603, 606),)),
    "stopped for longer than a window": Broker(stops=((450, 900),)),
    "stopped while a period begins": Broker(stops=((290, 330),)),
    "stopped while a period ends": Broker(stops=((1185, 1230),)),
    "stopped for good": Broker(stops=((900, LAST),)),
    "read no more": Broker(until=900),
    "read by another agent after a gap": Broker(unread=((600, 660),), agents=(640,)),
    "not read while a period ends": Broker(unread=((1170, LAST),)),
}
KEPT = {
    "read throughout": Broker(),
    "not read for a while": Broker(unread=((600, 660),)),
    "not read for a window": Broker(unread=((580, 920),)),
    "stopped before the period": Broker(stops=((100, 140),)),
    "stopped after the period": Broker(stops=((1400, 1440),)),
}


def drawn(seed: int) -> Broker:
    """A broker whose faults are drawn at random."""
    by = random.Random(seed)

    def spans(most: int) -> tuple[tuple[float, float], ...]:
        starts = sorted(by.uniform(20, LAST - 20) for _ in range(by.randint(0, most)))
        return tuple((at, at + by.choice([1, 4, 12, 40, 400])) for at in starts)

    agents = tuple(float(by.randint(2, 148) * 10) for _ in range(by.choice([0, 0, 0, 1])))
    return Broker(spans(2), spans(3), agents, every=by.uniform(1, 40))


DRAWN = {f"broker-{1000 + seed}": drawn(seed) for seed in range(60)}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    brokers = {f"broker-{n}": one for n, one in enumerate([*LOST.values(), *KEPT.values()])}
    return facts_of(tmp_path_factory.mktemp("lake"), {**brokers, **DRAWN})


def produced(facts: Any, name: str) -> Any:
    source = f"broker-{[*LOST, *KEPT].index(name)}"
    rows = facts["service"]["brokers"]
    return next(row for row in rows if (row["source"], row["request"]) == (source, "produce"))


@pytest.mark.edge(7)
@pytest.mark.parametrize("name", LOST)
def test_errors_where_counts_may_be_lost_are_at_least(facts: Any, name: str) -> None:
    row = produced(facts, name)
    assert (row["errors_high"], row["answers_high"], row["good_low"]) == (None, None, None)
    assert row["errors_low"] <= true_errors(LOST[name])
    assert row["good_high"] == 1


@pytest.mark.edge(7)
@pytest.mark.parametrize("name", KEPT)
def test_errors_of_a_process_that_went_on_are_bounded(facts: Any, name: str) -> None:
    row, errors = produced(facts, name), true_errors(KEPT[name])
    assert row["errors_low"] <= errors <= row["errors_high"]
    assert row["good_low"] <= 0.75 <= row["good_high"]


def true_errors(broker: Broker) -> int:
    return sum(PERIOD[0] <= at < PERIOD[1] for at in errors_of(broker))


@pytest.mark.edge(7)
def test_sums_over_brokers_are_open_as_one_of_them_is(facts: Any) -> None:
    (row,) = (one for one in facts["service"]["requests"] if one["request"] == "produce")
    (error,) = facts["service"]["errors"]
    assert (row["errors_high"], row["good_low"], error["answers_high"]) == (None, None, None)


def test_bounds_of_counters_contain_the_truth(facts: Any) -> None:
    rows = facts["service"]["brokers"]
    figures = {row["source"]: row for row in rows if row["request"] == "produce"}
    bounded = 0
    for source, broker in DRAWN.items():
        row, errors = figures[source], true_errors(broker)
        assert row["errors_low"] <= errors, (source, broker)
        if row["errors_high"] is not None:
            bounded += 1
            assert errors <= row["errors_high"], (source, broker)
    assert bounded >= 10


@pytest.mark.parametrize(
    ("ok", "broken", "spans"),
    [
        ([(0, 100)], [], []),
        ([(0, 40), (60, 100)], [], []),
        ([(0, 40), (60, 100)], [(50, 61)], [(30, 61)]),
        ([(0, 100)], [(50, 53)], [(40, 53)]),
        ([(10, 100)], [], [(0, 10)]),
        ([(0, 90)], [], [(80, 100)]),
        ([], [], [(0, 100)]),
    ],
)
def test_hidden_time_follows_from_readings_and_restarts(
    ok: list[tuple[int, int]], broken: list[tuple[int, int]], spans: list[tuple[int, int]]
) -> None:
    read = [Stretch(*one, 10) for one in ok]
    own = hidden((0, 100), read, broken, is_one_agent=True, ends_open=False)
    assert own.spans == spans


@pytest.mark.edge(7)
@pytest.mark.parametrize(
    ("name", "unknown_us"),
    [
        ("read throughout", 0),
        ("not read for a while", 60 * S),
        ("restarted between two scrapes", 25 * S),
        ("stopped", (40 + 25) * S),
    ],
)
def test_events_of_a_stopped_broker_are_unknown_time(
    facts: Any, name: str, unknown_us: int
) -> None:
    source = f"broker-{[*LOST, *KEPT].index(name)}"
    (objective,) = (one for one in facts["objectives"] if one["name"] == "produce-availability")
    (row,) = (one for one in objective["subjects"] if one["source"] == source)
    assert row["unknown_us"] == pytest.approx(unknown_us, abs=10 * S)
    assert row["attainment_low"] <= 0.75 <= row["attainment_high"]
