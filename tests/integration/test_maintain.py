"""Maintenance of real tables: nothing lost, nothing doubled, nothing removed before its time."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
import yaml
from click.testing import CliRunner
from deltalake import DeltaTable

from collector.delivery import arrow
from collector.delivery.bronze_table import BronzeTable
from collector.errors import LakeError
from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import delta_rs
from lakehouse.errors import (
    ForeignEngineError,
    MaintenanceConflictError,
    MaintenanceError,
    TableSchemaError,
)
from lakehouse.ops.maintain import table_state
from lakehouse.ops.maintain.actions import OWNER, Executor
from lakehouse.ops.maintain.plan import Checkpoint, Compact, Drop, NoteCleaned
from lakehouse.ops.maintain.service import Maintenance
from lakehouse.ops.maintain.table_state import (
    CHECKED,
    CLEANED,
    ReadPosition,
    load_state,
    mark,
)
from tests import bronze_commits
from tests.lake_builder import BASE
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

SPARK = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"


class Kept:
    """A maintenance of a local lake, and what it told."""

    def __init__(self, lake: Path, keep_days: int = 400, **accepted: int) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.place = delta_rs.locate(str(lake), None)
        self.maintenance = Maintenance(
            self.place,
            Executor(self.place, uuid.uuid4().hex),
            lambda: table_state.by_progress(delta_rs.locate(str(lake), None)),
            keep_days,
            accepted,
            lambda: dt.datetime.now(dt.UTC),
            lambda event, what: self.told.append((event, what)),
        )

    def round(self) -> list[Any]:
        return self.maintenance.round(threading.Event())

    def done(self, table: str = "runs") -> list[str]:
        return [
            what["action"]
            for event, what in self.told
            if event == "done" and what["table"] == table
        ]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    bronze_commits.make(str(tmp_path / "lake"), {})
    return tmp_path / "lake"


def filled(
    lake: Path, commits: int, agent: str = "a", only: Any = (tables.RUNS,), first: int = 1
) -> None:
    for table in only:
        delta = opened(lake, table)
        for number in range(first, commits + 1):
            bronze_commits.append(delta, table, agent, number)


def opened(lake: Path, table: tables.Table = tables.RUNS) -> DeltaTable:
    return DeltaTable(f"{lake}/{table.path}")


def batches(lake: Path, table: tables.Table = tables.RUNS) -> list[tuple[str, int, int]]:
    return bronze_commits.read(str(lake), {}, table)


def expected(commits: int, agent: str = "a") -> list[tuple[str, int, int]]:
    return [(agent, number, 3) for number in range(1, commits + 1)]


def progress_of_all(lake: Path) -> None:
    versions = {one.name: opened(lake, one).version() for one in tables.BRONZE}
    bronze_commits.record_progress(str(lake), **versions)


def log_of(lake: Path, pattern: str = "*.json") -> list[Path]:
    return sorted((lake / tables.RUNS.path / "_delta_log").glob(pattern))


def foreign_commit(lake: Path, engine: str | None) -> int:
    """A commit as another engine leaves it."""
    version = opened(lake).version() + 1
    info = {"timestamp": 1, "operation": "WRITE", **({"engineInfo": engine} if engine else {})}
    path = lake / tables.RUNS.path / "_delta_log" / f"{version:020}.json"
    path.write_text(json.dumps({"commitInfo": info}) + "\n")
    return version


def test_a_round_leaves_few_files_a_checkpoint_and_every_row(lake: Path) -> None:
    filled(lake, 33, only=tables.BRONZE)
    for table in tables.BRONZE:
        bronze_commits.idle(lake, table, 50)
    kept = Kept(lake)
    assert kept.round() == []
    for table in tables.BRONZE:
        delta = opened(lake, table)
        assert kept.done(table.name) == ["compact", "checkpoint"]
        assert len(delta.file_uris()) == 1
        assert batches(lake, table) == expected(33)
        assert delta.transaction_version(f"a/{table.name}") == 33
        assert mark(delta, CHECKED) == delta.version() - 1
    assert len(log_of(lake, "*.checkpoint.parquet")) == 1
    assert kept.round() == []
    assert kept.done() == ["compact", "checkpoint"], "nothing more was due"


def test_an_hour_stays_together_when_its_files_are_compacted(lake: Path) -> None:
    """delta-rs would deal the files to as many readers as there are cores."""
    for agent in ("a", "b"):
        filled(lake, 1, agent)
    delta = opened(lake)
    for number in range(2, 60):
        for agent in ("a", "b"):
            bronze_commits.append(delta, tables.RUNS, agent, number)
    assert Kept(lake).round() == []
    (file,) = opened(lake).file_uris()
    found = duckdb.read_parquet(file).project("batch").fetchall()
    assert all(earlier >= later for earlier, later in pairwise(found))


def test_maintain_without_rollup_removes_no_row(lake: Path) -> None:
    filled(lake, 90)
    bronze_commits.age(lake, 500)
    kept = Kept(lake)
    kept.round()
    kept.round()
    left = [what["what"] for event, what in kept.told if event == "left" if what["table"] == "runs"]
    assert len(left) == 1, "it is said once"
    assert "no rollup has been recorded in" in left[0]
    assert kept.done() == ["compact", "checkpoint"]
    assert len(log_of(lake)) == 94, "table, batches, turn, compaction, note"
    assert batches(lake) == expected(90)


def test_old_rolled_up_rows_are_removed(lake: Path) -> None:
    """Three rounds, a month apart: compaction, then its leavings go; transactions survive."""
    filled(lake, 40)
    assert Kept(lake).round() == []
    removed = [*(lake / tables.RUNS.path).glob("date=*/*")]
    bronze_commits.age(lake, 40)
    filled(lake, 73, first=41)
    progress_of_all(lake)
    kept = Kept(lake)
    assert kept.round() == []
    assert kept.done() == ["compact", "checkpoint", "expire", "vacuum", "note_cleaned"]
    delta = opened(lake)
    gone = [file for file in removed if not file.exists()]
    assert len(gone) == 40, "what was removed 40 days ago; today's leavings stay"
    assert len([*(lake / tables.RUNS.path).glob("date=*/*")]) == 1 + 34
    assert batches(lake) == expected(73)
    assert delta.transaction_version("a/runs") == 73
    bronze_commits.age(lake, 40)
    checkpoint = log_of(lake, "*.checkpoint.parquet")[-1]
    Executor(kept.place, "x").run(tables.RUNS, opened(lake), NoteCleaned(0))
    progress_of_all(lake)
    assert Kept(lake).round() == []
    first = int(log_of(lake)[0].stem)
    assert first == int(checkpoint.name[:20]), "the log begins at the checkpoint"
    again = opened(lake)
    assert again.transaction_version("a/runs") == 73, "after the expiry, too"
    assert batches(lake) == expected(73)
    assert mark(again, CLEANED) > 20_000


def test_the_log_that_was_not_read_stays_whatever_its_age(lake: Path) -> None:
    filled(lake, 90)
    bronze_commits.age(lake, 100)
    bronze_commits.record_progress(str(lake), runs=50)
    kept = Kept(lake)
    assert kept.round() == []
    bronze_commits.age(lake, 0)
    assert "expire" in kept.done()
    assert [int(one.stem) for one in log_of(lake)][:90] == [*range(90)]
    vacuums = [what for event, what in kept.told if what.get("action") == "vacuum"]
    assert {what["hours"] for what in vacuums if what["table"] == "runs"} <= {
        101 * 24,
        101 * 24 + 1,
    }


@pytest.mark.parametrize("properties", [{}, {"delta.enableExpiredLogCleanup": "true"}])
def test_compaction_expires_no_log_by_itself(lake: Path, properties: dict[str, str]) -> None:
    """delta-rs does at each hundredth version, unless the table forbids it; older ones did not."""
    if properties:
        opened(lake).alter.set_table_properties(properties)
    filled(lake, 33)
    opened(lake).create_checkpoint()
    bronze_commits.idle(lake, tables.RUNS, 97 - opened(lake).version())
    bronze_commits.age(lake, 100)
    assert Kept(lake).round() == []
    assert (lake / tables.RUNS.path / "_delta_log" / f"{99:020}.checkpoint.parquet").exists()
    assert [int(one.stem) for one in log_of(lake)][:100] == [*range(100)]
    assert opened(lake).metadata().configuration["delta.enableExpiredLogCleanup"] == "false"


def test_whole_dates_go_when_they_are_too_old(lake: Path) -> None:
    filled(lake, 175, first=160)  # 168 windows are of the first date
    bronze_commits.age(lake, 30)
    progress_of_all(lake)
    keep = (dt.datetime.now(dt.UTC).date() - (BASE.date() + dt.timedelta(days=1))).days
    kept = Kept(lake, keep)
    assert kept.round() == []
    assert kept.done()[:1] == ["drop"]
    assert batches(lake) == expected(175)[167:]
    assert opened(lake).transaction_version("a/runs") == 175


def test_foreign_commit_is_refused_and_accepted_by_option(lake: Path) -> None:
    filled(lake, 40)
    version = foreign_commit(lake, SPARK)
    filled(lake, 45, first=41)
    kept = Kept(lake)
    (refused,) = kept.round()
    assert isinstance(refused, ForeignEngineError)
    assert f"{SPARK} wrote version {version}" in str(refused)
    assert f"--accept runs@{version}" in str(refused)
    assert "\n" not in str(refused)
    assert kept.done() == []
    assert len(opened(lake).file_uris()) == 45
    accepted = Kept(lake, runs=version)
    assert accepted.round() == []
    assert accepted.done() == ["compact"]


def test_a_commit_that_was_looked_at_once_is_not_looked_at_again(lake: Path) -> None:
    filled(lake, 90)
    Kept(lake).round()
    version = foreign_commit(lake, SPARK)
    (refused,) = Kept(lake).round()
    assert f"version {version}, " in str(refused)


def test_commit_without_writer_is_reported(lake: Path) -> None:
    foreign_commit(lake, None)
    kept = Kept(lake)
    assert kept.round() == []
    assert (
        "left",
        {"table": "runs", "what": "1 commits without the name of an engine"},
    ) in kept.told


@pytest.mark.parametrize("properties", [{}, {"jmxlake.schema": "99"}])
def test_a_table_that_is_not_ours_is_refused(tmp_path: Path, properties: dict[str, str]) -> None:
    lake = tmp_path / "lake"
    bronze_commits.make(str(lake), {})
    (lake / tables.EVENTS.path).rename(tmp_path / "away")
    DeltaTable.create(
        f"{lake}/{tables.EVENTS.path}",
        schema=arrow.schema(tables.EVENTS),
        configuration=properties,
        raise_if_key_not_exists=False,
    )
    (refused,) = Kept(lake).round()
    assert isinstance(refused, TableSchemaError)
    assert "bronze/events: property jmxlake.schema is" in str(refused)


def test_a_table_of_other_columns_is_refused(lake: Path, tmp_path: Path) -> None:
    (lake / tables.EVENTS.path).rename(tmp_path / "away")
    other = tables.Table("bronze", "events", "", (tables.Column("x", "string", ""),))
    DeltaTable.create(
        f"{lake}/{tables.EVENTS.path}",
        schema=arrow.schema(other),
        configuration=tables.EVENTS.properties,
        raise_if_key_not_exists=False,
    )
    (refused,) = Kept(lake).round()
    assert isinstance(refused, TableSchemaError)
    assert "another schema" in str(refused)


def test_overtaken_maintenance_changes_no_table(lake: Path) -> None:
    """delta-rs lets both compactions commit, and every row would be there twice."""
    filled(lake, 5)
    place = delta_rs.locate(str(lake), None)
    first, second = Executor(place, "first"), Executor(place, "second")
    compact = Compact(BASE.date(), 10_000_000, 6, 1)
    slow, quick = opened(lake), opened(lake)
    first.run(tables.RUNS, slow, compact)
    bronze_commits.commit(opened(lake), tables.RUNS, "a", 6)
    slow.update_incremental()  # the first is about to compact once more
    quick.update_incremental()
    second.run(tables.RUNS, quick, compact)
    with pytest.raises(MaintenanceConflictError, match="another maintenance") as caught:
        first.run(tables.RUNS, slow, compact)
    assert "\n" not in str(caught.value)
    assert batches(lake) == expected(6)
    bronze_commits.commit(opened(lake), tables.RUNS, "a", 7)
    slow.update_incremental()
    first.run(tables.RUNS, slow, compact)
    assert batches(lake) == expected(7), "and later it may have its turn again"


def test_two_maintenances_note_one_checkpoint(lake: Path) -> None:
    place = delta_rs.locate(str(lake), None)
    first, second = opened(lake), opened(lake)
    Executor(place, "first").run(tables.RUNS, first, Checkpoint(40, BASE))
    with pytest.raises(MaintenanceConflictError):
        Executor(place, "second").run(tables.RUNS, second, Checkpoint(40, BASE))


def test_an_appending_agent_and_compaction_do_not_meet(lake: Path) -> None:
    filled(lake, 40)
    work, compact = (
        Executor(delta_rs.locate(str(lake), None), "x"),
        Compact(BASE.date(), 10_000_000, 4, 1),
    )
    stale = opened(lake)
    stale.alter.set_table_properties({OWNER: "x"}, raise_if_not_exists=False)
    appending = opened(lake)
    bronze_commits.commit(opened(lake), tables.RUNS, "b", 1)
    assert work.run(tables.RUNS, stale, compact) == {"files": 40, "into": 1}
    bronze_commits.append(appending, tables.RUNS, "c", 1)
    assert batches(lake) == [*expected(40), ("b", 1, 3), ("c", 1, 3)]


def test_older_tables_get_comments_once_and_agents_go_on(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    bronze_commits.make(str(lake), {}, comments=False)
    agent = BronzeTable(str(lake), tables.RUNS, dict)
    agent.load()
    assert not comments(lake, tables.RUNS)
    append(agent, 1)
    kept = Kept(lake)
    assert kept.round() == []
    assert kept.done() == ["comment"]
    assert [comments(lake, one) for one in tables.BRONZE] == [
        {column.name: column.comment for column in one.columns} for one in tables.BRONZE
    ]
    with pytest.raises(LakeError):  # it was loaded before, as if its commit were under way
        append(agent, 2)
    for number in (2, 3):
        agent.load()
        append(agent, number)
    restarted = BronzeTable(str(lake), tables.RUNS, dict, expected=agent.id)
    restarted.load()
    append(restarted, 4)
    assert batches(lake) == expected(4)
    assert kept.round() == []
    assert kept.done() == ["comment"]


def comments(lake: Path, table: tables.Table) -> dict[str, str]:
    fields = opened(lake, table).schema().fields
    return {one.name: one.metadata["comment"] for one in fields if one.metadata}


def append(agent: BronzeTable, number: int) -> None:
    rows = bronze_commits.rows_of(tables.RUNS, "a", number, 3)
    agent.append(arrow.to_arrow(tables.RUNS, rows), "a", number)


def test_dropping_dates_does_not_stop_agents_on_others(lake: Path) -> None:
    filled(lake, 175, first=160)
    stale = opened(lake)
    Executor(delta_rs.locate(str(lake), None), "x").run(
        tables.RUNS, opened(lake), Drop(BASE.date() + dt.timedelta(days=1), 0, 0)
    )
    bronze_commits.commit(stale, tables.RUNS, "b", 201)
    assert batches(lake)[-1] == ("b", 201, 3)


def test_progress_of_other_lake_is_ignored(lake: Path) -> None:
    bronze_commits.record_progress(str(lake), runs=7)
    positions = table_state.by_progress(delta_rs.locate(str(lake), None))
    found = positions(tables.RUNS, opened(lake))
    assert isinstance(found, str)
    assert "has read version 7, but the newest version is 0" in found
    assert positions(tables.EVENTS, opened(lake)) == ReadPosition(0)


def test_the_last_rollup_counts(lake: Path) -> None:
    filled(lake, 5)
    for version in (1, 4):
        bronze_commits.record_progress(str(lake), runs=version)
    positions = table_state.by_progress(delta_rs.locate(str(lake), None))
    assert positions(tables.RUNS, opened(lake)) == ReadPosition(4)


def test_date_accepts_the_commits_before_it(lake: Path) -> None:
    filled(lake, 5)
    bronze_commits.age(lake, 40)
    filled(lake, 9, first=6)
    place, delta = delta_rs.locate(str(lake), None), opened(lake)
    today = dt.datetime.now(dt.UTC).date()

    def read(until: dt.date | None) -> ReadPosition | str:
        return table_state.by_date(place, until)(tables.RUNS, delta)

    assert read(today - dt.timedelta(days=20)) == ReadPosition(5)
    assert read(today + dt.timedelta(days=1)) == ReadPosition(9)
    assert isinstance(read(today - dt.timedelta(days=60)), str)
    assert isinstance(read(None), str)


def test_state_has_the_figures_of_the_table(lake: Path) -> None:
    filled(lake, 5, only=tables.BRONZE)
    place = delta_rs.locate(str(lake), None)
    for table in tables.BRONZE:
        found = load_state(place, table, opened(lake, table), ReadPosition(3), 20_000)
        assert (found.uncheckpointed, found.cleaned) == (6, -1), "versions 0 to 5, and no note"
        assert len(found.files) == 5
        assert {one.date for one in found.files} == (
            {BASE.date()} if table.partition_by else {None}
        )
        assert isinstance(found.read, ReadPosition)
        assert found.read.unread_since is not None


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["maintain", *arguments])


def test_dry_run_prints_and_changes_no_table(lake: Path) -> None:
    filled(lake, 90)
    before = sorted(lake.rglob("*"))
    told = run(str(lake), "--dry-run")
    assert told.exit_code == 0
    assert "compact date=2026-11-16" in told.stdout
    assert "checkpoint commits=92" in told.stdout
    assert "skipped: log, removed files and old dates are kept" in told.stdout
    as_json = json.loads(run(str(lake), "--dry-run", "--json").stdout)["tables"]
    assert [one["table"] for one in as_json] == [one.name for one in tables.BRONZE]
    assert [one["action"] for one in as_json[0]["actions"]] == ["compact", "checkpoint"]
    assert sorted(lake.rglob("*")) == before


def test_exit_code_is_that_of_the_needed_action(lake: Path, tmp_path: Path) -> None:
    assert run(str(lake)).exit_code == 0
    nowhere = run(str(tmp_path))
    assert nowhere.exit_code == 1
    assert "no table bronze/runs" in nowhere.stderr
    foreign_commit(lake, SPARK)
    for arguments in ([], ["--dry-run"]):
        refused = run(str(lake), *arguments)
        assert refused.exit_code == 3
        assert SPARK in refused.stderr
    assert run(str(lake), "--accept", "runs@1").exit_code == 0
    gold = lake / "gold" / "progress" / "_delta_log"
    gold.mkdir(parents=True)
    (gold / f"{0:020}.json").write_text("broken\n")
    broken = run(str(lake), "--accept", "runs@1")
    assert broken.exit_code == 1
    assert "gold/progress" in broken.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--keep", "5x"], "not a duration"),
        (["--keep", "3h"], "at least 1d"),
        (["--read-until", "2026-11-01"], "requires --gold none"),
        (["--gold", "none", "--read-until", "soon"], "not a date"),
        (["--accept", "runs"], "runs@1234"),
        (["--accept", "gold@1"], "runs@1234"),
        (["--every", "1m", "--once"], "cannot be combined with --once"),
    ],
)
def test_wrong_option_is_an_error(lake: Path, arguments: list[str], says: str) -> None:
    told = run(str(lake), *arguments)
    assert told.exit_code == 2
    assert says in told.stderr


def test_storage_options_come_from_their_file_and_stay_secret(tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    file.write_text(yaml.safe_dump({"aws_region": "x"}))
    assert delta_rs.locate("s3://b/lake/", file).options == {"aws_region": "x"}
    assert delta_rs.locate("s3://b/lake/", file).root == "s3://b/lake"
    file.write_text("hunter2: [")
    told = run("s3://b/lake", "--options-file", str(file))
    assert told.exit_code == 1
    assert f"--options-file {file}:1:11: not YAML" in told.stderr
    assert "hunter2" not in told.stderr


def test_unreadable_table_is_one_line_and_others_are_done(lake: Path) -> None:
    filled(lake, 40, only=tables.BRONZE)
    log = lake / tables.RUNS.path / "_delta_log"
    (log / f"{41:020}.json").write_text("{broken\n")
    kept = Kept(lake)
    (failed,) = kept.round()
    assert isinstance(failed, MaintenanceError)
    assert "bronze/runs" in str(failed)
    assert "\n" not in str(failed)
    assert kept.done("scrapes") == ["compact"]


def test_service_runs_until_stopped(lake: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [
        sys.executable,
        "-m",
        "tests.delta_rs_alone",
        "maintain",
        str(lake),
        "--every",
        "1s",
        "--json",
    ]
    with log.open("w") as said:
        process = subprocess.Popen(command, stderr=said, env={**os.environ, "PYTHONPATH": "."})
    try:
        wait_for(lambda: "left" in log.read_text(), 60)
        bronze_commits.commit_all(str(lake), {}, "a", range(1, 41), (tables.RUNS,))
        wait_for(lambda: '"event": "done"' in log.read_text(), 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait(60)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"time", "level", "event", "table"} <= events[0].keys()
    assert [one["action"] for one in events if one["event"] == "done"] == ["compact"]


def test_the_unit_is_printed_and_runs_the_service() -> None:
    told = CliRunner().invoke(main, ["systemd-unit"])
    assert told.exit_code == 0
    assert "ExecStart=/opt/jmxlake/bin/jmxlake maintain ${LAKE} --every 1m" in told.stdout
    assert "NoNewPrivileges=yes" in told.stdout
