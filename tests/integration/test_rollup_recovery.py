"""What a rollup does when bronze is not what it was: log expired, dates removed, lake restored."""

from __future__ import annotations

import datetime as dt
import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core import delta_rs, lake as lakes
from lakehouse.core.periods import micros
from lakehouse.engines.engine import ask
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.errors import LakeReplacedError, LogExpiredError
from lakehouse.ops.maintain.actions import Executor
from lakehouse.ops.maintain.plan import Checkpoint, Drop, Expire, Vacuum
from lakehouse.ops.maintain.service import Maintenance
from lakehouse.ops.maintain.table_state import by_progress
from lakehouse.rollup import commit, plan, progress
from lakehouse.rollup.plan import Wanted
from tests import bronze_commits
from tests.lake_builder import BASE
from tests.rollups import DAY, HOUR, hours, prepare, rolled, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakehouse.engines.engine import Engine
    from tests.rollups import Engines

READ = (tables.RUNS, tables.SCRAPES, tables.MEMBERS)
MONDAY = BASE.date()


def opened(root: Path, table: tables.Table) -> DeltaTable:
    return DeltaTable(f"{root}/{table.path}")


def steps(told: list[str]) -> dict[str, Any]:
    return {"progress": told.append}


def plan_in(told: list[str]) -> str:
    (found,) = [line for line in told if " batches" in line]
    return found


def last(engine: Engine) -> progress.Progress:
    row = progress.last(engine).row
    assert row is not None
    return row


def at_once(engines: Engines, root: Path, elsewhere: Path) -> dict[str, list[str]]:
    """The tables of one rollup of the same bronze, made anew."""
    shutil.copytree(root / "bronze", elsewhere / "bronze")
    prepare(elsewhere)
    rolled(engines(elsewhere))
    return rows_of(elsewhere)


def maintained(root: Path, keep_days: int, gold: str = "gold") -> list[str]:
    """A round of the real maintenance."""
    place, told = delta_rs.locate(str(root), None), []
    maintenance = Maintenance(
        place,
        Executor(place, "x"),
        lambda: by_progress(delta_rs.locate(str(root), None, f"{root}/{gold}")),
        keep_days,
        {},
        lambda: dt.datetime.now(dt.UTC),
        lambda event, what: told.append(what["action"]) if event == "done" else None,
    )
    wrong = maintenance.round(threading.Event())
    assert [one for one in wrong if "bronze/events" not in str(one)] == []
    return told


def with_old_commits(local: Engines, root: Path) -> None:
    """A lake whose last rollup is older than removed files are kept, and newer commits."""
    hours(1, 0).commit(root)
    prepare(root)
    rolled(local(root))
    hours(2, HOUR, -30 * DAY).commit(root)
    age(root, 40)
    hours(3, 2 * HOUR).commit(root)


@pytest.mark.spark
def test_spark_refuses_commits_older_than_removed_files_are_kept(
    spark: SparkSession, local: Engines, tmp_path: Path
) -> None:
    """Their log is whole: it is Spark that refuses, by the age of the version before them."""
    with_old_commits(local, tmp_path)
    engine = SparkEngine(spark, lakes.at(str(tmp_path)))
    with pytest.raises(LogExpiredError, match="since the last rollup"):
        plan.touched(engine, last(engine).versions, plan.bronze_state(engine))


@pytest.mark.spark
@pytest.mark.nightly
def test_commits_that_spark_refuses_are_recovered(
    spark: SparkSession, local: Engines, tmp_path: Path
) -> None:
    root, told = tmp_path / "lake", []
    with_old_commits(local, root)
    engine = SparkEngine(spark, lakes.at(str(root)))
    from_delta_rs = Wanted(take_over=True, tidy="never")
    outcome = rolled(engine, from_delta_rs, **steps(told))
    assert (outcome.how, last(engine).how) == ("recovered", "recovered")
    assert "recovered: " in plan_in(told)
    assert rows_of(root) == at_once(local, root, tmp_path / "other")
    assert rolled(engine).hours == 0


def test_a_log_that_maintenance_expired_unread_is_recovered(local: Engines, tmp_path: Path) -> None:
    """Somebody vouched for a rollup that never was (--read-until); small files are gone, too."""
    root, told = tmp_path / "lake", []
    hours(1, 0).commit(root)
    prepare(root)
    engine = local(root)
    rolled(engine)
    for number in range(2, 6):
        hours(number, number * HOUR, number * -10 * DAY).commit(root)
    place = delta_rs.locate(str(root), None)
    work = Executor(place, "x")
    for table in READ:
        delta = opened(root, table)
        if table.partition_by:
            delta.optimize.compact()
            delta.update_incremental()
        work.run(table, delta, Checkpoint(1, dt.datetime.now(dt.UTC)))
    age(root, 40)
    for table in READ:
        delta = opened(root, table)
        work.run(table, delta, Expire(delta.version()))
        work.run(table, delta, Vacuum(30 * 24, full=False))
    log = root / tables.RUNS.path / "_delta_log"
    assert not (log / f"{2:020}.json").exists()
    outcome = rolled(engine, **steps(told))
    assert outcome.how == "recovered"
    assert "is not in the log" in plan_in(told)
    assert rows_of(root) == at_once(local, root, tmp_path / "other")


def test_a_hole_in_the_log_that_spark_does_not_see_is_noticed(
    engines: Engines, local: Engines, tmp_path: Path
) -> None:
    """Spark reads the feed of a commit that is gone as if it had been empty: it is not asked."""
    root = tmp_path / "lake"
    hours(1, 0).commit(root)
    prepare(root)
    engine = engines(root)
    rolled(engine)
    done = last(engine).versions
    for number in (2, 3, 4):
        hours(number, number * HOUR).commit(root)
    opened(root, tables.RUNS).create_checkpoint()
    gone = done.runs + 2
    (root / tables.RUNS.path / "_delta_log" / f"{gone:020}.json").unlink()
    now = plan.bronze_state(engine)
    with pytest.raises(
        LogExpiredError, match=f"version {gone} is not in the log|delta-rs cannot read"
    ):
        plan.touched(engine, done, now)
    assert rolled(engine).how == "recovered"
    assert rows_of(root) == at_once(local, root, tmp_path / "other")


@pytest.mark.parametrize("removed", [pytest.param("all", marks=pytest.mark.nightly), "half"])
def test_late_data_of_removed_date_leaves_gold(
    local: Engines, tmp_path: Path, removed: str
) -> None:
    """And is counted in gold/rejected, once, however often it is rolled up."""
    root = tmp_path / "lake"
    hours(1, 0, HOUR, DAY).commit(root)
    prepare(root)
    engine = local(root)
    rolled(engine)
    kept = rows_of(root)
    if removed == "all":
        assert maintained(root, 1).count("drop") == 2
    else:
        work = Executor(delta_rs.locate(str(root), None), "x")
        gone = Drop(MONDAY + dt.timedelta(days=1), 1, 1)
        work.run(tables.RUNS, opened(root, tables.RUNS), gone)
    assert rolled(engine).hours == 0, "removing rows is nothing new"
    assert rows_of(root) == kept

    hours(2, 600, 30 * DAY).commit(root)
    hours(3, HOUR + 600, agent="agent-2").commit(root)
    outcome = rolled(engine)
    late = outcome.late_rows
    assert (outcome.hours, late) == (1, 2 * 3)
    told = set_aside(engine)
    each = [("runs", 2), ("scrapes", 1)]
    batches = (("agent-1", 2), ("agent-2", 3))
    assert told == sorted((commit.TOO_LATE, *one, *row) for one in batches for row in each)
    assert last(engine).late_rows == late

    of_windows = rows_of(root, (tables.WINDOWS["sources"],))["sources_windows"]
    first_day = {row for row in kept["sources"] if "2026, 11, 16" in row}
    assert first_day <= {*rows_of(root)["sources"]}
    late_window = micros(BASE) + 600_000_000
    assert not any(f" {late_window}," in row for row in of_windows)
    asked = rolled(engine, Wanted(since=MONDAY - dt.timedelta(days=3)))
    assert asked.left >= 2
    assert first_day <= {*rows_of(root)["sources"]}
    assert set_aside(engine) == told


def set_aside(engine: Engine) -> list[tuple[Any, ...]]:
    """Rows that no hour was recomputed for: why, of whom, and how many."""
    columns = "SELECT r.reason, r.agent, r.batch, r.table_name, r.row_count FROM {r} r"
    found = ask(engine, columns, r=engine.rows(tables.REJECTED))
    return sorted(row for row in found if row[0] in commit.REASONS)


def test_since_rebuilds_hours_of_bronze(local: Engines, tmp_path: Path) -> None:
    root = tmp_path / "lake"
    hours(1, -DAY, 0, DAY).commit(root)
    prepare(root)
    engine = local(root)
    rolled(engine)
    right = rows_of(root)
    DeltaTable(f"{root}/{tables.SOURCES.path}").update(updates={"series_affected_us": "7"})
    outcome = rolled(engine, Wanted(since=MONDAY))
    assert (outcome.how, outcome.hours) == (f"since {MONDAY}", 2)
    wrong = {*rows_of(root)["sources"]} - {*right["sources"]}
    assert {"2026, 11, 15" in row for row in wrong} == {True}, "of the day before"
    assert rolled(engine, Wanted(since=MONDAY - dt.timedelta(days=1))).hours == 3
    assert rows_of(root) == right


def test_a_lake_that_was_restored_or_replaced_is_refused(local: Engines, tmp_path: Path) -> None:
    root, told = tmp_path / "lake", []
    hours(1, 0).commit(root)
    shutil.copytree(root / "bronze", tmp_path / "backup")
    hours(2, HOUR).commit(root)
    prepare(root)
    engine = local(root)
    rolled(engine)
    shutil.rmtree(root / "bronze")
    shutil.copytree(tmp_path / "backup", root / "bronze")
    with pytest.raises(LakeReplacedError, match="restored or replaced"):
        rolled(engine)
    hours(3, HOUR, 2 * HOUR).commit(root)
    outcome = rolled(engine, Wanted(since=MONDAY), **steps(told))
    assert outcome.hours == 3
    assert rolled(engine).hours == 0


def test_rows_of_the_future_are_used_when_their_time_has_come(
    local: Engines, tmp_path: Path
) -> None:
    root = tmp_path / "lake"
    ahead = (dt.datetime.now(dt.UTC) - BASE).total_seconds() // 300 * 300 + 3 * HOUR
    hours(1, ahead).commit(root)
    prepare(root)
    engine = local(root)
    rolled(engine)
    assert rows_of(root)["sources"] == []
    assert rows_of(root)["rejected"] != []
    newest = dt.datetime.now(dt.UTC) + dt.timedelta(hours=4)
    ripe = plan.now_due(engine, newest - dt.timedelta(hours=4), newest)
    assert len(plan.counted(engine, ripe).runs) == 1
    soon = newest - dt.timedelta(hours=3)
    early = plan.now_due(engine, soon - dt.timedelta(hours=1), soon)
    assert plan.counted(engine, early).runs == {}


def age(root: Path, days: int) -> None:
    """Let a lake be older: bronze's log and files, and what gold says of when it was rolled up."""
    bronze_commits.age(root, days)
    earlier = {name: f"{name} - INTERVAL '{days} days'" for name in ("finished_at", "committed_at")}
    DeltaTable(f"{root}/{tables.PROGRESS.path}").update(updates=earlier)


def test_misdated_rows_are_set_aside_as_they_come_and_stay_there(
    engines: Engines, tmp_path: Path
) -> None:
    root = tmp_path / "lake"
    first = hours(1, 0)
    first.runs.append({**first.runs[0], "date": first.runs[0]["date"] + 1})
    first.commit(root)
    prepare(root)
    engine = engines(root)
    rolled(engine)
    second = hours(2, 600)
    far = 253_402_300_800_000_000 + 1_000_000  # the year 10000
    second.scrapes.append(
        {**second.scrapes[0], "start": far, "end": far + 1, "date": far // 86_400_000_000}
    )
    second.commit(root)
    assert rolled(engine).hours == 1
    assert set_aside(engine) == sorted(
        [
            (commit.MISDATED, "agent-1", 1, "runs", 1),
            (commit.BEYOND, "agent-1", 2, "scrapes", 1),
        ]
    )


def test_hours_without_5_minute_rows_are_not_recomputed(local: Engines, tmp_path: Path) -> None:
    root, old = tmp_path / "lake", (dt.datetime.now(dt.UTC) - BASE).days
    keep = Wanted(tidy="now", keep_windows_days=old + 10)  # from now on; the lake is of BASE
    hours(1, -20 * DAY, 0).commit(root)
    prepare(root)
    engine = local(root)
    rolled(engine)
    windows = (tables.WINDOWS["sources"], tables.REJECTED)
    kept, of_hours = rows_of(root, windows), rows_of(root)
    bronze_commits.age(root, old)
    hours(2, -20 * DAY + 600, 600).commit(root)
    outcome = rolled(engine, keep)
    assert (outcome.hours, outcome.late_rows, outcome.left) == (1, 3, 1)
    assert {one[:3] for one in set_aside(engine)} == {(commit.TOO_LATE, "agent-1", 2)}
    assert all("2026, 11, 16" in row for row in rows_of(root, windows)["sources_windows"])
    assert any("2026, 10, 27" in row for row in kept["sources_windows"])
    of_old = {row for row in of_hours["sources"] if "2026, 10, 27" in row}
    assert len(of_old) == 1
    assert of_old <= {*rows_of(root)["sources"]}
