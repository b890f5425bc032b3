"""What a rollup does when bronze is not what it was: log expired, dates removed, lake restored."""

from __future__ import annotations

import datetime as dt
import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from lakehouse import aside, bronze_log, changes, progress, tables
from lakehouse import lake as lakes
from lakehouse.errors import LakeReplacedError, LogExpiredError
from lakehouse.maintain import place as places
from lakehouse.maintain import reach
from lakehouse.maintain.plan import Checkpoint, Drop, Expire, Vacuum
from lakehouse.maintain.service import Maintenance, Rules
from lakehouse.maintain.work import Work
from lakehouse.rollup import Wanted
from tests import bronze_commits
from tests.lake_builder import BASE
from tests.rollups import DAY, HOUR, hours, prepare, quick, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

READ = (tables.RUNS, tables.SCRAPES, tables.MEMBERS)
MONDAY = BASE.date()


def opened(root: Path, table: tables.Table) -> DeltaTable:
    return DeltaTable(f"{root}/{table.path}")


def steps(told: list[str]) -> dict[str, Any]:
    return {"progress": told.append}


def plan_in(told: list[str]) -> str:
    (found,) = [line for line in told if " stretches" in line]
    return found


def last(spark: SparkSession, root: Path) -> progress.Progress:
    row = progress.last(spark, lakes.at(str(root))).row
    assert row is not None
    return row


def at_once(spark: SparkSession, root: Path, elsewhere: Path) -> dict[str, list[str]]:
    """The tables of one rollup of the same bronze, made anew."""
    shutil.copytree(root / "bronze", elsewhere / "bronze")
    prepare(spark, elsewhere)
    quick(spark, elsewhere)
    return rows_of(spark, elsewhere)


def maintained(root: Path, keep_days: int, gold: str = "gold") -> list[str]:
    """A round of the real maintenance."""
    place, told = places.at(str(root), None), []
    maintenance = Maintenance(
        place,
        Work(place, "x"),
        lambda: reach.by_progress(f"{root}/{gold}", {}),
        Rules(keep_days, {}),
        lambda: dt.datetime.now(dt.UTC),
        lambda event, what: told.append(what["action"]) if event == "done" else None,
    )
    wrong = maintenance.round(threading.Event())
    assert [one for one in wrong if "bronze/events" not in str(one)] == []
    return told


def test_commits_older_than_removed_files_are_kept_are_recovered(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Their log is whole: it is Spark that refuses, by the age of the version before them."""
    root, told = tmp_path / "lake", []
    hours(1, 0).commit(root)
    prepare(spark, root)
    quick(spark, root)
    done = last(spark, root)
    hours(2, HOUR, -30 * DAY).commit(root)
    age(spark, root, 40)
    hours(3, 2 * HOUR).commit(root)
    lake = lakes.at(str(root))
    with pytest.raises(LogExpiredError, match="since the last rollup"):
        changes.touched(spark, lake, done.versions, bronze_log.current(spark, lake)[0])
    outcome = quick(spark, root, **steps(told))
    assert (outcome.how, last(spark, root).how) == ("recovered", "recovered")
    assert "recovered: " in plan_in(told)
    assert rows_of(spark, root) == at_once(spark, root, tmp_path / "other")
    assert quick(spark, root).hours == 0


def test_a_log_that_maintenance_expired_unread_is_recovered(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Somebody vouched for a rollup that never was (--read-until); small files are gone, too."""
    root, told = tmp_path / "lake", []
    hours(1, 0).commit(root)
    prepare(spark, root)
    quick(spark, root)
    for number in range(2, 6):
        hours(number, number * HOUR, number * -10 * DAY).commit(root)
    place = places.at(str(root), None)
    work = Work(place, "x")
    for table in READ:
        delta = opened(root, table)
        if table.partition_by:
            delta.optimize.compact()
            delta.update_incremental()
        work.do(table, delta, Checkpoint(1, dt.datetime.now(dt.UTC)))
    age(spark, root, 40)
    for table in READ:
        delta = opened(root, table)
        work.do(table, delta, Expire(delta.version()))
        work.do(table, delta, Vacuum(30 * 24, full=False))
    log = root / tables.RUNS.path / "_delta_log"
    assert not (log / f"{2:020}.json").exists()
    outcome = quick(spark, root, **steps(told))
    assert outcome.how == "recovered"
    assert "is gone from the log" in plan_in(told)
    assert rows_of(spark, root) == at_once(spark, root, tmp_path / "other")


def test_a_hole_in_the_log_that_spark_does_not_see_is_noticed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark reads the feed of a commit that is gone as if it had been empty."""
    root = tmp_path / "lake"
    hours(1, 0).commit(root)
    prepare(spark, root)
    quick(spark, root)
    done = last(spark, root).versions
    for number in (2, 3, 4):
        hours(number, number * HOUR).commit(root)
    opened(root, tables.RUNS).create_checkpoint()
    gone = done.runs + 2
    (root / tables.RUNS.path / "_delta_log" / f"{gone:020}.json").unlink()
    lake = lakes.at(str(root))
    now, _ = bronze_log.current(spark, lake)
    silent = lakes.inserts(spark, lake, tables.RUNS, done.runs + 1, now.runs)
    assert silent is not None
    assert silent.select("batch").distinct().count() == 2, "of three that were committed"
    with pytest.raises(LogExpiredError, match=f"version {gone} is gone from the log"):
        changes.touched(spark, lake, done, now)
    assert quick(spark, root).how == "recovered"
    assert rows_of(spark, root) == at_once(spark, root, tmp_path / "other")


@pytest.mark.parametrize("removed", ["all", "half"])
def test_late_data_of_a_date_that_retention_removed_leaves_gold_as_it_is(
    spark: SparkSession, tmp_path: Path, removed: str
) -> None:
    """And is counted in gold/rejected, once, however often it is rolled up."""
    root, lake = tmp_path / "lake", lakes.Lake(str(tmp_path / "lake"))
    hours(1, 0, HOUR, DAY).commit(root)
    prepare(spark, root)
    quick(spark, root)
    kept = rows_of(spark, root)
    if removed == "all":
        assert maintained(root, 1).count("drop") == 2
    else:
        work = Work(places.at(str(root), None), "x")
        gone = Drop(MONDAY + dt.timedelta(days=1), 1, 1)
        work.do(tables.RUNS, opened(root, tables.RUNS), gone)
    assert quick(spark, root).hours == 0, "removing rows is nothing new"
    assert rows_of(spark, root) == kept

    hours(2, 600, 30 * DAY).commit(root)
    hours(3, HOUR + 600, agent="agent-2").commit(root)
    outcome = quick(spark, root)
    late = outcome.late_rows
    assert (outcome.hours, late) == (1, 2 * 3)
    found = lakes.read(spark, lake, tables.REJECTED).where(f"reason = '{aside.TOO_LATE}'").collect()
    told = sorted((row.agent, row.batch, row.table, row.rows) for row in found)
    each = [("runs", 2), ("scrapes", 1)]
    assert told == sorted((a, b, *one) for a, b in (("agent-1", 2), ("agent-2", 3)) for one in each)
    assert last(spark, root).late_rows == late

    first_day = [row for row in kept["brokers"] if "'2026-11-16'" in row and "'5m'" in row]
    assert set(first_day) <= {*rows_of(spark, root)["brokers"]}
    assert not any("10, 10" in row for row in rows_of(spark, root)["brokers"] if "'5m'" in row)
    asked = quick(spark, root, Wanted(since=MONDAY - dt.timedelta(days=3)))
    assert asked.left >= 2
    assert set(first_day) <= {*rows_of(spark, root)["brokers"]}
    again = lakes.read(spark, lake, tables.REJECTED).where(f"reason = '{aside.TOO_LATE}'").collect()
    assert sorted((r.agent, r.batch, r.table, r.rows) for r in again) == told


def test_since_rebuilds_what_bronze_holds(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "lake"
    hours(1, -DAY, 0, DAY).commit(root)
    prepare(spark, root)
    quick(spark, root)
    right = rows_of(spark, root)
    lake = lakes.at(str(root))
    spark.sql(f"UPDATE {lake.name(tables.BROKERS)} SET positive_us = 7")  # noqa: S608 - our own
    outcome = quick(spark, root, Wanted(since=MONDAY))
    assert (outcome.how, outcome.hours) == (f"since {MONDAY}", 2)
    wrong = {*rows_of(spark, root)["brokers"]} - {*right["brokers"]}
    assert {row.split("'")[3] for row in wrong} == {"2026-11-15", "2026-11", "2026"}, (
        "of the day before"
    )
    assert quick(spark, root, Wanted(since=MONDAY - dt.timedelta(days=1))).hours == 3
    assert rows_of(spark, root) == right


def test_a_lake_that_was_restored_or_replaced_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    root, told = tmp_path / "lake", []
    hours(1, 0).commit(root)
    shutil.copytree(root / "bronze", tmp_path / "backup")
    hours(2, HOUR).commit(root)
    prepare(spark, root)
    quick(spark, root)
    shutil.rmtree(root / "bronze")
    shutil.copytree(tmp_path / "backup", root / "bronze")
    spark.catalog.clearCache()
    with pytest.raises(LakeReplacedError, match="restored or replaced"):
        quick(spark, root)
    hours(3, HOUR, 2 * HOUR).commit(root)
    outcome = quick(spark, root, Wanted(since=MONDAY), **steps(told))
    assert outcome.hours == 3
    assert quick(spark, root).hours == 0


def test_rows_of_the_future_are_used_when_their_time_has_come(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = tmp_path / "lake"
    ahead = (dt.datetime.now(dt.UTC) - BASE).total_seconds() // 300 * 300 + 3 * HOUR
    hours(1, ahead).commit(root)
    prepare(spark, root)
    quick(spark, root)
    lake = lakes.at(str(root))
    assert lakes.read(spark, lake, tables.BROKERS).count() == 0
    assert lakes.read(spark, lake, tables.REJECTED).count() > 0
    newest = dt.datetime.now(dt.UTC) + dt.timedelta(hours=4)
    ripe = changes.come_true(spark, lake, newest - dt.timedelta(hours=4), newest)
    assert list(ripe.rows.values()) == [3]
    soon = newest - dt.timedelta(hours=3)
    assert changes.come_true(spark, lake, soon - dt.timedelta(hours=1), soon).rows == {}


def age(spark: SparkSession, root: Path, days: int) -> None:
    """Let a lake be older: bronze's log and files, and what gold says of when it was rolled up."""
    bronze_commits.age(root, days)
    spark.sql(
        f"UPDATE {lakes.at(str(root)).name(tables.PROGRESS)} "  # noqa: S608 - our own name
        f"SET at = at - INTERVAL {days} DAYS, committed = committed - INTERVAL {days} DAYS"
    )


def test_misdated_rows_are_set_aside_as_they_come_and_stay_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    root, lake = tmp_path / "lake", lakes.Lake(str(tmp_path / "lake"))
    first = hours(1, 0)
    first.runs.append({**first.runs[0], "date": first.runs[0]["date"] + 1})
    first.commit(root)
    prepare(spark, root)
    quick(spark, root)
    second = hours(2, 600)
    far = 253_402_300_800_000_000 + 1_000_000  # the year 10000
    second.scrapes.append(
        {**second.scrapes[0], "start": far, "end": far + 1, "date": far // 86_400_000_000}
    )
    second.commit(root)
    assert quick(spark, root).hours == 1
    found = lakes.read(spark, lake, tables.REJECTED)
    told = sorted((row.reason, row.table, row.batch, row.rows) for row in found.collect())
    assert told == sorted([(aside.MISDATED, "runs", 1, 1), (aside.BEYOND, "scrapes", 2, 1)])
