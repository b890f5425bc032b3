"""The rollup as a whole: once only, whatever comes late and wherever it is killed."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes, periods
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.engines.spark_relations import table_of
from lakehouse.errors import TableNotFoundError, TableSchemaError
from lakehouse.report.facts import build as reports
from lakehouse.rollup.run import Outcome, rollup
from lakehouse.rollup.verify import verify
from lakehouse.slo import attainment
from lakehouse.slo.openslo import objective_files
from tests import rollups
from tests.lake_builder import CLUSTER, Batch, micros

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ISR = "kafka.partition.under_min_isr"
LEADERLESS = "kafka.partition.leaderless"
LAG = "kafka.topic.remote_copy_lag.bytes"
THROTTLE = "kafka.client.produce.throttle_time"
LOST = "kafka.group.non_consumed"
HOUR = 3600.0
DAY = 24 * HOUR
SECOND = 1_000_000
_TIMED = (tables.PROGRESS, tables.SLA, tables.OBJECTIVES)
_HASHED = tuple(one for one in tables.GOLD if one not in _TIMED)


def first_batch() -> Batch:
    """Two windows of a cluster of which broker-2 is killed."""
    batch = Batch()
    for start in (0.0, 300.0):
        end = start + 300
        batch.zeros(ISR, start, end, "t", [1, 2])
        batch.run("kafka.topic.partitions", start, end, 3.0, topic="t")
        batch.run("kafka.topic.remote_storage_enabled", start, end, 1.0, topic="t")
        batch.run("kafka.cluster.node.fenced", start, end, 0.0, labels=[("node", "broker-1")])
        batch.run("kafka.cluster.node.fenced", start, end, 1.0, labels=[("node", "broker-9")])
        batch.idle(THROTTLE, start, end, [("u2", None), (None, "c2")])
        batch.counter("kafka.topic.remote_fetch.bytes", start, end, 100.0, topic="t")
        batch.scrape("min_isr", start, end)
        batch.scrape("topology", start, end)
    batch.run(ISR, 100, 160, 1.0, topic="t", partition=0, lead=10, tail=10)
    batch.zeros(ISR, 0, 100, "t", [0])
    batch.zeros(ISR, 160, 300, "t", [0])
    batch.run(LEADERLESS, 400, 460, 1.0, topic="t", partition=0, lead=5)
    batch.run(LEADERLESS, 405, 470, 1.0, source="broker-2", topic="t", partition=0, tail=5)
    batch.run(LAG, 0, 300, 500.0, topic="t", flags=(tables.FLAG_DISTRIBUTION,))
    batch.run(LAG, 0, 300, 700.0, source="broker-2", topic="t")
    batch.run(LAG, 300, 600, 0.0, topic="t")
    batch.run(THROTTLE, 0, 60, 500.0, user="u", client_id=None, tail=20)
    batch.run(THROTTLE, 30, 90, 300.0, source="broker-2", user="u", client_id=None)
    batch.run("kafka.quota.produce.byte_rate", 0, 300, 1e6, user="u")
    batch.counter(f"{LOST}.low", 0, 300, 5.0, group="g", topic="t", partition=0)
    batch.counter(f"{LOST}.high", 0, 300, 15.0, group="g", topic="t", partition=0)
    batch.counter(f"{LOST}.low", 300, 600, None, group="g", topic="t", partition=0)
    batch.counter(f"{LOST}.high", 300, 600, None, group="g", topic="t", partition=0)
    batch.run("kafka.group.lag", 0, 300, 4.0, group="g", topic="t", tail=10)
    batch.run("kafka.group.time_lag.low", 0, 300, 20.0, group="g", topic="t")
    batch.counter("kafka.broker.produce.answers", 0, 300, 9.0, labels=[("error", "NONE")])
    batch.scrape("min_isr", 0, 120, source="broker-2")
    batch.scrape("min_isr", 120, 300, "refused", source="broker-2", error="connection refused")
    return batch


def late_batch() -> Batch:
    """The same day later, the day after, and late data of the first hour."""
    batch = Batch(number=2)
    for at in (5 * HOUR, DAY, 7 * DAY):
        batch.zeros(ISR, at, at + 300, "t", [1, 2])
        batch.run(ISR, at, at + 50, 1.0, topic="t", partition=0)
        batch.run(LAG, at, at + 300, 0.1, topic="t")
        batch.scrape("min_isr", at, at + 300)
    batch.run(ISR, 600, 630, 1.0, topic="t", partition=2)
    batch.zeros(ISR, 600, 900, "t", [0, 1])
    return batch


def rows_of(root: Path) -> dict[str, list[str]]:
    return rollups.rows_of(root, _HASHED)


def by_spark(spark: SparkSession, root: Path, **rest: Any) -> Outcome:
    """As in a catalog: Spark computes and makes the commits, too."""
    return rollup(SparkEngine(spark, lakes.at(str(root))), objective_files.load(), **rest)


def rows(root: Path, table: tables.Table, **where: Any) -> list[SimpleNamespace]:
    """Those rows of a table whose columns have the given values."""
    engine = LocalEngine(lakes.at(str(root)))
    every = engine.collect(engine.rows(table)).to_pylist()
    return [SimpleNamespace(**one) for one in every if where.items() <= one.items()]


def versions(root: Path) -> dict[str, int]:
    return {t.name: len(list((root / t.path / "_delta_log").glob("*.json"))) for t in tables.GOLD}


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with both batches, rolled up in one go."""
    root = tmp_path_factory.mktemp("once")
    first_batch().commit(root)
    late_batch().commit(root)
    rollups.local(root)
    return root


def test_a_second_rollup_makes_no_commit(once: Path):
    before = versions(once)
    assert rollups.local(once).hours == 0
    assert versions(once) == before


def test_every_gold_row_follows_from_bronze(once: Path):
    found = verify(LocalEngine(lakes.at(str(once))), objective_files.load(), 2, 1)
    assert found.differences == ()
    assert found.rows > 50


@pytest.mark.spark
@pytest.mark.nightly  # it takes three minutes
def test_spark_in_steps_makes_same_tables_and_publishes_once(
    spark: SparkSession, once: Path, tmp_path: Path
):
    first_batch().commit(tmp_path)
    by_spark(spark, tmp_path)
    before = versions(tmp_path)
    assert by_spark(spark, tmp_path).hours == 0
    assert versions(tmp_path) == before
    late_batch().commit(tmp_path)
    assert by_spark(spark, tmp_path).hours == 4
    wanted, found = rows_of(once), rows_of(tmp_path)
    assert found == wanted
    assert all(wanted[name] for name in wanted if name not in ("rejected", "owners"))
    engine, period = SparkEngine(spark, lakes.at(str(tmp_path))), periods.week("2026-W47")
    statements = attainment.read(engine, objective_files.load(), period, micros(2 * DAY))
    assert attainment.publish(engine, statements, period)
    assert attainment.publish(engine, statements, period) == []


@pytest.mark.parametrize(
    ("engine", "killed_after"),
    [
        ("local", ("topics", "sources", "sli", "incidents")),
        pytest.param("spark", ("topics",), marks=(pytest.mark.spark, pytest.mark.nightly)),
    ],
    ids=["local", "spark"],
)
def test_killed_rollup_run_again_equals_one_rollup(
    engine: str, killed_after: tuple[str, ...], once: Path, tmp_path: Path
):
    shutil.copytree(once / "bronze", tmp_path / "bronze")
    for table in killed_after:
        assert _rollup_that_dies_after(engine, table, tmp_path) == -signal.SIGKILL
    log = tmp_path / tables.PROGRESS.path / "_delta_log"
    assert len(list(log.glob("*.json"))) == 1, "no killed rollup recorded progress"
    assert _rollup_that_dies_after(engine, "none", tmp_path) == 0
    assert rows_of(tmp_path) == rows_of(once)


_DIES = """
import os, signal, sys
from lakehouse.slo.openslo import objective_files
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.core import lake, spark_session
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.spark_engine import SparkEngine
def die(table):
    if table == sys.argv[3]:
        os.killpg(0, signal.SIGKILL)
at = lake.at(sys.argv[2])
engine = LocalEngine(at) if sys.argv[1] == "local" else SparkEngine(spark_session.session(), at)
wanted = Wanted(take_over=True)  # of the one that was killed before
rollup(engine, objective_files.load(), wanted, progress=die)
"""


def _rollup_that_dies_after(engine: str, table: str, root: Path) -> int:
    """A rollup in a process group of its own, killed with its JVM when the table has its commit."""
    command = [sys.executable, "-c", _DIES, engine, str(root), table]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL
    ) as process:
        try:
            return process.wait(timeout=900)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def test_rollup_outcome_has_its_counts(once: Path):
    finest = tables.WINDOWS

    def row(table: tables.Table, metric: str, window: float) -> SimpleNamespace:
        (found,) = rows(once, table, metric=metric, window_start=micros(window))
        return found

    lag = row(finest["topics"], LAG, 0)
    assert (lag.max_total, lag.value_max, lag.affected_us) == (1200.0, 700.0, 300 * SECOND)
    gone = row(finest["partitions"], LEADERLESS, 300)
    assert (gone.series_affected_us, gone.series_affected_low_us) == (70 * SECOND, 65 * SECOND)
    assert gone.series_affected_high_us == 75 * SECOND
    both = row(finest["topics"], "kafka.partition.unavailable", 300)
    assert (both.affected_us, both.max_concurrent) == (70 * SECOND, 1)
    client = row(finest["clients"], THROTTLE, 0)
    assert (client.affected_us, client.series_affected_us) == (90 * SECOND, 120 * SECOND)
    assert client.affected_low_us == 90 * SECOND, "the other broker covers the uncertain tail"
    (lost,) = (one for one in rows(once, tables.LOST_OFFSETS) if one.offsets_high > 0)
    assert (lost.offsets_low, lost.offsets_high, lost.series_unknown_us) == (
        5.0,
        15.0,
        300 * SECOND,
    )
    (fetched,) = rows(once, tables.TOPICS, metric="kafka.topic.remote_fetch.bytes")
    assert fetched.increase == 200.0
    week = (dt.date(2026, 11, 16), dt.date(2026, 11, 22))
    partitions = rows(once, tables.PARTITIONS, metric=ISR, partition_id=0)
    in_week = [
        one.series_affected_us // SECOND for one in partitions if week[0] <= one.date <= week[1]
    ]
    assert sorted(in_week) == [50, 50, 60]


def test_the_facts_of_a_period(once: Path):
    engine = LocalEngine(lakes.at(str(once)))
    period = periods.span("2026-11-16T10:00:00Z", "2026-11-16T10:10:00Z")
    told = reports.facts(engine, objective_files.load(), period)
    (topic,) = told["min_isr"]["topics"]
    assert (topic["under_us"], topic["leaderless_us"]) == (60 * SECOND, 70 * SECOND)
    (partition,) = told["min_isr"]["partitions"]
    kinds = [(i["kind"], i["sources"]) for i in partition["incidents"]]
    assert kinds == [("under_min_isr", ["broker-1"]), ("leaderless", ["broker-1", "broker-2"])]
    (client,) = told["throttling"]["clients"]
    assert (client["user"], client["throttled_us"], client["quota"]) == ("u", 90 * SECOND, 1e6)
    (lag,) = told["tier_lag"]["topics"]
    # Of what broker-2 told last, 700 bytes, nobody read whether they still wait.
    assert (lag["copy"]["max_bytes"], lag["copy"]["last_bytes"]) == (1200.0, None)
    (group,) = told["lost_before_read"]["groups"]
    assert (group["offsets_low"], group["offsets_high"]) == (5.0, None)
    sources = {(s["source"], s["family"]): s for s in told["coverage"]["sources"]}
    never = sources[("broker-9", "any")]
    assert (never["observed_us"], never["unknown_us"]) == (0, 600 * SECOND)
    killed = sources[("broker-2", "min_isr")]
    assert (killed["observed_us"], killed["unknown_us"]) == (120 * SECOND, 480 * SECOND)
    assert killed["first_error"] == "connection refused"


@pytest.fixture(scope="module")
def two_steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A lake with bad rows and a missing set; then the set and late data come."""
    root = tmp_path_factory.mktemp("steps")
    early = first_batch()
    for start, end, value in ((50, 50, 1.0), (290, 310, 1.0), (60, 70, float("nan"))):
        early.run(ISR, start, end, value, topic="t", partition=0)
    early.run(ISR, 400 * DAY, 400 * DAY + 10, 1.0, topic="t", partition=0)
    early.run(ISR, 60, 70, 1.0, partition=0)
    early.scrape("min_isr", 10, 5)
    known = list(early.members)
    early.zeros(ISR, 0, 300, "u", [0, 1])
    late = Batch(number=2)
    late.members, early.members = [row for row in early.members if row not in known], known
    late.run(ISR, 700, 760, 1.0, topic="t", partition=1)
    period, now = periods.week("2026-W47"), micros(2 * DAY)
    steps: dict[str, Any] = {"published": []}
    for name, batch in (("early", early), ("late", late)):
        batch.commit(root)
        rollups.local(root)
        steps[name] = {
            "rejected": rows(root, tables.REJECTED),
            "topics": rows(root, tables.WINDOWS["topics"], metric=ISR),
        }
        for _ in range(2):
            engine = LocalEngine(lakes.at(str(root)))
            statements = attainment.read(engine, objective_files.load(), period, now)
            steps["published"].append(attainment.publish(engine, statements, period))
    steps["sla"] = rows(root, tables.SLA, objective="min-isr")
    return steps


def test_a_statement_is_made_once_and_again_when_it_changes(two_steps: dict[str, Any]):
    first, again, changed, same = two_steps["published"]
    assert first
    assert again == same == []
    assert {one.objective.name for one in changed if one.subject.topic == "t"} == {"min-isr"}
    rows = [row for row in two_steps["sla"] if row.topic == "t"]
    assert sorted(row.statement for row in rows) == [1, 2]
    assert len({row.bad_us for row in rows}) == 2, "the old figure is kept"


def test_bad_rows_are_set_aside_with_a_reason(two_steps: dict[str, Any]):
    assert {row.reason for row in two_steps["early"]["rejected"]} == {
        "it ends before it starts",
        "it crosses a window of 5m",
        "it lies in the future",
        "the value is no number",
        "topic is missing",
        "its member set is not known",
    }
    (row,) = [row for row in two_steps["early"]["topics"] if row.window_start == micros(0)]
    assert (row.topic, row.series_seen_us, row.series_affected_us) == (
        "t",
        900 * SECOND,
        60 * SECOND,
    )


def test_a_set_that_comes_later_brings_its_rows_back(two_steps: dict[str, Any]):
    assert [row.topic for row in two_steps["early"]["topics"] if row.topic == "u"] == []
    (row,) = [row for row in two_steps["late"]["topics"] if row.topic == "u"]
    assert row.series_seen_us == 600 * SECOND
    assert "its member set is not known" not in {r.reason for r in two_steps["late"]["rejected"]}


def test_gold_keeps_its_windows(once: Path):
    with pytest.raises(TableSchemaError, match="windows of 300 s, not 30 s"):
        rollups.local(once, window_seconds=30)


@pytest.mark.spark
def test_missing_table_or_other_schema_is_one_line(spark: SparkSession, tmp_path: Path):
    first_batch().commit(tmp_path)
    lake = lakes.at(str(tmp_path))
    with pytest.raises(TableNotFoundError, match="Run jmxlake rollup first"):
        table_of(spark, lake, tables.TOPICS)
    shutil.rmtree(tmp_path / tables.SCRAPES.path)
    other = lakes.Lake(str(tmp_path)).name(tables.SCRAPES)
    spark.sql(f"CREATE TABLE {other} (`date` DATE, `cluster` BIGINT) USING delta")
    with pytest.raises(TableSchemaError, match="cluster is bigint, not string") as caught:
        by_spark(spark, tmp_path)
    assert "\n" not in str(caught.value)


def test_clusters_are_kept_apart(once: Path):
    engine = LocalEngine(lakes.at(str(once)))
    with pytest.raises(periods.PeriodError, match=CLUSTER):
        reports.facts(engine, objective_files.load(), periods.week("2026-W47"), cluster="x")


def test_command_prints_results_and_progress_apart(once: Path, tmp_path: Path):
    run = CliRunner().invoke(main, ["rollup", str(once), "--json"])
    assert (run.exit_code, json.loads(run.stdout)["hours"]) == (0, 0)
    assert "starting Spark" not in run.stderr, "there is nothing to compute"
    span = ["--from", "2026-11-16T10:00:00Z", "--to", "2026-11-16T10:10:00Z"]
    page = tmp_path / "report.html"
    run = CliRunner().invoke(main, ["report", str(once), *span, "--json", "-", "--html", str(page)])
    assert run.exit_code == 0, run.stderr
    assert json.loads(run.stdout)["window_seconds"] == 300
    assert "<html" in page.read_text(encoding="utf-8")


def test_errors_are_one_line_and_exit_code_1(once: Path, tmp_path: Path):
    for arguments in (
        ["rollup", str(tmp_path / "nowhere")],
        ["rollup", str(once), "--window", "7m"],
        ["slo", "publish", str(once), "--week", "2026-99"],
    ):
        run = CliRunner().invoke(main, arguments)
        assert run.exit_code == 1
        last = run.stderr.splitlines()
        assert len(last) == 1
        assert last[0].startswith("jmxlake: ")
