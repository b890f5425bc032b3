"""Maintenance of a lake that Spark reads: the rollup finds the same rows, before and after."""

from __future__ import annotations

import datetime as dt
import threading
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core import delta_rs, lake as lakes
from lakehouse.engines.rollup_batches import Versions
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.engines.spark_relations import table_of
from lakehouse.errors import ForeignEngineError
from lakehouse.ops.maintain import table_state
from lakehouse.ops.maintain.actions import Executor
from lakehouse.ops.maintain.plan import NoteCleaned
from lakehouse.ops.maintain.service import Maintenance
from lakehouse.rollup import plan
from tests import bronze_commits
from tests.checkpointing import checkpoint
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

READ = (tables.RUNS, tables.SCRAPES, tables.MEMBERS)
ISR = "kafka.partition.under_min_isr"


def windows(lake: Path, first: int, last: int) -> None:
    for number in range(first, last):
        batch, start = Batch(number=number + 1), number * 300.0
        end = start + 300
        batch.zeros(ISR, start, end, "t", [1, 2])
        batch.run(ISR, start, end, float(number % 2), topic="t", partition=0)
        batch.scrape("min_isr", start, end)
        batch.commit(lake)


def opened(lake: Path, table: tables.Table) -> DeltaTable:
    return DeltaTable(f"{lake}/{table.path}")


def maintained(lake: Path) -> list[str]:
    place, told = delta_rs.locate(str(lake), None), []
    maintenance = Maintenance(
        place,
        Executor(place, "x"),
        lambda: table_state.by_progress(delta_rs.locate(str(lake), None)),
        400,
        {},
        lambda: dt.datetime.now(dt.UTC),
        lambda event, what: told.append(what["action"]) if event == "done" else None,
    )
    wrong = maintenance.round(threading.Event())
    assert [one for one in wrong if "bronze/events" not in str(one)] == []
    return told


def inserts(spark: SparkSession, lake: Path, first: int, last: int) -> list[str]:
    engine = SparkEngine(spark, lakes.at(str(lake)))
    found = engine.collect(engine.rows(tables.RUNS, inserted=range(first, last + 1)))
    return sorted(map(str, found.to_pylist()))


def test_a_rollup_reads_the_same_through_compaction_and_clean_up(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, at = tmp_path / "lake", lakes.at
    windows(lake, 0, 40)
    bronze_commits.record_progress(str(lake), runs=40, scrapes=40, members=40)
    assert maintained(lake).count("compact") == 3
    bronze_commits.age(lake, 40)  # what compaction left behind is old now, and was read
    done = Versions(*(opened(lake, one).version() for one in READ))
    bronze_commits.record_progress(str(lake), **done._asdict())
    windows(lake, 40, 75)
    engine = SparkEngine(spark, at(str(lake)))
    state = plan.bronze_state(engine)
    now = state.versions
    before = inserts(spark, lake, done.runs + 1, now.runs)
    touched = plan.touched(engine, done._replace(members=now.members), state)

    bronze_commits.idle(lake, tables.RUNS, 10)
    Executor(delta_rs.locate(str(lake), None), "x").run(
        tables.RUNS, opened(lake, tables.RUNS), NoteCleaned(0)
    )
    told = maintained(lake)
    assert {"compact", "checkpoint", "expire", "vacuum"} <= {*told}
    gone = 40
    assert len([*(lake / tables.RUNS.path).glob("date=*/*.parquet")]) == 40 + 35 + 2 - gone
    assert len(before) == 35 * 2
    assert inserts(spark, lake, done.runs + 1, now.runs) == before
    after = plan.bronze_state(engine)
    again = done._replace(members=after.versions.members)
    assert plan.touched(engine, again, after) == touched
    assert len(touched.runs) == 4
    rows = table_of(spark, at(str(lake)), tables.RUNS)
    assert (rows.count(), rows.drop("labels").distinct().count()) == (150, 150)


def test_comments_of_bronze_show_in_spark_and_change_no_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    bronze_commits.make(str(lake), {}, comments=False)
    windows(lake, 0, 2)
    before = inserts(spark, lake, 1, 2)
    assert maintained(lake).count("comment") == len(tables.BRONZE)
    windows(lake, 2, 3)
    windows(tmp_path / "plain", 0, 3)
    assert inserts(spark, lake, 1, 2) == before
    assert len(before) == 4
    assert inserts(spark, lake, 1, 4) == inserts(spark, tmp_path / "plain", 1, 3)
    for table in tables.BRONZE:
        wanted = {column.name: column.comment for column in table.columns}
        told = spark.sql(f"DESCRIBE TABLE delta.`{lake / table.path}`").collect()
        found = {row["col_name"]: row["comment"] for row in reversed(told)}
        assert {name: found[name] for name in wanted} == wanted


def test_a_version_between_checkpoints_that_were_deleted_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark reads it from the checkpoint before and the commits since; its change feed, too."""
    lake, made = tmp_path / "lake", []
    windows(lake, 0, 3)
    there = lakes.at(str(lake))
    for number in range(6):
        made += checkpoint(str(lake), {}, [number])
        windows(lake, 3 + number, 4 + number)
    gone = [one for one in made if not log_file(lake, one).exists()]
    assert gone == made[1:3], "between the day's first and the newest three"
    for version, windows_then in ((gone[0], 4), (gone[1] + 1, 5)):
        assert table_of(spark, there, tables.RUNS, version).count() == 2 * windows_then
    assert len(inserts(spark, lake, gone[0] + 1, gone[1] + 1)) == 2
    assert table_of(spark, there, tables.RUNS).count() == 2 * 9


def log_file(lake: Path, version: int) -> Path:
    return lake / tables.RUNS.path / "_delta_log" / f"{version:020}.checkpoint.parquet"


def test_a_table_that_spark_has_written_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    windows(lake, 0, 2)
    name = lakes.at(str(lake)).name(tables.RUNS)
    spark.sql(f"INSERT INTO {name} SELECT * FROM {name} LIMIT 1")  # noqa: S608 - our own name
    place = delta_rs.locate(str(lake), None)
    maintenance = Maintenance(
        place,
        Executor(place, "x"),
        lambda: table_state.by_date(place, None),
        400,
        {},
        lambda: dt.datetime.now(dt.UTC),
        lambda _event, _what: None,
    )
    refused = [
        one for one in maintenance.round(threading.Event()) if isinstance(one, ForeignEngineError)
    ]
    assert len(refused) == 1
    assert ": Apache-Spark/" in str(refused[0])
