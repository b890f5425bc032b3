"""Gold as a rollup finds it: of an older version, of a newer one, damaged; and its upkeep."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from lakehouse import lake as lakes
from lakehouse import tables, upkeep
from lakehouse.errors import LakehouseError, LeaseHeldError, TableSchemaError
from lakehouse.lake import Lake
from lakehouse.rollup import Wanted
from lakehouse.verify import MISSING, UNEXPECTED, verify
from tests import rollups
from tests.lake_builder import Batch
from tests.rollups import HOUR, filling, hours, prepare, quick, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def compared(
    spark: SparkSession, root: Path, of: tuple[tables.Table, ...] = (tables.BROKERS,)
) -> Any:
    return verify(spark, lakes.at(str(root)), (), 10, 1, jobs=filling(of))


def test_verify_finds_what_differs_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    hours(1, 0, HOUR, 30 * HOUR).commit(tmp_path)
    with pytest.raises(LakehouseError, match="nothing is rolled up yet"):
        compared(spark, tmp_path)
    prepare(spark, tmp_path)
    quick(spark, tmp_path)
    found = compared(spark, tmp_path, rollups.QUICK)
    every = sum(map(len, rows_of(spark, tmp_path, rollups.QUICK).values()))
    assert (found.hours, found.rows, found.differences) == (3, every, ())
    lake = lakes.at(str(tmp_path))
    name = lake.name(tables.BROKERS)
    spark.sql(f"UPDATE {name} SET max = -0.0 WHERE grain = '1d' AND max = 0")  # noqa: S608
    spark.sql(f"DELETE FROM {lake.name(tables.COVERAGE)} WHERE grain = '1w'")  # noqa: S608
    spark.sql(f"UPDATE {name} SET positive_us = 1 + positive_us WHERE grain = '1d'")  # noqa: S608
    odd = compared(spark, tmp_path, rollups.QUICK).differences
    told = sorted((one.table, one.kind, one.row["grain"]) for one in odd)
    days = [("brokers", kind, "1d") for kind in (MISSING, UNEXPECTED) for _ in range(2)]
    assert told == sorted([*days, ("coverage", MISSING, "1w")])


def test_verify_waits_for_a_rollup(spark: SparkSession, tmp_path: Path) -> None:
    hours(1, 0).commit(tmp_path)
    prepare(spark, tmp_path)
    refused: list[str] = []

    def look(step: str) -> None:
        if step == "progress":
            with pytest.raises(LeaseHeldError, match="is rolling up since") as caught:
                compared(spark, tmp_path)
            refused.append(str(caught.value))

    quick(spark, tmp_path, progress=look)
    assert len(refused) == 1
    assert compared(spark, tmp_path).differences == ()


def test_gold_of_an_older_version_gets_the_tables_and_columns_it_lacks(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(str(tmp_path))
    hours(1, 0).commit(tmp_path)
    prepare(spark, tmp_path)
    shutil.rmtree(tmp_path / tables.COVERAGE.path)
    for table, fewer in ((tables.PROGRESS, 6), (tables.BROKERS, 12)):
        shutil.rmtree(tmp_path / table.path)
        old = dataclasses.replace(table, columns=table.columns[:fewer])
        lakes.create(spark, lake, old)
    told: list[str] = []
    quick(spark, tmp_path, progress=told.append)
    assert "new columns of progress: committed, how, late_rows, runs_id" in told
    assert any(line.startswith("new columns of brokers: positive_low_us, ") for line in told)
    assert "new table coverage" in told
    told_of = {row.col_name: row.comment for row in described(spark, lake, tables.BROKERS)}
    assert all(told_of[column.name] == column.comment for column in tables.BROKERS.columns)
    assert compared(spark, tmp_path).differences == ()
    assert quick(spark, tmp_path).hours == 0


def test_gold_of_a_newer_version_or_of_others_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(str(tmp_path))
    hours(1, 0).commit(tmp_path)
    more = tables.Column("of_later", "string", "what a later version knows")
    table = tables.BROKERS
    lakes.create(spark, lake, dataclasses.replace(table, columns=(*table.columns, more)))
    with pytest.raises(TableSchemaError, match="does not know the column of_later"):
        quick(spark, tmp_path)
    wrong = dataclasses.replace(more, name="metric", type="bigint")
    columns = tuple(wrong if one.name == "metric" else one for one in tables.TOPICS.columns)
    lakes.create(spark, lake, dataclasses.replace(tables.TOPICS, columns=columns))
    with pytest.raises(TableSchemaError, match="metric is bigint, not string"):
        upkeep.is_outdated(spark, lake, tables.TOPICS)


def test_bronze_of_a_newer_delta_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    hours(1, 0).commit(tmp_path)
    log = tmp_path / tables.RUNS.path / "_delta_log" / f"{2:020}.json"
    newer = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = {"readerFeatures": ["timeTurner"], "writerFeatures": ["timeTurner"]}
    log.write_text(json.dumps({"protocol": {**newer, **features}}) + "\n")
    with pytest.raises(TableSchemaError, match="needs a newer Delta") as caught:
        quick(spark, tmp_path)
    assert "\n" not in str(caught.value)


def test_an_empty_lake_and_one_with_a_row(spark: SparkSession, tmp_path: Path) -> None:
    Batch().commit(tmp_path)
    prepare(spark, tmp_path)
    first = quick(spark, tmp_path)
    assert (first.hours, first.how) == (0, "whole")
    assert quick(spark, tmp_path).how == ""
    one = Batch(number=2)
    one.run(rollups.ISR, 0, 300, 0.0, topic="t", partition=0)
    one.commit(tmp_path)
    assert quick(spark, tmp_path).hours == 1
    assert len(rows_of(spark, tmp_path)["brokers"]) == 4, "a row of each grain"
    assert compared(spark, tmp_path).differences == ()


def test_gold_is_tidied_once_a_day(spark: SparkSession, tmp_path: Path) -> None:
    """Many small rollups leave few files, and no more than a day of what they replaced."""
    prepare(spark, tmp_path)
    for number in range(1, 3):
        hours(number, number * HOUR).commit(tmp_path)
        quick(spark, tmp_path)
    kept = rows_of(spark, tmp_path)
    replaced = on_disk(tmp_path) - live(tmp_path)
    assert len(replaced) >= 2, "the day's and the week's"
    assert len(live(tmp_path)) > 4
    older(tmp_path / "gold", 2)
    told: list[str] = []
    assert quick(spark, tmp_path, Wanted(tidy="now"), progress=told.append).hours == 0
    assert [line for line in told if line.startswith("tidied ")] == [
        f"tidied {table.name}" for table in (*rollups.QUICK, *rollups.NOTES)
    ]
    assert len(live(tmp_path)) == 4, "a file of each grain and period"
    assert replaced.isdisjoint(on_disk(tmp_path))
    assert rows_of(spark, tmp_path) == kept
    again: list[str] = []
    quick(spark, tmp_path, Wanted(), progress=again.append)
    assert again == [], "it was done today"
    hours(9, HOUR + 600).commit(tmp_path)
    assert quick(spark, tmp_path).hours == 1
    assert compared(spark, tmp_path).differences == ()


def described(spark: SparkSession, lake: Lake, table: tables.Table) -> list[Any]:
    """Its columns; what DESCRIBE says of partitions comes after them."""
    return spark.sql(f"DESCRIBE {lake.name(table)}").collect()[: len(table.columns)]


def live(root: Path) -> set[str]:
    uris = DeltaTable(f"{root}/{tables.COVERAGE.path}").file_uris()
    return {uri.rsplit("/", 1)[1] for uri in uris}


def on_disk(root: Path) -> set[str]:
    return {one.name for one in (root / tables.COVERAGE.path).glob("grain=*/**/[!.]*.parquet")}


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
