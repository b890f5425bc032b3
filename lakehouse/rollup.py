"""The rollup: what is new in bronze, into gold; once, whatever happens in between.

Every table takes one commit, all its grains together, and gold/progress is written last. A run
that is killed between two commits has changed nothing twice: the next one finds the same hours
touched and writes the same rows again.
"""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import (
    brokers,
    changes,
    clients,
    coarsen,
    coverage,
    groups,
    non_consumed,
    partitions,
    sli,
    tables,
    topics,
)
from lakehouse import lake as lakes
from lakehouse.bronze import Bronze
from lakehouse.changes import Versions
from lakehouse.errors import TableSchemaError
from lakehouse.grains import name as grain_name
from lakehouse.rejected import rejected
from lakehouse.subjects import subjects

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.lake import Lake
    from lakehouse.slo import Objective
    from lakehouse.tables import Table

_ALL_GRAINS: Final[tuple[tuple[Table, Callable[[Bronze], DataFrame]], ...]] = (
    (tables.PARTITIONS, partitions.partitions),
    (tables.TOPICS, topics.topics),
    (tables.CLIENTS, clients.clients),
    (tables.GROUPS, groups.groups),
    (tables.BROKERS, brokers.brokers),
    (tables.COVERAGE, coverage.coverage),
    (tables.NON_CONSUMED, non_consumed.non_consumed),
)
_AT_ONCE: Final = 2
_READ: Final = (tables.RUNS, tables.SCRAPES, tables.MEMBERS)


class Outcome(NamedTuple):
    """What a rollup did: hours of clusters recomputed, and the versions of bronze it reached."""

    hours: int
    versions: Versions


def rollup(
    spark: SparkSession,
    lake: Lake,
    objectives: tuple[Objective, ...],
    *,
    window_seconds: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Bring gold up to date with bronze.

    Args:
        spark: A session with Delta, in UTC.
        lake: Where the tables are.
        objectives: What gold/sli is made for.
        window_seconds: Finest grain, the window at which agents cut runs; by default that of the
            last rollup, at first five minutes.
        progress: Told the name of each table that has got its commit.

    Raises:
        TableNotFoundError: A table of bronze is not there.
        TableSchemaError: A table has other columns, or gold has another finest grain.
    """
    lakes.check(spark, lake, *_READ)
    done = _last(spark, lake, progress)
    window = window_seconds or (done[1] if done else tables.DEFAULT_WINDOW_SECONDS)
    if done and done[1] != window:
        raise TableSchemaError(
            f"{lake.name(tables.PROGRESS)}: gold's finest grain is {grain_name(done[1])}, "
            f"not {grain_name(window)}; use that one, or remove gold to build it anew"
        )
    now, newest = changes.current(spark, lake)
    if done and done[0] == now:
        return Outcome(0, now)
    units = changes.touched(spark, lake, done[0] if done else None, now)
    bronze = Bronze(spark, lake, now, newest.committed, units, window)
    if units:
        _write(bronze, objectives, progress)
    _record(bronze)
    return Outcome(len(units.hours) * len(units.clusters), now)


def _write(
    bronze: Bronze, objectives: tuple[Objective, ...], progress: Callable[[str], None]
) -> None:
    lake = bronze.lake
    where = coarsen.where(bronze.units, bronze.window_seconds)
    clusters = ", ".join("'" + name.replace("'", "''") + "'" for name in bronze.units.clusters)
    lakes.replace(lake, tables.SUBJECTS, subjects(bronze), f"cluster IN ({clusters})")
    progress(tables.SUBJECTS.name)

    def write(job: tuple[Table, Callable[[], DataFrame]]) -> None:
        table, rows = job
        lakes.replace(lake, table, rows(), where)
        progress(table.name)

    # Tables do not depend on one another, and planning one leaves a core idle.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(write, _jobs(bronze, objectives)):
            pass


def _jobs(
    bronze: Bronze, objectives: tuple[Objective, ...]
) -> list[tuple[Table, Callable[[], DataFrame]]]:
    """Every table with what makes its rows, the dearest first."""

    def finest(table: Table, rows: Callable[[], DataFrame]) -> Callable[[], DataFrame]:
        return lambda: coarsen.at_finest(bronze, table, rows())

    def every(table: Table, rows: Callable[[Bronze], DataFrame]) -> Callable[[], DataFrame]:
        return lambda: coarsen.all_grains(bronze, table, rows(bronze))

    return [
        (tables.SLI, finest(tables.SLI, lambda: sli.indicators(bronze, objectives))),
        *((table, every(table, function)) for table, function in _ALL_GRAINS),
        (tables.REJECTED, finest(tables.REJECTED, lambda: rejected(bronze))),
    ]


def _last(
    spark: SparkSession, lake: Lake, progress: Callable[[str], None]
) -> tuple[Versions, int] | None:
    """Versions and finest grain of the last rollup; gold is created where it is not there."""
    for table in tables.GOLD:
        if lakes.exists(spark, lake, table):
            lakes.check(spark, lake, table)
        else:
            lakes.create(spark, lake, table)
            progress(f"new table {table.name}")
    rows = lakes.read(spark, lake, tables.PROGRESS).orderBy("at").tail(1)
    if not rows:
        return None
    row = rows[0]
    versions = Versions(row["runs_version"], row["scrapes_version"], row["members_version"])
    return versions, row["window_seconds"]


def _record(bronze: Bronze) -> None:
    hours = len(bronze.units.hours) * len(bronze.units.clusters)
    values = (dt.datetime.now(dt.UTC), bronze.window_seconds, *bronze.versions, hours)
    row = bronze.spark.range(1).select(
        *(
            F.lit(value).cast(column.type).alias(column.name)
            for column, value in zip(tables.PROGRESS.columns, values, strict=True)
        )
    )
    lakes.append(bronze.lake, tables.PROGRESS, row)
