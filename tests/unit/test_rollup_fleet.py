"""The benchmark's generated rows are those that the encoder makes of the same samples."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from bench import rollup_fleet, rollup_rows, rollup_samples, rollup_world
from bench.rollup_clients import MEMORY_US, RATES, THROTTLES
from bench.rollup_world import ERROR, HOUR_US, WINDOW_US, Fleet
from collector.catalogue.entries import Delays
from collector.encoding.bronze_rows import Batch, Origin, batches_of
from collector.encoding.encoder import Encoder
from collector.model import Answer, Identity, Reading, Scrape, Series
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from duckdb import DuckDBPyConnection, DuckDBPyRelation

pytestmark = pytest.mark.slow

# So small that nearly every series is touched by an incident, a move or an outage, and so that some
# sets have one member or none; and from before the outage until after it.
FLEET = Fleet(
    clusters=1, brokers=3, topics=2, partitions=12, share=0.2, hit=0.3, incidents=6, moved=0.5,
    clients=9, throttles=40,
)  # fmt: skip
CLUSTER = "cluster-1"
START = dt.datetime(2026, 11, 9, 8, 50, tzinfo=dt.UTC)
WINDOWS = 24
FIRST_US = rollup_world.micros(START)
UNTIL_US = FIRST_US + WINDOWS * WINDOW_US
TOPOLOGY = {
    "kafka.topic.partitions": 12.0, "kafka.topic.replication_factor": 3.0,
    "kafka.topic.min_insync_replicas": 2.0, "kafka.topic.retention_time": 604_800_000.0,
    "kafka.topic.retention_bytes": -1.0, "kafka.topic.remote_storage_enabled": 0.0,
    "kafka.topic.compacted": 0.0,
}  # fmt: skip

Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def encoded() -> dict[str, Batch]:
    """What the encoder of each source makes, from a window before to one after."""
    db = rollup_fleet.connect(threads=1)
    rollup_world.prepare(db, FLEET)
    rollup_world.unfold(db, FIRST_US - WINDOW_US, UNTIL_US + WINDOW_US)
    readings = _readings(db)
    found = {}
    for broker in range(1, FLEET.brokers + 1):
        encoder = Encoder(WINDOW_US, dict.fromkeys(THROTTLES, Delays(MEMORY_US)))
        for scrape in _scrapes(db, broker, readings):
            assert encoder.accepts(scrape)
            encoder.record(scrape)
        sealed = encoder.seal(UNTIL_US + WINDOW_US)
        origin = Origin(CLUSTER, f"broker-{broker}", rollup_world.CATALOGUE)
        (found[origin.source],) = batches_of([(sealed, origin)])
    return found


@pytest.fixture(scope="module")
def generated() -> dict[str, list[Row]]:
    """The rows in two parts, as if they were made at different times."""
    db = rollup_fleet.connect(threads=1)
    rollup_world.prepare(db, FLEET)
    found: dict[str, list[Row]] = {"runs": [], "scrapes": [], "sets": []}
    half_us = FIRST_US + WINDOWS // 3 * WINDOW_US
    for first_us, until_us in ((FIRST_US, half_us), (half_us, UNTIL_US)):
        rollup_world.unfold(db, first_us, until_us)
        rollup_rows.make(db)
        found["runs"] += _plain(rollup_rows.runs(db), tables.RUNS)
        found["scrapes"] += _plain(rollup_rows.scrapes(db), tables.SCRAPES)
        found["sets"] += _plain(rollup_rows.members(db), tables.MEMBERS)
    return found


def test_every_run_is_the_encoders(
    encoded: dict[str, Batch], generated: dict[str, list[Row]]
) -> None:
    wanted = _within(encoded, tables.RUNS)
    assert Counter(generated["runs"]) == Counter(wanted)


def test_every_account_is_the_encoders(
    encoded: dict[str, Batch], generated: dict[str, list[Row]]
) -> None:
    wanted = _within(encoded, tables.SCRAPES)
    assert Counter(generated["scrapes"]) == Counter(wanted)


def test_every_set_that_a_run_names_is_told(
    encoded: dict[str, Batch], generated: dict[str, list[Row]]
) -> None:
    at = tables.RUNS.positions
    wanted = {row for batch in encoded.values() for row in batch.rows["members"]}
    named = {(row[at["members"]]) for row in generated["runs"] if row[at["members"]]}
    told = {tuple(row) for row in generated["sets"]}
    assert named == {row[0] for row in told}
    assert told <= wanted


def test_what_the_fleet_is_made_for_happens(generated: dict[str, list[Row]]) -> None:
    at = tables.RUNS.positions
    runs = generated["runs"]
    under = [row for row in runs if row[at["metric"]] == rollup_world.UNDER]
    assert any(row[at["value"]] == 1 for row in under)
    assert any(row[at["lead_us"]] for row in under)
    assert any(row[at["flags"]] for row in runs)
    assert any(row[at["series"]] > 1 for row in runs)
    sources = defaultdict(set)
    for row in under:
        if row[at["partition"]] is not None:
            sources[row[at["topic"]], row[at["partition"]]].add(row[at["source"]])
    assert any(len(one) > 1 for one in sources.values())  # a move
    outcome = tables.SCRAPES.positions["outcome"]
    assert {row[outcome] for row in generated["scrapes"]} == {"ok", "timeout"}
    throttled = [row for row in runs if row[at["metric"]] in THROTTLES and row[at["value"]]]
    assert {row[at["metric"]] for row in throttled} == {*THROTTLES}
    assert any(row[at["tail_us"]] > MEMORY_US for row in throttled)
    assert any(row[at["end"]] % WINDOW_US == 0 and row[at["tail_us"]] for row in throttled)
    idle = [row for row in runs if row[at["metric"]] in RATES and row[at["members"]]]
    assert idle
    assert {row[at["value"]] for row in idle} == {None}


def test_the_time_before_and_after_is_no_part_of_it(generated: dict[str, list[Row]]) -> None:
    at = tables.RUNS.positions
    starts = [row[at["start"]] for row in generated["runs"]]
    ends = [row[at["end"]] for row in generated["runs"]]
    assert min(starts) == FIRST_US
    assert max(ends) == UNTIL_US
    assert UNTIL_US - FIRST_US == 2 * HOUR_US


def test_a_lake_is_continued_without_telling_a_set_twice(tmp_path: Path) -> None:
    day = START.replace(hour=0, minute=0)
    for hour in (0, 1):
        rollup_fleet.write(tmp_path, FLEET, day + dt.timedelta(hours=hour), 1, show=False)
    runs = DeltaTable(str(tmp_path / "bronze/runs"))
    assert runs.version() == 2
    assert runs.metadata().configuration == tables.RUNS.properties
    files = [
        uri.removeprefix("file://")
        for uri in DeltaTable(str(tmp_path / "bronze/members")).file_uris()
    ]
    db = rollup_fleet.connect(threads=1)
    counts = db.read_parquet(files).aggregate('count(*), count(DISTINCT (agent, "set"))').fetchall()
    assert counts[0][0] == counts[0][1] > 0


def _scrapes(
    db: DuckDBPyConnection, broker: int, readings: dict[Row, dict[Series, float | None]]
) -> Iterator[Scrape]:
    rows = db.execute(
        "SELECT family, tick, asked, answered, interval_us, ok, beans FROM ticks"
        " WHERE broker = ? AND i >= 0 AND i < n ORDER BY asked",
        [broker],
    ).fetchall()
    clients = _Clients(db, broker)
    identity = Identity(CLUSTER, str(broker), rollup_world.KAFKA_VERSION, 1)
    for family, tick, asked, answered, interval_us, ok, beans in rows:
        instants = family, tick, asked, answered, interval_us
        if not ok:
            yield Scrape(*instants, "timeout", error=ERROR)
            continue
        if family == "topology":
            values = _topology(broker)
        elif family in ("quotas", "client_rates"):
            values = clients.values(family, tick)
        else:
            values = readings[broker, family, answered]
        yield Scrape(*instants, "ok", identity, Answer(_as_readings(values), beans))


class _Clients:
    """What a broker says of clients."""

    def __init__(self, db: DuckDBPyConnection, broker: int) -> None:
        self._broker = broker
        rows = db.execute('SELECT client, "user", client_id, home, step FROM clients').fetchall()
        self._clients = {client: rest for client, *rest in rows}
        self._throttles = db.execute(
            "SELECT metric, client, from_us, to_us FROM throttles WHERE broker = ?", [broker]
        ).fetchall()

    def values(self, family: str, tick: int) -> dict[Series, float | None]:
        rates, metrics = family == "client_rates", RATES if family == "client_rates" else THROTTLES
        throttled = {
            (metric, client) for metric, client, since, until in self._throttles
            if since <= tick < until
        }  # fmt: skip
        found: dict[Series, float | None] = {}
        for metric in metrics:
            for client, (user, client_id, home, step) in self._clients.items():
                value = None
                if rates and home == self._broker:
                    value = 1000.0 + tick // 10_000_000 * step % 7919
                elif (metric, client) in throttled:
                    value = 1.0 + step % 900
                found[Series(metric, user=user, client_id=client_id)] = value
        return found


def _as_readings(values: dict[Series, float | None]) -> tuple[Reading, ...]:
    zeros: defaultdict[str, set[Series]] = defaultdict(set)
    others: defaultdict[str, dict[Series, float | None]] = defaultdict(dict)
    for series, value in values.items():
        if value == 0:
            zeros[series.metric].add(series)
        else:
            others[series.metric][series] = value
    metrics = sorted({series.metric for series in values})
    return tuple(
        Reading(metric, "gauge", frozenset(zeros[metric]), others[metric]) for metric in metrics
    )


def _readings(db: DuckDBPyConnection) -> dict[Row, dict[Series, float | None]]:
    """What each source answered, by family and instant: from the very samples the peers get."""
    found: defaultdict[Row, dict[Series, float | None]] = defaultdict(dict)
    families = {rollup_world.LAG: "tiered"}
    rows = rollup_samples.samples(db, CLUSTER)
    told = rows.select("epoch_us(ts), source, metric, topic, partition, value").fetchall()
    for ts, source, metric, topic, partition, value in told:
        family = families.get(metric, "min_isr")
        broker = int(source.removeprefix("broker-"))
        found[broker, family, ts][Series(metric, topic, partition)] = value
    return found


def _topology(broker: int) -> dict[Series, float | None]:
    """Of the topics whose partition 0 it leads; and of all nodes by the two with the lowest ids."""
    led = [t for t in range(FLEET.topics) if 1 + 7 * t % FLEET.brokers == broker]
    found: dict[Series, float | None] = {
        Series(metric, f"topic-{t:03d}"): value for t in led for metric, value in TOPOLOGY.items()
    }
    if broker <= 2:
        nodes = [f"broker-{n}" for n in range(1, FLEET.brokers + 1)]
        fenced = "kafka.cluster.node.fenced"
        found |= {Series(fenced, labels=(("node", node),)): 0.0 for node in nodes}
    return found


def _within(encoded: dict[str, Batch], table: tables.Table) -> list[Row]:
    start = table.positions["start"]
    rows = [row for batch in encoded.values() for row in batch.rows[table.name]]
    return [_rounded(row) for row in rows if FIRST_US <= row[start] < UNTIL_US]


def _plain(rows: DuckDBPyRelation, table: tables.Table) -> list[Row]:
    """Rows as a batch has them: without agent and number, instants in microseconds."""
    columns = [column for column in table.columns if column.name not in ("agent", "batch")]
    chosen = (_expression(column) for column in columns)
    return [
        _rounded(tuple(_hashable(one) for one in row))
        for row in rows.select(", ".join(chosen)).fetchall()
    ]


def _expression(column: tables.Column) -> str:
    name = f'"{column.name}"'
    if column.type == "timestamp":
        return f"epoch_us({name})"
    return f"{name} - DATE '1970-01-01'" if column.type == "date" else name


def _hashable(value: Any) -> Any:
    if isinstance(value, list):  # of structs as the encoder has them: tuples
        return tuple(tuple(one.values()) if isinstance(one, dict) else one for one in value)
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


def _rounded(row: Row) -> Row:
    return tuple(round(one, 6) if isinstance(one, float) else one for one in row)
