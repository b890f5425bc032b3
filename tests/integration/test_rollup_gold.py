"""Gold as a rollup finds it: of an older version, of a newer one, damaged; and its upkeep."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable, write_deltalake

from collector.delivery import arrow
from lakehouse import tables
from lakehouse.core.objective import Objective
from lakehouse.errors import LakehouseError, LeaseHeldError, TableSchemaError
from lakehouse.rollup import gold_tables, lease
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.rollup.verify import MISSING, UNEXPECTED, verify
from lakehouse.slo.openslo import objective_files
from tests import rollups
from tests.lake_builder import Batch, made
from tests.rollups import HOUR, hours, prepare, rolled, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.engines.engine import Engine
    from lakehouse.rollup.verify import Found
    from tests.rollups import Engines

WINDOWS = tables.WINDOWS["coverage"]


def compared(engine: Engine) -> Found:
    return verify(engine, objective_files.load(), 10, 1)


def test_verify_finds_exactly_the_changed_rows(engines: Engines, tmp_path: Path) -> None:
    hours(1, 0, HOUR, 30 * HOUR).commit(tmp_path)
    engine = engines(tmp_path)
    with pytest.raises(LakehouseError, match="gold has no data"):
        compared(engine)
    prepare(tmp_path)
    rolled(engine)
    found = compared(engine)
    every = sum(map(len, rows_of(tmp_path, tables.OF_HOURS).values()))
    assert (found.hours, found.rows, found.differences) == (3, every, ())
    brokers = DeltaTable(f"{tmp_path}/{tables.SOURCES.path}")
    brokers.update(
        {"series_affected_us": "1 + series_affected_us"}, predicate="date = '2026-11-16'"
    )
    brokers.update({"value_min": "-0.0"}, predicate="date = '2026-11-17'")
    DeltaTable(f"{tmp_path}/{WINDOWS.path}").delete("date = '2026-11-17'")
    odd = compared(engine).differences
    told = sorted((one.table, one.kind, one.row["date"]) for one in odd)
    both = [("sources", kind) for kind in (MISSING, UNEXPECTED)]
    days = ["2026-11-16", "2026-11-16", "2026-11-17"]
    missing = ("coverage_windows", MISSING, "2026-11-17")
    assert told == sorted([*((*one, day) for one in both for day in days), missing])


def test_verify_waits_for_a_rollup(local: Engines, tmp_path: Path) -> None:
    hours(1, 0).commit(tmp_path)
    prepare(tmp_path)
    engine = local(tmp_path)
    refused: list[str] = []

    def look(step: str) -> None:
        if step == "progress":
            with pytest.raises(LeaseHeldError, match="is rolling up since") as caught:
                compared(engine)
            refused.append(str(caught.value))

    rolled(engine, progress=look)
    assert len(refused) == 1
    assert compared(engine).differences == ()


def test_older_gold_gets_missing_tables_and_columns(engines: Engines, tmp_path: Path) -> None:
    hours(1, 0).commit(tmp_path)
    engine = engines(tmp_path)
    prepare(tmp_path)
    shutil.rmtree(tmp_path / tables.COVERAGE.path)
    for table, fewer in ((tables.PROGRESS, 10), (tables.SOURCES, 11)):
        shutil.rmtree(tmp_path / table.path)
        engine.create(dataclasses.replace(table, columns=table.columns[:fewer]))
    told: list[str] = []
    rolled(engine, progress=told.append)
    added = ", ".join(tables.PROGRESS.column_names[10:])
    assert added.startswith("kernel, duckdb, tables, rejected_dates")
    assert f"new columns of progress: {added}" in told
    assert any(line.startswith("new columns of sources: series_affected_low_us, ") for line in told)
    assert "new table coverage" in told
    fields = DeltaTable(f"{tmp_path}/{tables.SOURCES.path}").schema().fields
    comments = {field.name: field.metadata["comment"] for field in fields}
    assert comments == {column.name: column.comment for column in tables.SOURCES.columns}
    assert compared(engine).differences == ()
    assert rolled(engine).hours == 0


def test_gold_of_a_newer_version_is_refused(local: Engines, tmp_path: Path) -> None:
    hours(1, 0).commit(tmp_path)
    engine = local(tmp_path)
    rolled(engine)
    before = engine.detail(tables.LEASE)
    assert before is not None
    more = int(before.properties[lease.COLUMNS]) + 1
    engine.set_properties(tables.LEASE, {lease.COLUMNS: str(more)})
    hours(2, HOUR).commit(tmp_path)
    with pytest.raises(TableSchemaError, match="a newer jmxlake wrote this gold"):
        rolled(engine)
    engine.set_properties(tables.LEASE, {lease.COLUMNS: "9" * 5000})
    with pytest.raises(TableSchemaError, match="a newer jmxlake wrote this gold"):
        rolled(engine)


def test_gold_of_others_is_refused(local: Engines, tmp_path: Path) -> None:
    hours(1, 0).commit(tmp_path)
    engine = local(tmp_path)
    more = tables.Column("of_others", "string", "what another program knows")
    columns = (more, *tables.SOURCES.columns[4:])
    engine.create(dataclasses.replace(tables.SOURCES, columns=columns, partition_by=()))
    with pytest.raises(TableSchemaError, match="it has the column of_others and lacks date"):
        rolled(engine)
    wrong = dataclasses.replace(more, name="metric", type="bigint")
    columns = tuple(wrong if one.name == "metric" else one for one in tables.TOPICS.columns)
    engine.create(dataclasses.replace(tables.TOPICS, columns=columns))
    with pytest.raises(TableSchemaError, match="metric is bigint, not string"):
        gold_tables.is_outdated(engine.lake, tables.TOPICS, engine.detail(tables.TOPICS))


def test_bronze_of_a_newer_delta_is_one_line(engines: Engines, tmp_path: Path) -> None:
    hours(1, 0).commit(tmp_path)
    log = tmp_path / tables.RUNS.path / "_delta_log" / f"{2:020}.json"
    newer = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = {"readerFeatures": ["timeTurner"], "writerFeatures": ["timeTurner"]}
    log.write_text(json.dumps({"protocol": {**newer, **features}}) + "\n")
    with pytest.raises(LakehouseError, match=r"requires a newer Delta|is not supported") as caught:
        rolled(engines(tmp_path))
    assert "\n" not in str(caught.value)


def test_an_empty_lake_and_one_with_a_row(local: Engines, tmp_path: Path) -> None:
    Batch().commit(tmp_path)
    prepare(tmp_path)
    engine = local(tmp_path)
    first = rolled(engine)
    assert (first.hours, first.how) == (0, "whole")
    assert rolled(engine).how == ""
    one = Batch(number=2)
    one.run(rollups.ISR, 0, 300, 0.0, topic="t", partition=0)
    one.commit(tmp_path)
    assert rolled(engine).hours == 1
    found = rows_of(tmp_path, (tables.SOURCES, tables.WINDOWS["sources"]))
    assert [len(rows) for rows in found.values()] == [1, 1]
    assert compared(engine).differences == ()


def test_gold_is_tidied_once_a_day(engines: Engines, tmp_path: Path) -> None:
    """Many small rollups leave few files, and no more than a day of what they replaced."""
    hours(1, HOUR).commit(tmp_path)
    prepare(tmp_path)
    engine = engines(tmp_path)
    rolled(engine)
    for number in range(2, 4):
        hours(number, number * HOUR, HOUR + number * 300).commit(tmp_path)
        rolled(engine)
    kept = rows_of(tmp_path)
    replaced = on_disk(tmp_path) - live(tmp_path)
    assert len(replaced) >= 2, "of the first hour"
    older(tmp_path / "gold", 2)
    told: list[str] = []
    assert rolled(engine, Wanted(tidy="now"), progress=told.append).hours == 0
    tidied = {line.removeprefix("tidied ") for line in told if line.startswith("tidied ")}
    filled = {name for name, rows in rows_of(tmp_path, gold_tables.EVERY).items() if rows}
    assert tidied == filled | {one.name for one in engine.scratch}
    assert len(live(tmp_path)) == 1, "a file of each date"
    assert replaced.isdisjoint(on_disk(tmp_path))
    assert rows_of(tmp_path) == kept
    again: list[str] = []
    rolled(engine, Wanted(), progress=again.append)
    assert again == [], "it was done today"
    hours(9, HOUR + 600).commit(tmp_path)
    assert rolled(engine).hours == 1
    assert compared(engine).differences == ()


def live(root: Path) -> set[str]:
    uris = DeltaTable(f"{root}/{tables.COVERAGE.path}").file_uris()
    return {uri.rsplit("/", 1)[1] for uri in uris}


def on_disk(root: Path) -> set[str]:
    return {one.name for one in (root / tables.COVERAGE.path).glob("date=*/[!.]*.parquet")}


def older(gold: Path, days: int) -> None:
    """Let what was removed from gold's tables have been removed some days ago."""
    for log in gold.glob("*/_delta_log/*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            if "remove" in action:
                action["remove"]["deletionTimestamp"] -= days * 86_400_000
        log.write_text("\n".join(json.dumps(action) for action in actions) + "\n")
    for checksum in gold.glob("*/_delta_log/.*.crc"):
        checksum.unlink()
    for file in gold.glob("**/*.parquet"):
        at = time.time() - days * 86_400
        os.utime(file, (at, at))


def test_lake_has_the_family_of_an_own_metric(engines: Engines, tmp_path: Path) -> None:
    one = Batch()
    one.run("my.own.bean", 0, 300, 1.0, topic="t")
    one.zeros(rollups.ISR, 0, 300, "t", [0])
    one.scrape("min_isr", 0, 300)
    one.scrape("mine", 0, 100)
    one.commit(tmp_path)
    own = tuple(f"x{number}" for number in range(2))  # another catalogue has the metric, too
    words = ("mine", ["broker"], "gauge", "1", "idle", 0, 0, "Mine.", "agent-1")
    rows = [(catalogue, "my.own.bean", *words) for catalogue in own]
    table = tables.METRIC_DEFINITIONS
    write_deltalake(made(tmp_path, table), arrow.to_arrow(table, rows), mode="append")
    prepare(tmp_path)
    objective = Objective("own", "", "", "topic", "my.own.bean", 11.0, 0.99)
    rollup(engines(tmp_path), (objective,), Wanted(tidy="never"))
    (row,) = DeltaTable(f"{tmp_path}/{tables.SLI.path}").to_pyarrow_table().to_pylist()
    assert row["good_us"] == 100_000_000
