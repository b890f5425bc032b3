"""The local engine: delta-rs and DuckDB on lakes in a folder."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.core.metrics import Meanings
from lakehouse.core.periods import Period, micros
from lakehouse.engines.engine import LeaseRow, ask
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.relation import before_date, in_clusters, select
from lakehouse.engines.rollup_batches import Batch, Call, ClusterHour, HourSet, Versions
from lakehouse.errors import (
    EngineError,
    LakeNotFoundError,
    LeaseLostError,
    LogExpiredError,
    TableNotFoundError,
    TableSchemaError,
)
from lakehouse.kernel import arrow_types, run_in_duckdb
from lakehouse.kernel.build_program import build_program
from lakehouse.rollup import commit, gold_tables
from tests import lake_builder
from tests.lake_builder import BASE, CLUSTER

if TYPE_CHECKING:
    from lakehouse.tables import Table

pytestmark = pytest.mark.slow

HOUR = dt.timedelta(hours=1)
VERSIONS = Versions(3, 3, 3)
METRIC = "kafka.topic.bytes_in"
BASE_HOUR = micros(BASE) // 3_600_000_000


@pytest.fixture
def engine(tmp_path: Path) -> LocalEngine:
    """A lake of three commits: runs of three hours, one each."""
    for number in range(3):
        batch = lake_builder.Batch(number=number)
        batch.run(METRIC, number * 3600, number * 3600 + 10, 1.5, topic="t", labels=[("a", "b")])
        batch.zeros(
            "kafka.partition.under", number * 3600, number * 3600 + 10, "t", [0, number + 1]
        )
        batch.scrape("topics", number * 3600, number * 3600 + 10)
        batch.commit(tmp_path)
    return LocalEngine(lakes.Lake(str(tmp_path)))


def rows(engine: LocalEngine, table: Table, **how: Any) -> list[dict[str, Any]]:
    return list(engine.collect(engine.rows(table, **how)).to_pylist())


def delta(engine: LocalEngine, table: Table) -> DeltaTable:
    return DeltaTable(f"{engine.lake.root}/{table.path}")


def test_a_table_is_read_as_of_a_version_and_within_a_span(engine: LocalEngine) -> None:
    assert [version.number for version in engine.commits(tables.RUNS, 9)] == [3, 2, 1, 0]
    assert engine.commits(tables.RUNS, 1)[0].committed > BASE - HOUR * 24 * 3650
    assert len(rows(engine, tables.RUNS)) == 6
    assert {row["batch"] for row in rows(engine, tables.RUNS, version=2)} == {0, 1}
    assert rows(engine, tables.RUNS, version=0) == []
    second = Period(BASE + HOUR, BASE + 2 * HOUR)
    (one, _) = sorted(rows(engine, tables.RUNS, between=second), key=lambda row: row["series"])
    assert (one["start"], one["epoch_hour"], one["misdated"]) == (
        micros(BASE + HOUR),
        BASE_HOUR + 1,
        False,
    )
    assert (one["date"], one["labels"], one["value"]) == (BASE.date(), [("a", "b")], 1.5)


def test_a_span_leaves_files_out(engine: LocalEngine) -> None:
    second = Period(BASE + HOUR, BASE + 2 * HOUR)
    (every,) = engine.rows(tables.RUNS).sources.values()
    (chosen,) = engine.rows(tables.RUNS, between=second).sources.values()
    assert (every.count(".parquet"), chosen.count(".parquet")) == (3, 1)


def test_rows_of_another_date_or_of_no_calendar_are_misdated(engine: LocalEngine) -> None:
    batch = lake_builder.Batch(number=9)
    for start in (86_400, -(2**62) / 1e6, 2**62 / 1e6):
        batch.run(METRIC, 0, 10, 1.0)
        batch.runs[-1]["start"] = lake_builder.micros(0) + round(start * 1e6)
    batch.commit(lake_path(engine))
    found = [row for row in rows(engine, tables.RUNS) if row["batch"] == 9]
    assert [row["misdated"] for row in found] == [True] * 3
    assert {row["epoch_hour"] for row in found} == {BASE_HOUR + 24, 0, 70_380_767}


def lake_path(engine: LocalEngine) -> Path:
    return Path(engine.lake.root)


def test_a_row_says_when_its_file_was_written(engine: LocalEngine) -> None:
    at = {row["written"] for row in rows(engine, tables.RUNS)}
    assert len(at) == 3
    now = micros(dt.datetime.now(dt.UTC))
    assert all(now - 60_000_000 < one <= now for one in at)


def test_the_change_feed_has_inserts_and_no_compaction(engine: LocalEngine) -> None:
    delta(engine, tables.RUNS).optimize.compact()
    delta(engine, tables.RUNS).delete("batch = 0")
    found = engine.collect(engine.rows(tables.RUNS, inserted=range(2, 6))).to_pylist()
    assert sorted(row["batch"] for row in found) == [1, 1, 2, 2]
    assert {row["epoch_hour"] for row in found} == {BASE_HOUR + 1, BASE_HOUR + 2}
    twice = "SELECT count(*) FROM {feed} a JOIN {feed} b ON a.batch = b.batch"
    assert ask(engine, twice, feed=engine.rows(tables.RUNS, inserted=range(2, 4))) == [(8,)]


def test_a_commit_that_is_gone_from_the_log_is_named(engine: LocalEngine) -> None:
    delta(engine, tables.RUNS).create_checkpoint()
    for number in range(2):
        (lake_path(engine) / tables.RUNS.path / f"_delta_log/{number:020}.json").unlink()
    with pytest.raises(LogExpiredError, match="since the last rollup"):
        engine.rows(tables.RUNS, inserted=range(1, 4))
    assert len(engine.collect(engine.rows(tables.RUNS, inserted=range(2, 4)))) == 4


def test_a_file_that_is_gone_is_an_expired_log_too(engine: LocalEngine) -> None:
    table = delta(engine, tables.RUNS)
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(LogExpiredError):
        engine.collect(engine.rows(tables.RUNS, inserted=range(1, 4)))


def test_braces_that_name_no_relation_stay(engine: LocalEngine) -> None:
    given = pa.table({"cluster": ["{given}", "{other}"]})
    sql = "SELECT count(*) FROM {given} g WHERE g.cluster = '{other}'"
    assert ask(engine, sql, given=given) == [(1,)]


def test_sums_are_as_wide_as_sparks(engine: LocalEngine) -> None:
    found = engine.collect(
        select("SELECT sum(r.batch) AS n FROM {r} r", r=engine.rows(tables.RUNS))
    )
    assert found.schema.field("n").type == pa.int64()


def test_a_table_is_made_as_it_is_declared(engine: LocalEngine) -> None:
    assert engine.detail(tables.SUBJECTS) is None
    for _ in range(2):
        for table in (tables.TOPICS, tables.SUBJECTS):
            engine.create(table)
    made = delta(engine, tables.TOPICS)
    assert made.version() == 0
    assert made.metadata().description == tables.TOPICS.comment
    assert made.metadata().partition_columns == ["date"]
    assert made.metadata().configuration == tables.TOPICS.properties
    assert [(one.name, one.nullable, one.metadata) for one in made.schema().fields] == [
        (one.name, one.nullable, {"comment": one.comment}) for one in tables.TOPICS.columns
    ]
    found = engine.detail(tables.SUBJECTS)
    assert found is not None
    assert found.columns == {one.name: one.type for one in tables.SUBJECTS.columns}


def topic_rows(*hours: int, observed: int = 1, cluster: str = CLUSTER) -> pa.Table:
    blank = dict.fromkeys(tables.TOPICS.column_names)
    return pa.Table.from_pylist(
        [
            blank | {
                "date": (BASE + hour * HOUR).date(), "cluster": cluster, "metric": METRIC,
                "hour": micros(BASE + hour * HOUR), "topic": "t", "series_seen_us": observed,
            }
            for hour in hours
        ],
        arrow_types.of_table(tables.TOPICS),
    )  # fmt: skip


def topics(engine: LocalEngine) -> list[tuple[int, int]]:
    found = rows(engine, tables.TOPICS)
    return sorted((row["epoch_hour"] - BASE_HOUR, row["series_seen_us"]) for row in found)


def test_rows_are_appended_and_replaced_by_a_predicate(engine: LocalEngine) -> None:
    engine.create(tables.TOPICS)
    engine.write(tables.TOPICS, topic_rows(0, 1, 2, 20))
    units = HourSet((CLUSTER, "it's"), (BASE + HOUR, BASE + 20 * HOUR))
    engine.write(tables.TOPICS, topic_rows(20, observed=2), units.condition("hour"))
    assert topics(engine) == [(0, 1), (2, 1), (20, 2)]
    with pytest.raises(EngineError):
        engine.write(tables.TOPICS, topic_rows(5), units.condition("hour"))
    engine.write(tables.TOPICS, None)
    assert topics(engine) == [(0, 1), (2, 1), (20, 2)], "no rows, and none to replace"
    engine.write(tables.TOPICS, None, before_date((BASE + 20 * HOUR).date()))
    assert topics(engine) == [(20, 2)]


def test_what_must_not_be_null_is_not_written(engine: LocalEngine) -> None:
    engine.create(tables.TOPICS)
    blank = topic_rows(0).set_column(4, "topic", pa.array([None], pa.string()))
    with pytest.raises(EngineError, match="topic"):
        engine.write(tables.TOPICS, blank)


def test_a_column_that_came_later_is_null_in_older_rows(engine: LocalEngine) -> None:
    older = tables.Table(
        "gold", "subjects", "older", tables.SUBJECTS.columns[:-2], properties={}
    )  # fmt: skip
    engine.create(older)
    values = (CLUSTER, "topic", "t", None, None, None, None, 5, 9, None, 7, {"m": 1.0})
    engine.write(older, arrow_types.rows(arrow_types.of_table(older), [values]))
    engine.add_columns(tables.SUBJECTS, tables.SUBJECTS.columns[-2:])
    (row,) = rows(engine, tables.SUBJECTS)
    assert (row["first_seen"], row["attributes"]) == (5, [("m", 1.0)])
    assert row["attribute_instants"] is row["rack"] is None
    new = arrow_types.rows(arrow_types.of_table(tables.SUBJECTS), [(*values, {"m": 7}, "a")])
    engine.write(tables.SUBJECTS, new, in_clusters((CLUSTER,)))
    (row,) = rows(engine, tables.SUBJECTS)
    assert (row["attribute_instants"], row["rack"]) == ([("m", 7)], "a")


def test_a_table_with_the_comments_of_another_version_takes_rows_and_keeps_them(
    engine: LocalEngine,
) -> None:
    for table in (tables.TOPICS, tables.LEASE):
        told = tuple(replace(column, comment="as of old") for column in table.columns)
        engine.create(replace(table, columns=told))
    engine.write(tables.TOPICS, topic_rows(0, 1))
    units = HourSet((CLUSTER,), (BASE + HOUR,))
    engine.write(tables.TOPICS, topic_rows(1, observed=2), units.condition("hour"))
    assert topics(engine) == [(0, 1), (1, 2)]
    assert engine.swap(LeaseRow(), LeaseRow("a", until=1), first=True)
    for table in (tables.TOPICS, tables.LEASE):
        fields = delta(engine, table).schema().fields
        assert {field.metadata["comment"] for field in fields} == {"as of old"}


def test_of_engines_at_the_same_instant_one_gets_the_lease(engine: LocalEngine) -> None:
    engine.create(tables.LEASE)
    others = [LocalEngine(engine.lake) for _ in range(4)]
    for turn, first in ((0, True), (1, False), (2, False)):
        seen = LeaseRow() if not turn else LeaseRow(until=turn)
        gate = threading.Barrier(len(others))

        def take(other: LocalEngine, seen: LeaseRow, gate: threading.Barrier, **how: bool) -> bool:
            gate.wait()
            mine = LeaseRow(f"engine {others.index(other)}", "it's me", 1, 10)
            return other.swap(seen, mine, **how)

        with ThreadPoolExecutor(len(others)) as pool:
            turns = [pool.submit(take, other, seen, gate, first=first) for other in others]
            won = [one.result() for one in turns]
        assert sum(won) == 1
        (row,) = rows(engine, tables.LEASE)
        assert row["id"] == f"engine {won.index(True)}"
        assert engine.swap(LeaseRow(row["id"], until=10), LeaseRow(until=turn + 1))


def test_a_lease_is_renewed_beside_a_vacuum(engine: LocalEngine, monkeypatch: Any) -> None:
    engine.create(tables.LEASE)
    assert engine.swap(LeaseRow(), LeaseRow("a", until=1), first=True)
    opened = type(engine).open
    stale = [engine.open(tables.LEASE)]
    delta(engine, tables.LEASE).alter.set_table_properties(
        {"jmxlake.test": "1"}, raise_if_not_exists=False
    )
    monkeypatch.setattr(type(engine), "open", lambda *what: stale.pop() if stale else opened(*what))
    assert engine.swap(LeaseRow("a", until=1), LeaseRow("a", until=2))
    assert not engine.swap(LeaseRow("a", until=1), LeaseRow("b", until=3))


def test_a_table_that_changed_meanwhile_is_a_lost_lease(
    engine: LocalEngine, monkeypatch: Any
) -> None:
    engine.create(tables.TOPICS)
    engine.write(tables.TOPICS, topic_rows(0))
    stale = engine.open(tables.TOPICS)
    units = HourSet((CLUSTER,), (BASE,)).condition("hour")
    engine.write(tables.TOPICS, topic_rows(0, observed=2), units)
    with monkeypatch.context() as patched:
        patched.setattr(type(engine), "open", lambda *_: stale)
        with pytest.raises(LeaseLostError, match="at the same time"):
            engine.write(tables.TOPICS, topic_rows(0, observed=3), units)
    assert topics(engine) == [(0, 2)]


def test_tidying_keeps_rows_and_sets_properties(engine: LocalEngine) -> None:
    engine.create(tables.TOPICS)
    for hour in range(4):
        engine.write(tables.TOPICS, topic_rows(hour))
    delta(engine, tables.TOPICS).alter.set_table_properties({"delta.checkpointInterval": "7"})
    gold_tables.tidy(engine, BASE.date(), lambda: None, lambda _: None)
    assert topics(engine) == [(hour, 1) for hour in range(4)]
    tidied = delta(engine, tables.TOPICS)
    assert len(tidied.file_uris()) == 1
    assert tidied.metadata().configuration == tables.TOPICS.properties
    version = tidied.version()
    gold_tables.tidy(engine, BASE.date(), lambda: None, lambda _: None)
    assert all(one["operation"] != "OPTIMIZE" for one in delta(engine, tables.TOPICS).history(
        delta(engine, tables.TOPICS).version() - version
    ))  # fmt: skip


class KilledEngine(LocalEngine):
    """An engine whose process dies before its n-th commit: a fake of kill -9."""

    left = 0

    def write(self, table: Table, rows: Any, where: str | None = None) -> None:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        super().write(table, rows, where)


@pytest.mark.parametrize("left", range(4))
def test_a_rollup_killed_between_commits_writes_the_same_again(
    engine: LocalEngine, left: int
) -> None:
    for table in tables.OF_HOURS:
        engine.create(table)
    units = HourSet((CLUSTER,), (BASE, BASE + HOUR))
    chosen = (tables.TOPICS, tables.WINDOWS["topics"], tables.SOURCES)

    made = topic_rows(0, 1)
    renamed = {tables.SOURCES: {"topic": "source"}, chosen[1]: {"hour": "window_start"}}
    staged = {
        table.name: made.rename_columns(
            [renamed.get(table, {}).get(name, name) for name in made.column_names]
        ).select(table.column_names)
        for table in chosen
    }
    killed = KilledEngine(engine.lake)
    killed.left = left
    commits = 0
    try:
        commit.Commit(killed, units, staged, None, lambda **_: None, lambda _: None).all()  # type: ignore[arg-type]
    except KeyboardInterrupt:
        commits = sum(bool(rows(engine, table)) for table in chosen)
        assert commits <= left
    for _ in range(2):
        commit.Commit(engine, units, staged, None, lambda **_: None, lambda _: None).all()  # type: ignore[arg-type]
    assert [len(rows(engine, table)) for table in chosen] == [2, 2, 2]


class BusyEngine(LocalEngine):
    """An engine whose tables a platform compacts while they are written: a fake of that."""

    met = 0

    def write(self, table: Table, rows: Any, where: str | None = None) -> None:
        if self.met:
            self.met -= 1
            raise LeaseLostError(f"{table.name}: another writer changed it meanwhile")
        super().write(table, rows, where)


@pytest.mark.parametrize(("met", "renewals"), [(0, 0), (1, 1), (2, 2)])
def test_f08_a_commit_that_meets_another_writer_s_is_made_again_while_the_lease_holds(
    engine: LocalEngine, met: int, renewals: int
) -> None:
    for table in tables.OF_HOURS:
        engine.create(table)
    checked: list[bool] = []
    busy = BusyEngine(engine.lake)
    busy.met = met
    units = HourSet((CLUSTER,), (BASE,))
    staged = {tables.TOPICS.name: topic_rows(0)}
    commit.Commit(
        busy, units, staged, None,  # type: ignore[arg-type]
        lambda *, anew=False: checked.append(anew), lambda _: None,
    ).all()  # fmt: skip
    assert topics(engine) == [(0, 1)]
    assert checked.count(True) == renewals


def test_f08_one_that_meets_it_again_and_again_or_without_the_lease_fails(
    engine: LocalEngine,
) -> None:
    for table in tables.OF_HOURS:
        engine.create(table)

    def lost(*, anew: bool = False) -> None:
        if anew:
            raise LeaseLostError("another rollup has taken it over")

    busy, units = BusyEngine(engine.lake), HourSet((CLUSTER,), (BASE,))
    staged = {tables.TOPICS.name: topic_rows(0)}
    for met, check, said in ((9, lambda **_: None, "meanwhile"), (1, lost, "taken it over")):
        busy.met = met
        with pytest.raises(LeaseLostError, match=said):
            commit.Commit(busy, units, staged, None, check, lambda _: None).all()  # type: ignore[arg-type]
    assert topics(engine) == []


def test_no_spark_is_imported() -> None:
    modules = (
        "lakehouse.engines.local_engine, lakehouse.rollup.gold_tables, lakehouse.rollup.verify"
    )
    code = f"import sys, {modules}; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_catalog_is_for_spark(tmp_path: Path) -> None:
    with pytest.raises(LakeNotFoundError, match="--engine spark"):
        LocalEngine(lakes.Lake(str(tmp_path), gold="main.gold"))
    with pytest.raises(LakeNotFoundError, match="--engine spark"):
        LocalEngine(lakes.Lake("main.bronze", "main.gold", "main.bronze"))


def test_what_is_wrong_with_a_table_is_one_line(engine: LocalEngine) -> None:
    with pytest.raises(TableNotFoundError, match="Run jmxlake rollup first"):
        engine.rows(tables.TOPICS)
    with pytest.raises(EngineError, match=r"DuckDB: .*nothing") as caught:
        engine.collect(select("SELECT r.nothing FROM {r} r", r=engine.rows(tables.RUNS)))
    assert "\n" not in str(caught.value)
    with pytest.raises(EngineError, match="--engine spark"):
        LocalEngine(lakes.Lake("dbfs:/lake")).detail(tables.RUNS)


def test_deletion_vectors_are_refused_not_overlooked(engine: LocalEngine) -> None:
    log = lake_path(engine) / tables.RUNS.path / "_delta_log"
    (log / f"{4:020}.json").write_text(
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,'
        '"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors"]}}\n'
    )
    with pytest.raises(TableSchemaError, match="deletionVectors"):
        engine.rows(tables.RUNS)


def test_a_lake_may_lie_in_an_odd_folder(tmp_path: Path) -> None:
    root = tmp_path / "cluster=it's {odd} é"
    batch = lake_builder.Batch()
    batch.run(METRIC, 0, 10, 1.0)
    batch.commit(root)
    engine = LocalEngine(lakes.Lake(str(root)))
    (row,) = rows(engine, tables.RUNS, between=Period(BASE, BASE + HOUR))
    assert row["cluster"] == CLUSTER
    assert len(engine.collect(engine.rows(tables.RUNS, inserted=range(1, 2)))) == 1


def test_what_is_written_another_reader_of_delta_reads(engine: LocalEngine) -> None:
    engine.create(tables.TOPICS)
    engine.write(tables.TOPICS, topic_rows(0))
    found = QueryBuilder().register("t", delta(engine, tables.TOPICS)).execute("SELECT * FROM t")
    (row,) = pa.table(found.read_all()).to_pylist()
    assert (row["hour"], row["date"]) == (BASE, BASE.date())


# What the kernel is given


class Given(NamedTuple):
    """What the kernel gets for a part."""

    hours: run_in_duckdb.Hours
    described: pa.Table | None
    runs: pa.Table
    first: bool


def given(
    engine: LocalEngine, monkeypatch: Any, *calls: Call, at: Versions = VERSIONS
) -> list[Given]:
    """What the kernel gets for the parts of some calls, by a kernel that only looks at it."""
    seen: list[Given] = []

    def look(
        _: Any, hours: run_in_duckdb.Hours, runs: pa.Table, described: pa.Table | None,
        pieces: int, spill: str, *, first: bool,
    ) -> run_in_duckdb.Made:  # fmt: skip
        assert (pieces, Path(spill).is_dir()) == (1, True)
        seen.append(Given(hours, described, runs, first))
        return run_in_duckdb.Made({}, {}, 7)

    monkeypatch.setattr(run_in_duckdb, "part", look)
    monkeypatch.setattr(run_in_duckdb, "merge", lambda *_: {})
    pairs = tuple(pair for call in calls for pair in call.units)
    units = HourSet(
        tuple(sorted({one.cluster for one in pairs})), tuple(sorted({one.hour for one in pairs}))
    )
    kernel = build_program(300, BASE, (), Meanings({}, {}))
    program, told = replace(kernel, describing=(METRIC,)), []
    batch = Batch(units, calls, 6, at)
    with engine.compute(batch, program, "batch 1 of 1", told.append) as made:
        assert made.staged == {}
    rows = sum(one.runs.num_rows for one in seen)
    assert [one.part for one in told] == list(range(1, batch.parts + 1))
    assert told[-1][:4] == ("batch 1 of 1", batch.parts, batch.parts, rows)
    assert len(made.costs) == batch.parts
    assert {one.peak_bytes for one in made.costs} == {7}
    return seen


def test_hours_are_numbered_as_the_call_has_them(engine: LocalEngine, monkeypatch: Any) -> None:
    call = Call(
        (
            ClusterHour(CLUSTER, BASE + 2 * HOUR),
            ClusterHour("other", BASE),
            ClusterHour(CLUSTER, BASE),
        )
    )
    (((units, scrapes, sets), described, runs, first),) = given(engine, monkeypatch, call)
    assert units.to_pydict()["hour_us"] == [micros(one.hour) for one in call.units]
    assert (described, first) == (None, True)
    assert sorted((row["u"], row["batch"]) for row in runs.to_pylist()) == [
        (0, 2), (0, 2), (2, 0), (2, 0)
    ]  # fmt: skip
    assert sorted(row["u"] for row in scrapes.to_pylist()) == [0, 2]
    assert sorted((row["cluster"], row["partitions"]) for row in sets.to_pylist()) == [
        (CLUSTER, [0, 1]), (CLUSTER, [0, 2]), (CLUSTER, [0, 3])
    ], "what runs of the batch's hours name"  # fmt: skip
    assert [str(field.type) for field in runs.schema if field.name in {"u", "flags"}] == [
        "int32", "int32"
    ]  # fmt: skip


def test_parts_of_an_hour_are_the_hour(tmp_path: Path, monkeypatch: Any) -> None:
    batch = lake_builder.Batch()
    for window in range(12):
        for topic in "abc":
            batch.run(METRIC, window * 300, window * 300 + 10, 1.0, topic=topic, flags=("gap",))
    batch.commit(tmp_path)
    engine = LocalEngine(lakes.Lake(str(tmp_path)))
    hour = (ClusterHour(CLUSTER, BASE),)
    for parts in (1, 2, 9):
        seen = given(engine, monkeypatch, Call(hour, parts), at=Versions(1, 0, 0))
        assert [one.first for one in seen].count(True) == 1
        rows = [row for one in seen for row in one.runs.to_pylist()]
        assert len({(row["topic"], row["start_us"]) for row in rows}) == len(rows) == 36
        assert {row["flags"] for row in rows} == {2}
        whole = [{*one.runs["topic"].to_pylist()} for one in seen]
        assert sum(map(len, whole)) == 3, "a topic is in one part"
        described = {one.described and one.described.num_rows for one in seen}
        assert described == ({36} if parts > 1 else {None})
