"""The sample: its rows are the encoder's, and roll up to what was scripted."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from shutil import rmtree
from typing import TYPE_CHECKING, Any, get_args

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
from collector.sources.admin import consumer_lag, retention_headroom
from collector.sources.admin.client import PartitionState
from collector.sources.admin.readings import leader_changes
from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes
from lakehouse.core.metrics import (
    COPY_LAG,
    COVERAGE,
    GROUP_LAG,
    LEADERLESS,
    NODE_FENCED,
    PARTITION_LAG,
    UNAVAILABLE,
    UNDER_MIN_ISR,
    WATCHED_OF,
    with_components,
)
from lakehouse.core.periods import DAY_US, HOUR_US, micros
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import LakehouseError
from lakehouse.report import owners
from lakehouse.rollup.run import rollup
from lakehouse.sample import cluster, values, writer
from lakehouse.sample.cluster import FAMILIES, GROUPS, METRICS, SOURCES, TOPICS, Incident
from lakehouse.sample.timeline import ABSENT, WINDOW_US, Series as SampleSeries, leader
from lakehouse.sample.values import SampleValues
from lakehouse.slo import report_calendar
from lakehouse.slo.openslo import objective_files
from lakehouse.tables.agent_names import LOST
from tests import lake_builder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lakehouse.sample.timeline import History

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
AT_FIRST = replace(SCRIPT, is_older=True)
_THREE_DAYS, _FIVE_DAYS = 3, 5


@pytest.fixture(scope="module", params=[SCRIPT, AT_FIRST], ids=["whole", "at first"])
def script(request: pytest.FixtureRequest) -> SampleValues:
    made: SampleValues = request.param
    return made


@pytest.fixture(scope="module")
def encoded(script: SampleValues) -> dict[str, list[Row]]:
    """What the encoder of each source makes of all samples, until two windows after."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for source in SOURCES:
        for name, rows in _encode(script, source).rows.items() if script.families(source) else ():
            instant = tables.BRONZE[[one.name for one in tables.BRONZE].index(name)].positions
            at = instant.get("start", instant.get("at"))
            found[name] += [one for one in rows if at is None or START <= one[at] < UNTIL]
    return found


@pytest.fixture(scope="module")
def generated(script: SampleValues) -> dict[str, list[Row]]:
    made = writer.rows([script])
    return {table.name: _plain(made, table) for table in tables.BRONZE}


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


def test_what_a_sample_is_made_for_happens(
    script: SampleValues, generated: dict[str, list[Row]]
) -> None:
    at = tables.RUNS.positions
    positive = [row for row in generated["runs"] if row[at["value"]]]
    metrics = {row[at["metric"]] for row in positive}
    wanted = {
        UNDER_MIN_ISR, LEADERLESS, COPY_LAG, *cluster.REMOTE, NODE_FENCED, *cluster.COPIES,
        "kafka.client.produce.throttle_time", "kafka.client.fetch.throttle_time", *LOST, GROUP_LAG,
        PARTITION_LAG, *cluster.REQUESTS, *cluster.SLOWEST, *cluster.TRAFFIC, cluster.LOG_SIZE,
    }  # fmt: skip
    assert {one for one in wanted if script.reads(one)} <= metrics
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
    read = {
        one.name for one in loaded.families
        if one.enabled and {"broker", "controller"} & set(one.roles)
    }  # fmt: skip
    # One is off by default; the others need sections of the configuration.
    assert set(FAMILIES) == read - {"metadata_log", "remote_log"} | {"traffic"}


def test_the_older_weeks_have_what_the_default_objectives_need() -> None:
    watched = {one.metric: one.names_in_bronze for each in WATCHED_OF.values() for one in each}
    single = [one for one in objective_files.load() if one.metric not in ("", None, COVERAGE)]
    needed = {
        name for one in single for metric in with_components([one.metric])
        for name in watched.get(metric, (metric,))
    } - {UNAVAILABLE}  # fmt: skip
    assert needed <= cluster.AT_FIRST


def test_tables_are_made_as_agents_make_them(tmp_path: Path) -> None:
    writer.write(tmp_path / "lake", [SCRIPT])
    for table in tables.BRONZE:
        made = DeltaTable(str(tmp_path / "lake" / table.path))
        agents = lake_builder.made(tmp_path / "agents", table)
        assert made.schema().to_json() == agents.schema().to_json()
        assert made.metadata().configuration == agents.metadata().configuration
        assert made.metadata().partition_columns == agents.metadata().partition_columns
        assert made.version() == (1 + len(SOURCES) if table is tables.SCRAPES else 1)
    with pytest.raises(LakehouseError, match="a lake already exists"):
        writer.write(tmp_path / "lake", [SCRIPT])


def test_a_sample_is_weeks_and_the_days_since() -> None:
    now = dt.datetime(2026, 11, 12, 15, 33, 21, tzinfo=dt.UTC)
    older, whole = values.sampled(now, 9, 1)
    assert older.start_us == micros(dt.datetime(2026, 9, 7, tzinfo=dt.UTC))
    assert older.until_us == whole.start_us == micros(dt.datetime(2026, 10, 19, tzinfo=dt.UTC))
    assert whole.until_us == micros(dt.datetime(2026, 11, 12, 15, 30, tzinfo=dt.UTC))
    assert older.is_older
    assert not whole.is_older
    last = micros(dt.datetime(2026, 11, 2, tzinfo=dt.UTC))
    kinds = {one.kind for one in whole.incidents if 0 <= one.from_us - last < 7 * DAY_US}
    assert kinds == set(get_args(cluster.Kind))
    assert values.sampled(now, 9, 1) == (older, whole)
    assert values.sampled(now, 9, 2)[1].incidents != whole.incidents
    assert len(values.sampled(now, 3, 1)) == 1


def test_no_two_incidents_stand_in_each_others_way() -> None:
    """Brokers are away one at a time, and when no group is behind: lags are told by leaders."""
    for seed in range(20):
        for span in values.sampled(dt.datetime(2026, 11, 29, 23, tzinfo=dt.UTC), 12, seed):
            away = span.away
            assert all(one.to_us < two.from_us - MINUTE for one, two in pairwise(away))
            late = [one for one in span.incidents if one.kind == "late"]
            assert not [
                one
                for one in away
                for two in late
                if one.from_us < two.to_us and two.from_us < one.to_us
            ]
            names = {(one.kind, one.name) for one in span.incidents}
            for kind, name in names:
                spans = sorted(span.spans(kind, name))
                assert all(one[1] < two[0] for one, two in pairwise(spans))


def test_records_are_rounded_as_agents_round_them() -> None:
    for number in (0, 1, 7, 10_000, 123_456, 2**20, 2**20 + 1):
        assert values._bucket_end(number) == consumer_lag.bucket_end(number)
    assert set(values._LADDER_S) <= set(consumer_lag._STEPS_S)
    assert set(values._LEFT_S) <= set(retention_headroom._STEPS_S)


def test_the_command_writes_where_no_lake_is(tmp_path: Path) -> None:
    asked = ["sample", str(tmp_path / "lake"), "--weeks", "1", "--until"]
    ended = CliRunner().invoke(main, [*asked, "2026-11-09"])
    assert ended.exit_code == 0
    assert "rows. Continue with: jmxlake weekly" in ended.output
    (days,) = _read(tmp_path / "lake", tables.RUNS, 'min(start), max("end")')
    assert [one.date() for one in days] == [dt.date(2026, 11, 2), dt.date(2026, 11, 9)]
    ended = CliRunner().invoke(main, [*asked, "2026-11-09"])
    assert ended.exit_code == 1
    assert "a lake already exists" in ended.output
    ended = CliRunner().invoke(main, [*asked, "2999-01-01"])
    assert ended.exit_code == 2
    assert "is in the future" in ended.output


def test_the_files_beside_a_sample_name_its_topics_and_its_restarts(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    asked = ["sample", str(lake), "--weeks", "1", "--until", "2026-11-09"]
    assert CliRunner().invoke(main, asked).exit_code == 0
    said = owners.load(writer.beside(lake).owners)
    assert said.of({"topic": "orders"}).team == "Commerce"
    assert said.of({"user": "billing", "client_id": "invoicing"}).team == "Finance"
    (planned,) = report_calendar.load_maintenance(writer.beside(lake).maintenance)
    (span,) = values.sampled(dt.datetime(2026, 11, 9, tzinfo=dt.UTC), 1, 1)
    restarts = [one for one in span.incidents if one.kind == "restarted"]
    assert all(planned.start_us < one.from_us < one.to_us < planned.end_us for one in restarts)
    rmtree(lake)
    assert CliRunner().invoke(main, asked).exit_code == 0
    rmtree(lake)
    writer.beside(lake).owners.write_text("owners: []\n")
    ended = CliRunner().invoke(main, asked)
    assert ended.exit_code == 1
    assert "not a file of a sample" in ended.output
    assert not lake.exists()


@pytest.fixture(scope="module", params=[_THREE_DAYS, _FIVE_DAYS])
def rolled_up(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, SampleValues]:
    """Some days of the last whole week from its Tuesday on; five of them as in older weeks."""
    root = tmp_path_factory.mktemp("sample") / "lake"
    start = micros(dt.datetime(2026, 11, 10, tzinfo=dt.UTC))
    until = start + request.param * DAY_US
    every = cluster.of_weeks(1, start + 6 * DAY_US, 1)
    days = SampleValues(
        start, until, cluster.within(every, start, until), request.param == _FIVE_DAYS
    )
    writer.write(root, [days])
    rollup(LocalEngine(lakes.at(str(root))), objective_files.load())
    return root, days


def _read(root: Path, table: tables.Table, columns: str, where: str = "true") -> list[Row]:
    files = [one.removeprefix("file://") for one in DeltaTable(str(root / table.path)).file_uris()]
    if not files:
        return []
    read = duckdb.read_parquet(files, hive_partitioning=True)
    return read.filter(where).aggregate(columns).order("ALL").fetchall()


def _edge_us(days: SampleValues, family: str) -> int:
    return days.attempts(1, family).interval_us + cluster.SECOND_US // 5


def test_a_rollup_rejects_nothing(rolled_up: tuple[Path, SampleValues]) -> None:
    root, days = rolled_up
    assert _read(root, tables.REJECTED, "reason, count(*)") == []
    hours = _read(root, tables.COVERAGE, "count(DISTINCT hour)")
    assert hours == [((days.until_us - days.start_us) // HOUR_US,)]


def test_gold_says_how_long_partitions_were_under_min_isr(
    rolled_up: tuple[Path, SampleValues],
) -> None:
    """By the incidents, and by who holds the partitions; a broker that is away cannot say so."""
    root, days = rolled_up
    edge = _edge_us(days, "min_isr")
    found = _read(
        root, tables.TOPICS,
        "topic, sum(series_affected_low_us), sum(series_affected_high_us), sum(affected_us)",
        f"metric = '{UNDER_MIN_ISR}' AND series_affected_us > 0",
    )  # fmt: skip
    told = {topic: rest for topic, *rest in found}
    assert set(told) == {"orders", "payments"}
    (slow,) = (one for one in days.incidents if one.kind == "slow")
    low, high, any_us = told["orders"]
    scripted = sum(slow.to_us - slow.from_us - p * cluster.SECOND_US for p in (0, 3))
    assert scripted - 2 * 2 * edge <= low <= scripted <= high <= scripted + 2 * 2 * edge
    assert abs(any_us - (slow.to_us - slow.from_us)) < edge
    fenced = _fenced_us(days)
    low, high, any_us = told["payments"]
    assert low <= 2 * fenced <= high  # each broker holds 2 of its 3 partitions
    assert abs(any_us - fenced) < 4 * edge


def test_gold_says_who_had_no_leader_and_who_was_throttled(
    rolled_up: tuple[Path, SampleValues],
) -> None:
    root, days = rolled_up
    found = _read(
        root, tables.TOPICS, "topic, sum(affected_low_us), sum(affected_high_us)",
        f"metric = '{LEADERLESS}' AND series_affected_us > 0",
    )  # fmt: skip
    ((topic, low, high),) = found
    assert topic == "scratch"
    assert low <= _fenced_us(days, cluster.TOPICS["scratch"].hosts) <= high
    found = _read(
        root, tables.CLIENTS, "user_name, client_id, sum(affected_low_us), sum(affected_high_us)",
        "metric LIKE '%.throttle_time' AND series_affected_us > 0",
    )  # fmt: skip
    told = {client_id: bounds for _, client_id, *bounds in found}
    throttled = [one for one in days.incidents if one.kind == "throttled"]
    assert set(told) == {one.name for one in throttled}
    edge = _edge_us(days, "quotas")
    for client_id, (low, high) in told.items():
        own = [one.to_us - one.from_us for one in throttled if one.name == client_id]
        scripted = sum(own)
        assert scripted - len(own) * (MINUTE + 2 * edge) <= low <= scripted <= high
        assert high <= scripted + len(own) * 2 * edge


@pytest.mark.parametrize("rolled_up", [_FIVE_DAYS], indirect=True)
def test_gold_says_what_a_group_lost_and_what_waited(
    rolled_up: tuple[Path, SampleValues],
) -> None:
    root, days = rolled_up
    lost = sum(n for p in range(3) for _, n in values.expired(days, "audit-archive", p))
    sums = "consumer_group, topic, sum(offsets_low), sum(offsets_high), sum(series_unknown_us)"
    assert _read(root, tables.LOST_OFFSETS, sums) == [("audit-archive", "audit", lost, lost, 0)]
    (behind,) = (one for one in days.incidents if one.kind == "behind")
    ((topic, lagged_us),) = _read(
        root, tables.TOPICS, "topic, sum(affected_us)",
        f"metric = '{COPY_LAG}' AND series_affected_us > 0",
    )  # fmt: skip
    assert topic == "clicks"
    assert 0.9 < lagged_us / (behind.to_us - behind.from_us) < 1


@pytest.mark.parametrize("rolled_up", [_THREE_DAYS], indirect=True)
def test_gold_says_what_was_read_and_who_was_behind(rolled_up: tuple[Path, SampleValues]) -> None:
    root, days = rolled_up
    remote = [one for one in days.incidents if one.kind == "remote"]
    ((topic, requests),) = _read(
        root, tables.TOPICS, "topic, sum(increase)",
        f"metric = '{REQUESTS}' AND increase > 0",
    )  # fmt: skip
    assert topic == "clicks"
    minutes = sum(one.to_us - one.from_us for one in remote) / MINUTE
    assert requests == pytest.approx(minutes * 3 * 3 * 16, rel=0.02)
    (late,) = (one for one in days.incidents if one.kind == "late")
    ((group, topic, behind_us),) = _read(
        root, tables.CONSUMER_LAG, "consumer_group, topic, sum(behind_us)", "behind_us > 0"
    )
    assert (group, topic) == ("warehouse", "inventory")
    assert 0.9 < behind_us / (late.to_us - late.from_us) < 1


def _fenced_us(days: SampleValues, brokers: Sequence[int] = cluster.BROKERS) -> int:
    return sum(end - at for (at, broker), (end, _) in pairwise(days.epochs) if broker in brokers)


def _encode(script: SampleValues, source: int) -> Batch:
    encoder = Encoder(WINDOW_US, {name: Delays(one.memory_us) for name, one in METRICS.items()})
    encoder.events.append(Event(START, "agent_start", Series("")))
    for scrape in sorted(_scrapes(script, source), key=lambda one: one.asked_us):
        assert encoder.accepts(scrape)
        encoder.record(scrape)
    sealed = encoder.flush(UNTIL + 2 * WINDOW_US)
    origin = Origin(cluster.NAME, SOURCES[source], writer.catalogue_of(script))
    return next(batches_of([(sealed, origin)], max_rows=1 << 30))


def _scrapes(script: SampleValues, source: int) -> Iterator[Scrape]:
    told: defaultdict[str, list[SampleSeries]] = defaultdict(list)
    for series in script.series(source):
        told[METRICS[series.subject.metric].family].append(series)
    for family in script.families(source):
        reads = script.attempts(source, family)
        for number in range(reads.number(START), reads.number(UNTIL + 2 * WINDOW_US)):
            asked, tick = reads.requested(number), number * reads.interval_us
            if any(start <= asked < end for start, end in reads.outages):
                ended = asked + writer.REFUSED_US
                yield Scrape(
                    family,
                    tick,
                    asked,
                    ended,
                    reads.interval_us,
                    "refused",
                    error=writer.NOTHING_LISTENS,
                )
                continue
            jmx = FAMILIES[family].via_jmx
            identity = Identity(
                cluster.NAME, str(source), cluster.KAFKA_VERSION if jmx else None,
                script.started(source, asked) if jmx else 0,
            )  # fmt: skip
            answer = _answer(script, source, family, told[family], asked)
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


def _answer(
    script: SampleValues, source: int, family: str, told: list[SampleSeries], at_us: int
) -> Answer:
    started = script.started(source, at_us)
    values: dict[str, dict[Series, float | None]] = {one.subject.metric: {} for one in told}
    pulses = [percent for at, percent in script.pulses(source) if started < at <= at_us]
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
        before_us = at_us - script.attempts(source, family).interval_us
        before, after = _topics(script, before_us), _topics(script, at_us)
        lowest = source in [one for one in (1, 2, 3) if one != _fenced(script, at_us)][:2]
        if before_us > START:
            notices = leader_changes(before, after, source, for_all=lowest)
    offsets = _offsets(script, source, at_us) if family == "offsets" else None
    return Answer(readings, FAMILIES[family].beans, offsets=offsets, notices=tuple(notices))


def _value(history: History, at_us: int) -> float | None:
    found: float | None = ABSENT
    for since, value in history:
        if since <= at_us:
            found = value
    return found


def _fenced(script: SampleValues, at_us: int) -> int | None:
    return [fenced for since, fenced in script.epochs if since <= at_us][-1]


def _topics(script: SampleValues, at_us: int) -> dict[str, tuple[PartitionState, ...]]:
    fenced = _fenced(script, max(at_us, START))
    return {
        name: tuple(
            PartitionState(n, leader(one.brokers(n), fenced), one.replicas)
            for n in range(one.partitions)
        )
        for name, one in TOPICS.items()
    }


def _offsets(script: SampleValues, source: int, at_us: int) -> Offsets:
    commits: dict[Commit, int | None] = {}
    starts: dict[Partition, int] = {}
    for group, topic in GROUPS.items():
        for state in _topics(script, at_us)[topic]:
            if state.leader == source:
                expired = values.expired(script, group, state.partition)
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
