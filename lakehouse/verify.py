"""Gold against bronze: a sample of hours recomputed, every row of theirs compared to the bit.

What is recomputed is read at the versions that gold/progress names, so the figures must be the
very same: durations, and doubles too.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import changes, gold, held, lease, tables
from lakehouse import lake as lakes
from lakehouse import progress as progresses
from lakehouse.bronze import Bronze
from lakehouse.errors import LakehouseError, LeaseHeldError
from lakehouse.stretches import stretches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.lake import Lake
    from lakehouse.progress import Progress
    from lakehouse.slo import Objective
    from lakehouse.tables import Table
    from lakehouse.units import Pair

MISSING: Final = "is missing"
UNEXPECTED: Final = "should not be there"

_MOST_TOLD: Final = 1000
_READ: Final = ((tables.RUNS, 0), (tables.SCRAPES, 1))
_SEEN: Final = (tables.COVERAGE, tables.BROKERS)


class Difference(NamedTuple):
    """A row that is not in gold and should be, or is and should not; a changed row is both."""

    table: str
    kind: str
    row: dict[str, Any]


class Found(NamedTuple):
    """What was compared: hours of clusters, rows of gold, and those that differ."""

    hours: int
    rows: int
    differences: tuple[Difference, ...]

    def as_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**self._asdict(), "differences": [one._asdict() for one in self.differences]}


def verify(
    spark: SparkSession,
    lake: Lake,
    objectives: tuple[Objective, ...],
    hours: int,
    seed: int,
    step: Callable[[str], None] = lambda _: None,
    *,
    jobs: gold.Jobs = gold.jobs,
) -> Found:
    """Recompute hours of clusters, chosen at random, with the days and weeks they are in.

    gold/subjects is not compared: it is about all time, not about an hour.

    Args:
        spark: A session with Delta, in UTC.
        lake: The lake.
        objectives: Those of the rollup.
        hours: How many to choose; a few more are recomputed where that costs less.
        seed: The same one chooses the same hours.
        step: Told of each table that was compared.
        jobs: What fills the tables.

    Raises:
        LakehouseError: Nothing is rolled up yet.
        LeaseHeldError: A rollup is at work, or was cut short: gold is between two versions.
    """
    row = _still(spark, lake)
    chosen = _chosen(spark, lake, row, hours, random.Random(seed))  # noqa: S311 - a sample
    old = {pair.hour for pair in chosen}
    lost = held.lost(spark, lake, row.versions, row.window_seconds, old)
    parts = stretches(dict.fromkeys(sorted(chosen - lost), 0), lost)
    compared, number = 0, 0
    differing: list[Difference] = []
    for stretch in parts:
        bronze = Bronze(
            spark, lake, row.versions, row.committed or row.at, stretch.units, row.window_seconds
        )
        number += len(stretch.units.pairs)
        for job in jobs(bronze, objectives):
            if job.table is tables.SUBJECTS:
                continue
            there = lakes.read(spark, lake, job.table).where(job.where)
            compared += there.count()
            differing += _differences(job.table, job.rows(), there)
            step(f"{job.table.name} compared")
    if _still(spark, lake) != row:
        raise LeaseHeldError(f"{lake.root}: a rollup ran meanwhile; verify it again")
    return Found(number, compared, tuple(differing))


def _still(spark: SparkSession, lake: Lake) -> Progress:
    """The row of progress, while nobody writes to gold."""
    row = progresses.last(spark, lake).row
    if row is None:
        raise LakehouseError(f"{lake.root}: nothing is rolled up yet; run jmxlake rollup first")
    holder = lease.holder(spark, lake)
    if holder is not None:
        raise LeaseHeldError(
            f"{lake.name(tables.LEASE)}: {holder}, or was cut short; verify when it is done"
        )
    return row


def _chosen(
    spark: SparkSession, lake: Lake, row: Progress, hours: int, chance: random.Random
) -> frozenset[Pair]:
    """Hours that bronze or gold knows, of dates chosen at random."""
    known = {
        one["date"]
        for table, index in _READ
        for one in lakes.read(spark, lake, table, row.versions[index])
        .select("date")
        .distinct()
        .collect()
    }
    dates = chance.sample(sorted(known), min(hours, len(known)))
    pairs: set[Pair] = set()
    for table, index in _READ:
        rows = lakes.read(spark, lake, table, row.versions[index])
        pairs |= changes.counted(rows.where(F.col("date").isin(*dates))).keys()
    for table in _SEEN:
        rows = lakes.read(spark, lake, table).where(
            (F.col("grain") == "1h") & F.col("period").isin(*(f"{date}" for date in dates))
        )
        pairs |= changes.counted(rows.withColumn("start", F.col("window"))).keys()
    return frozenset(chance.sample(sorted(pairs), min(hours, len(pairs))))


def _differences(table: Table, wanted: DataFrame, there: DataFrame) -> Iterator[Difference]:
    def plain(rows: DataFrame, count: int) -> DataFrame:
        # As text, numbers are equal only where they are so to the bit.
        columns = [
            F.col(f"`{column.name}`").cast("string").alias(column.name) for column in table.columns
        ]
        return rows.select(*columns, F.lit(count).alias("count_"))

    names = [f"`{name}`" for name in table.column_names]
    both = plain(wanted, 1).unionByName(plain(there, -1))
    odd = both.groupBy(*names).agg(F.sum("count_").alias("count_")).where("count_ != 0")
    for row in odd.limit(_MOST_TOLD).collect():
        told = {name: value for name, value in row.asDict().items() if value is not None}
        kind = MISSING if told.pop("count_") > 0 else UNEXPECTED
        yield Difference(table.name, kind, told)
