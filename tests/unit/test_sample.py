"""The sample: its rows are the encoder's, and roll up to what was scripted."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from collector import catalogue
from collector.catalogue.entries import Delays
from collector.encoding.bronze_rows import Batch, Origin, batches_of
from collector.encoding.encoder import Encoder
from collector.model import (
    Answer,
    Commit,
    Event,
    Identity,
    Offsets,
    Partition,
    Reading,
    Scrape,
    Series,
)
from collector.sources.admin.client import PartitionState
from collector.sources.admin.cluster_changes import leader_changes
from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes
from lakehouse.core.metrics import COPY_LAG, LEADERLESS, NODE_FENCED, UNDER_MIN_ISR
from lakehouse.core.periods import DAY_US, micros
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import LakehouseError
from lakehouse.rollup.run import rollup
from lakehouse.sample import bronze, cluster, groups, incidents, values
from lakehouse.sample.cluster import FAMILIES, GROUPS, METRICS, SOURCES, TOPICS
from lakehouse.sample.incidents import Incident
from lakehouse.sample.timeline import Series as SampleSeries
from lakehouse.sample.timeline import leader
from lakehouse.sample.values import SampleValues
from lakehouse.sample.what_scrapes_see import ABSENT, WINDOW_US
from lakehouse.slo.openslo import objective_files
from lakehouse.tables.exposed_metrics import LOST
from tests import lake_builder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse.sample.what_scrapes_see import History

pytestmark = pytest.mark.slow

Row = tuple[Any, ...]
MINUTE = 60_000_000
REQUESTS = "kafka.topic.remote_fetch.requests"
START = micros(dt.datetime(2026, 11, 10, 9, 10, tzinfo=dt.UTC))
UNTIL = START + 30 * WINDOW_US


def incident(kind: Any, name: str, begins: float, minutes: float) -> Incident:
    from_us = START + round(begins * MINUTE)
    return Incident(kind, name, from_us, from_us + round(minutes * MINUTE))


INCIDENTS = (
    incident("slow", "orders", 11, 4.4),
    incident("killed", "broker-2", 24.987, 7),  # it is fenced in the window after
    incident("restarted", "broker-1", 45.1, 1.3),
    incident("restarted", "broker-3", 52, 1),
    incident("throttled", "invoicing", 62, 23.2),  # its end reaches back over a window's start
    incident("throttled", "nightly", 70, 0.3),
    incident("behind", "clicks", 64.95, 40),  # it grows right after a window starts
    incident("late", "audit-archive", 71, 45),
    incident("stuck", "audit-archive", 100, 20),
    incident("busy", "broker-3", 90, 12),
    incident("remote", "clicks", 111, 9.5),
    incident("killed", "broker-1", 125, 3),
)
SCRIPT = SampleValues(START, UNTIL, INCIDENTS)


@pytest.fixture(scope="module")
def encoded() -> dict[str, list[Row]]:
    """What the encoder of each source makes of all samples, until two windows after."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for source in SOURCES:
        for name, rows in _encode(source).rows.items():
            instant = tables.BRONZE[[one.name for one in tables.BRONZE].index(name)].positions
            at = instant.get("start", instant.get("at"))
            found[name] += [one for one in rows if at is None or START <= one[at] < UNTIL]
    return found


@pytest.fixture(scope="module")
def generated() -> dict[str, list[Row]]:
    return {table.name: _plain(bronze.rows([SCRIPT]), table) for table in tables.BRONZE}


@pytest.mark.parametrize(
    "table", [tables.RUNS, tables.SCRAPES, tables.EVENTS], ids=lambda t: t.name
)
def test_every_row_is_the_encoders(
    table: tables.Table, encoded: dict[str, list[Row]], generated: dict[str, list[Row]]
) -> None:
    wanted = Counter(_rounded(row) for row in encoded[table.name])
    assert Counter(generated[table.name]) == wanted


def test_every_set_is_the_encoders(
    encoded: dict[str, list[Row]], generated: dict[str, list[Row]]
) -> None:
    at = tables.RUNS.positions["members"]
    named = {row[at] for row in generated["runs"] if row[at]}
    assert named == {row[0] for row in generated["members"]}
    assert set(generated["members"]) <= set(encoded["members"])


def test_what_a_sample_is_made_for_happens(generated: dict[str, list[Row]]) -> None:
    at = tables.RUNS.positions
    positive = [row for row in generated["runs"] if row[at["value"]]]
    metrics = {row[at["metric"]] for row in positive}
    assert {
        UNDER_MIN_ISR, LEADERLESS, COPY_LAG, *cluster.REMOTE, NODE_FENCED,
        "kafka.client.produce.throttle_time", "kafka.client.fetch.throttle_time", *LOST,
    } <= metrics  # fmt: skip
    throttled = [row for row in positive if row[at["metric"]] in cluster.THROTTLES]
    assert any(row[at["end"]] % WINDOW_US == 0 and row[at["tail_us"]] for row in throttled)
    flags = {flag for row in positive for flag in row[at["flags"]] or ()}
    assert {tables.FLAG_NEXT_POSITIVE, tables.FLAG_PREVIOUS_POSITIVE, tables.FLAG_INCREASE} <= flags
    outcome = tables.SCRAPES.positions["outcome"]
    assert {row[outcome] for row in generated["scrapes"]} == {"ok", "down", "refused"}


def test_metrics_are_read_as_the_catalogue_says() -> None:
    loaded = catalogue.load()
    for name, metric in METRICS.items():
        declared = loaded.metrics[name]
        assert metric.is_counter == (declared.kind == "counter")
        assert metric.memory_us == declared.delays.memory_us
        wrong = (tables.FLAG_KNOWN_WRONG,) if declared.wrong_in(cluster.KAFKA_VERSION) else ()
        spread = (tables.FLAG_DISTRIBUTION,) if declared.percentiles else ()
        assert metric.flags == (*wrong, *spread)
        family = next(one for one in loaded.families if declared in one.metrics)
        assert family.name == metric.family
        assert FAMILIES[family.name].via_jmx == (family.via == "jmx")
        assert FAMILIES[family.name].seconds == family.cadence_seconds


def test_tables_are_made_as_agents_make_them(tmp_path: Path) -> None:
    bronze.write(tmp_path / "lake", [SCRIPT])
    for table in tables.BRONZE:
        made = DeltaTable(str(tmp_path / "lake" / table.path))
        agents = lake_builder.made(tmp_path / "agents", table)
        assert made.schema().to_json() == agents.schema().to_json()
        assert made.metadata().configuration == agents.metadata().configuration
        assert made.metadata().partition_columns == agents.metadata().partition_columns
        assert made.version() == 1
    with pytest.raises(LakehouseError, match="there is a lake already"):
        bronze.write(tmp_path / "lake", [SCRIPT])


def test_a_sample_is_weeks_and_the_days_since() -> None:
    now = dt.datetime(2026, 11, 12, 15, 33, 21, tzinfo=dt.UTC)
    weeks = values.sampled(now, 3, 1)
    assert weeks.start_us == micros(dt.datetime(2026, 10, 19, tzinfo=dt.UTC))
    assert weeks.until_us == micros(dt.datetime(2026, 11, 12, 15, 30, tzinfo=dt.UTC))
    for monday in range(weeks.start_us, weeks.until_us - 7 * DAY_US, 7 * DAY_US):
        kinds = {one.kind for one in weeks.incidents if 0 <= one.from_us - monday < 7 * DAY_US}
        assert kinds == {"killed", "restarted", "slow", "throttled", "behind", "stuck", "remote"}
    assert values.sampled(now, 3, 1) == weeks
    assert values.sampled(now, 3, 2).incidents != weeks.incidents


def test_the_command_writes_where_no_lake_is(tmp_path: Path) -> None:
    asked = ["sample", str(tmp_path / "lake"), "--weeks", "1", "--until"]
    ended = CliRunner().invoke(main, [*asked, "2026-11-09"])
    assert ended.exit_code == 0
    assert "runs; continue with: jmxlake weekly" in ended.output
    (days,) = _read(tmp_path / "lake", tables.RUNS, 'min(start), max("end")')
    assert [one.date() for one in days] == [dt.date(2026, 11, 2), dt.date(2026, 11, 9)]
    ended = CliRunner().invoke(main, [*asked, "2026-11-09"])
    assert ended.exit_code == 1
    assert "there is a lake already" in ended.output
    ended = CliRunner().invoke(main, [*asked, "2999-01-01"])
    assert ended.exit_code == 2
    assert "is in the future" in ended.output


@pytest.fixture(scope="module")
def rolled_up(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SampleValues]:
    """Tuesday to Friday, with all but what happens on other days."""
    root = tmp_path_factory.mktemp("sample") / "lake"
    start = micros(dt.datetime(2026, 11, 10, tzinfo=dt.UTC))
    until = start + 4 * DAY_US
    days = SampleValues(start, until, cluster.usual(1, start, until))
    bronze.write(root, days)
    rollup(LocalEngine(lakes.at(str(root))), objective_files.load())
    return root, days


def _read(root: Path, table: tables.Table, columns: str, where: str = "true") -> list[Row]:
    files = [one.removeprefix("file://") for one in DeltaTable(str(root / table.path)).file_uris()]
    if not files:
        return []
    read = duckdb.read_parquet(files, hive_partitioning=True)
    return read.filter(where).aggregate(columns).order("ALL").fetchall()


def test_a_rollup_rejects_nothing(rolled_up: tuple[Path, SampleValues]) -> None:
    assert _read(rolled_up[0], tables.REJECTED, "reason, count(*)") == []
    hours = _read(rolled_up[0], tables.COVERAGE, 'count(DISTINCT "window")')
    assert hours == [(96,)]


def test_gold_says_how_long_partitions_were_under_min_isr(
    rolled_up: tuple[Path, SampleValues],
) -> None:
    """By the incidents, and by who holds the partitions; a broker that is away cannot say so."""
    root, days = rolled_up
    edge = 10_100_000
    found = _read(
        root, tables.TOPICS, "topic, sum(positive_low_us), sum(positive_high_us), sum(any_us)",
        f"metric = '{UNDER_MIN_ISR}' AND positive_us > 0",
    )  # fmt: skip
    told = {topic: rest for topic, *rest in found}
    assert set(told) == {"orders", "payments"}
    (slow,) = (one for one in days.incidents if one.kind == "slow")
    low, high, any_us = told["orders"]
    scripted = sum(slow.to_us - slow.from_us - p * cluster.SECOND_US for p in (0, 5, 10))
    assert scripted - 3 * 2 * edge <= low <= scripted <= high <= scripted + 3 * 2 * edge
    assert abs(any_us - (slow.to_us - slow.from_us)) < edge
    fenced = _fenced_us(days)
    low, high, any_us = told["payments"]
    assert low <= 4 * fenced <= high  # each broker holds 4 of its 6 partitions
    assert abs(any_us - fenced) < 4 * edge


def test_gold_says_who_had_no_leader_and_who_was_throttled(
    rolled_up: tuple[Path, SampleValues],
) -> None:
    root, days = rolled_up
    found = _read(
        root, tables.TOPICS, "topic, sum(any_low_us), sum(any_high_us)",
        f"metric = '{LEADERLESS}' AND positive_us > 0",
    )  # fmt: skip
    ((topic, low, high),) = found
    assert topic == "scratch"
    assert low <= _fenced_us(days) <= high
    ((user, client_id, low, high),) = _read(
        root, tables.CLIENTS, '"user", client_id, sum(any_low_us), sum(any_high_us)',
        "metric LIKE '%.throttle_time' AND positive_us > 0",
    )  # fmt: skip
    assert (user, client_id) == ("billing", "invoicing")
    throttled = [one for one in days.incidents if one.kind == "throttled"]
    scripted = sum(one.to_us - one.from_us for one in throttled)
    assert scripted - len(throttled) * 80 * cluster.SECOND_US <= low <= scripted <= high
    assert high <= scripted + len(throttled) * 21 * cluster.SECOND_US


def test_gold_says_what_a_group_lost_and_what_was_read_and_waited(
    rolled_up: tuple[Path, SampleValues],
) -> None:
    root, days = rolled_up
    lost = sum(n for p in range(6) for _, n in days.expired("audit-archive", p))
    sums = '"group", topic, sum(offsets_low), sum(offsets_high), sum(unknown_us)'
    assert _read(root, tables.NON_CONSUMED, sums) == [("audit-archive", "audit", lost, lost, 0)]
    (behind,) = (one for one in days.incidents if one.kind == "behind")
    ((topic, lagged_us),) = _read(
        root, tables.TOPICS, "topic, sum(any_us)",
        f"metric = '{COPY_LAG}' AND positive_us > 0",
    )  # fmt: skip
    assert topic == "sessions"
    assert 0.9 < lagged_us / (behind.to_us - behind.from_us) < 1
    remote = [one for one in days.incidents if one.kind == "remote"]
    ((topic, requests),) = _read(
        root, tables.TOPICS, "topic, sum(increase)",
        f"metric = '{REQUESTS}' AND increase > 0",
    )  # fmt: skip
    assert topic == "clicks"
    minutes = sum(one.to_us - one.from_us for one in remote) / MINUTE
    assert requests == pytest.approx(minutes * 3 * 3 * 16, rel=0.02)


def _fenced_us(days: SampleValues) -> int:
    pairs = zip(days.epochs, days.epochs[1:], strict=False)
    return sum(end - at for (at, broker), (end, _) in pairs if broker is not None)


def _encode(source: int) -> Batch:
    encoder = Encoder(WINDOW_US, {name: Delays(one.memory_us) for name, one in METRICS.items()})
    encoder.events.append(Event(START, "agent_start", Series("")))
    for scrape in sorted(_scrapes(source), key=lambda one: one.asked_us):
        assert encoder.accepts(scrape)
        encoder.record(scrape)
    sealed = encoder.flush(UNTIL + 2 * WINDOW_US)
    origin = Origin(cluster.NAME, SOURCES[source], bronze.CATALOGUE)
    return next(batches_of([(sealed, origin)], max_rows=1 << 30))


def _scrapes(source: int) -> Iterator[Scrape]:
    told: defaultdict[str, list[SampleSeries]] = defaultdict(list)
    for series in SCRIPT.series(source):
        told[METRICS[series.subject.metric].family].append(series)
    for family in SCRIPT.families(source):
        reads = SCRIPT.attempts(source, family)
        for number in range(reads.number(START), reads.number(UNTIL + 2 * WINDOW_US)):
            asked, tick = reads.requested(number), number * reads.interval_us
            if any(start <= asked < end for start, end in reads.outages):
                ended = asked + bronze.REFUSED_US
                yield Scrape(
                    family, tick, asked, ended, reads.interval_us, "refused", error=bronze.NOTHING_LISTENS
                )
                continue
            jmx = FAMILIES[family].via_jmx
            identity = Identity(
                cluster.NAME, str(source), cluster.KAFKA_VERSION if jmx else None,
                SCRIPT.started(source, asked) if jmx else 0,
            )  # fmt: skip
            answer = _answer(source, family, told[family], asked)
            yield Scrape(
                family,
                tick,
                asked,
                reads.answered(number),
                reads.interval_us,
                "ok",
                identity,
                answer,
            )


def _answer(source: int, family: str, told: list[SampleSeries], at_us: int) -> Answer:
    started = SCRIPT.started(source, at_us)
    values: dict[str, dict[Series, float | None]] = {one.subject.metric: {} for one in told}
    pulses = [percent for at, percent in SCRIPT.pulses(source) if started < at <= at_us]
    for subject, history, increments, flow in told:
        value = _value(history, at_us)
        if METRICS[subject.metric].is_counter:
            value = sum(amount for at, amount in increments if started < at <= at_us)
            value += flow * sum(pulses)
        if value != ABSENT:
            values[subject.metric][Series(*subject)] = value
    readings = tuple(
        Reading(
            metric,
            "counter" if METRICS[metric].is_counter else "gauge",
            frozenset(series for series, value in found.items() if value == 0),
            {series: value for series, value in found.items() if value != 0},
            METRICS[metric].flags,
        )
        for metric, found in values.items()
        if metric not in LOST
    )
    notices = []
    if family == "leaders":
        before, after = _topics(at_us - FAMILIES[family].seconds * 1_000_000), _topics(at_us)
        lowest = source in [one for one in (1, 2, 3) if one != _fenced(at_us)][:2]
        if at_us - FAMILIES[family].seconds * 1_000_000 > START:
            notices = leader_changes(before, after, source, for_all=lowest)
    offsets = _offsets(source, at_us) if family == "offsets" else None
    return Answer(readings, FAMILIES[family].beans, offsets=offsets, notices=tuple(notices))


def _value(history: History, at_us: int) -> float | None:
    found: float | None = ABSENT
    for since, value in history:
        if since <= at_us:
            found = value
    return found


def _fenced(at_us: int) -> int | None:
    return [fenced for since, fenced in SCRIPT.epochs if since <= at_us][-1]


def _topics(at_us: int) -> dict[str, tuple[PartitionState, ...]]:
    fenced = _fenced(max(at_us, START))
    return {
        name: tuple(
            PartitionState(n, leader(one.brokers(n), fenced), one.replicas)
            for n in range(one.partitions)
        )
        for name, one in TOPICS.items()
    }


def _offsets(source: int, at_us: int) -> Offsets:
    commits: dict[Commit, int | None] = {}
    starts: dict[Partition, int] = {}
    for group, topic in GROUPS.items():
        for state in _topics(at_us)[topic]:
            if state.leader == source:
                expired = groups.expired(SCRIPT, group, state.partition)
                commits[Commit(group, topic, state.partition)] = 0
                lost = sum(int(amount) for at, amount in expired if at <= at_us)
                starts[Partition(topic, state.partition)] = lost
    return Offsets(commits, starts, commits)


def _plain(made: dict[str, pa.Table], table: tables.Table) -> list[Row]:
    """Rows as a batch has them: without agent and number, instants and dates as numbers."""
    columns = []
    for column in table.columns:
        if column.name in ("agent", "batch"):
            continue
        values = made[table.name].column(column.name)
        if column.type in ("timestamp", "date"):
            values = values.cast(pa.int64() if column.type == "timestamp" else pa.int32())
        columns.append(values.to_pylist())
    return [_rounded(tuple(map(_hashable, row))) for row in zip(*columns, strict=True)]


def _hashable(value: Any) -> Any:
    if isinstance(value, list):  # of structs as the encoder has them: tuples
        return tuple(tuple(one.values()) if isinstance(one, dict) else one for one in value)
    return value


def _rounded(row: Row) -> Row:
    return tuple(round(one, 6) if isinstance(one, float) else one for one in row)
