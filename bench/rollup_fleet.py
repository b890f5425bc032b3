"""Writes bronze of a generated fleet: ``python -m bench.rollup_fleet FOLDER --hours 24``.

The rows are those that the agents' encoder makes of the same samples, but are made by SQL. What is
there already is continued: give another ``--start``. Files are compressed as agents do it, and not
once more as the maintenance does, which would take longer than all else.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import duckdb
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import rollup_rows, rollup_world
from bench.rollup_world import HOUR_US, Fleet
from collector.delivery import arrow
from lakehouse import tables
from lakehouse.tables.bronze import writer_properties

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

START: Final = dt.datetime(2026, 11, 9, tzinfo=dt.UTC)
"""Monday of 2026-W46: a day or a week from here on lies in one week."""

_NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_ROWS_AT_ONCE: Final = 2_500_000
_READINGS: Final = 360  # an hour's of one series


class Written(NamedTuple):
    """How much was written; samples are those that the runs of the three metrics stand for."""

    runs: int
    samples: int


def connect(threads: int = 2, memory: str = "4GB") -> DuckDBPyConnection:
    """An engine of its own."""
    db = duckdb.connect()
    db.execute(f"SET threads = {threads}")
    db.execute(f"SET memory_limit = '{memory}'")
    return db


def write(
    lake: Path,
    fleet: Fleet,
    start: dt.datetime,
    hours: int,
    *,
    hours_a_commit: int | None = None,
    show: bool = True,
) -> Written:
    """Append hours of a fleet to a lake, one commit for some hours; make it where it is missing.

    Args:
        lake: Folder of the lake.
        fleet: What it is of.
        start: A whole hour.
        hours: How many.
        hours_a_commit: By default as many as make some million rows.
        show: Whether a bar on the standard error shows the progress.
    """
    deltas = {table.name: _table(lake, table) for table in tables.BRONZE}
    db = connect()
    rollup_world.prepare(db, fleet)
    _know_sets(db, deltas[tables.MEMBERS.name])
    first_us = rollup_world.micros(start)
    at_once = hours_a_commit or max(1, _ROWS_AT_ONCE // _rows_an_hour(fleet))
    total = Written(0, 0)
    with _bar(show) as bar:
        task = bar.add_task("bronze", total=hours, rows=0)
        for hour in range(0, hours, at_once):
            several = min(at_once, hours - hour)
            rollup_world.unfold(
                db, first_us + hour * HOUR_US, first_us + (hour + several) * HOUR_US
            )
            rollup_rows.make(db)
            _append(db, deltas)
            found = _count(db)
            total = Written(total.runs + found.runs, total.samples + found.samples)
            bar.update(task, advance=several, rows=total.runs)
    db.close()
    return total


def _rows_an_hour(fleet: Fleet) -> int:
    changing = fleet.clusters * fleet.topics * fleet.partitions * fleet.share * _READINGS
    folded = fleet.clusters * fleet.topics * min(fleet.brokers, fleet.partitions) * 3 * 12
    rates = fleet.clients // 2 * 2 * 120
    return int(changing + folded + rates) + 1


def _append(db: DuckDBPyConnection, deltas: dict[str, DeltaTable]) -> None:
    """Sets first, as agents do it; then what refers to them."""
    for table, rows in (
        (tables.MEMBERS, rollup_rows.members(db)),
        (tables.RUNS, rollup_rows.runs(db)),
        (tables.SCRAPES, rollup_rows.scrapes(db)),
    ):
        _commit(deltas[table.name], table, rows)
    db.execute(
        "INSERT INTO known_sets SELECT agent, set FROM sets ANTI JOIN known_sets USING (agent, set)"
    )


def _commit(delta: DeltaTable, table: tables.Table, rows: DuckDBPyRelation) -> None:
    write_deltalake(
        delta,
        rows,
        mode="append",
        writer_properties=writer_properties(table),
        post_commithook_properties=_NO_HOOKS,
    )


def _count(db: DuckDBPyConnection) -> Written:
    found = db.execute(
        "SELECT count(*), coalesce(sum(scrapes * series)"
        " FILTER (metric IN (SELECT metric FROM metrics)), 0)::BIGINT FROM runs"
    ).fetchone()
    assert found is not None
    return Written(*found)


def _know_sets(db: DuckDBPyConnection, members: DeltaTable) -> None:
    files = [uri.removeprefix("file://") for uri in members.file_uris()]
    if files:
        db.execute('INSERT INTO known_sets SELECT agent, "set" FROM read_parquet(?)', [files])


def _table(lake: Path, table: tables.Table) -> DeltaTable:
    return DeltaTable.create(
        str(lake / table.path),
        schema=arrow.schema(table),
        mode="ignore",
        partition_by=list(table.partition_by),
        configuration=table.properties,
        raise_if_key_not_exists=False,
    )


def _bar(show: bool) -> Progress:  # noqa: FBT001
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("hours, {task.fields[rows]:,} runs"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not show,
    )


def options(parser: argparse.ArgumentParser) -> None:
    """Sizes of a fleet, as options of a command."""
    for name, what in (
        ("clusters", "clusters"),
        ("brokers", "brokers of each cluster"),
        ("topics", "topics of each cluster"),
        ("partitions", "partitions of each topic"),
        ("share", "share of the partitions whose lag changes at every scrape"),
        ("clients", "clients of the first cluster"),
        ("seed", "another one is another fleet"),
    ):
        default = getattr(Fleet, name)
        parser.add_argument(
            f"--{name}", type=type(default), default=default, help=f"{what} ({default})"
        )


def fleet_of(chosen: argparse.Namespace) -> Fleet:
    """The fleet that was asked for."""
    names = {field.name for field in dataclasses.fields(Fleet)}
    return Fleet(**{name: value for name, value in vars(chosen).items() if name in names})


def main() -> int:
    """Write a lake."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the lake; it is made, or continued")
    parser.add_argument("--hours", type=int, default=24, help="how many (24)")
    parser.add_argument(
        "--start",
        type=dt.datetime.fromisoformat,
        default=START,
        help=f"hour, UTC ({START:%Y-%m-%dT%H})",
    )
    options(parser)
    chosen = parser.parse_args()
    start = chosen.start.replace(tzinfo=dt.UTC)
    began = time.monotonic()
    told = write(chosen.folder, fleet_of(chosen), start, chosen.hours)
    seconds = round(time.monotonic() - began, 1)
    print(json.dumps({**told._asdict(), "seconds": seconds}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
