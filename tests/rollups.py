"""Rollups in tests: whole ones, and quick ones that fill a few tables by the same code."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from lakehouse import gold, rollup, slo, tables, upkeep
from lakehouse import lake as lakes
from lakehouse.lake import Lake
from lakehouse.rollup import Wanted
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.bronze import Bronze

ISR: Final = "kafka.partition.under_min_isr"
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
QUICK: Final = (tables.COVERAGE, tables.BROKERS, tables.REJECTED)
"""Of scrapes, of runs, and of what could not be used: a whole rollup takes ten times as long."""
NOTES: Final = (tables.PROGRESS, *tables.ROLLUP_STATE)
"""What a rollup keeps for itself."""


def filling(of: tuple[tables.Table, ...]) -> gold.Jobs:
    """What fills some of the tables."""

    def jobs(bronze: Bronze, objectives: Any) -> list[gold.Job]:
        return [job for job in gold.jobs(bronze, objectives) if job.table in of]

    return jobs


_EMPTY: Final = tempfile.TemporaryDirectory(prefix="jmxlake-gold-")
"""Gold as a first rollup makes it: to make its tables takes longer than to fill a few of them."""


def prepare(spark: SparkSession, root: Path) -> None:
    """Give a lake the tables that a quick rollup knows."""
    made = Path(_EMPTY.name) / "gold"
    if not made.exists():
        for table in (*QUICK, *NOTES):
            upkeep.prepare(spark, Lake(_EMPTY.name), table)
    shutil.copytree(made, root / "gold")


def quick(
    spark: SparkSession,
    root: Path,
    wanted: Wanted | None = None,
    of: tuple[tables.Table, ...] = QUICK,
    **rest: Any,
) -> Any:
    """A rollup that knows some tables only; ``prepare`` makes the first one quick as well."""
    asked = dataclasses.replace(wanted or Wanted(tidy="never"), jobs=filling(of))
    with patch.object(upkeep, "EVERY", (*of, *NOTES)):  # each of them is looked at each time
        return rollup.rollup(spark, lakes.at(str(root)), slo.load(), asked, **rest)


def rows_of(
    spark: SparkSession, root: Path, of: tuple[tables.Table, ...] = QUICK
) -> dict[str, list[str]]:
    """All rows of tables, as text."""
    lake = lakes.at(str(root))
    return {
        table.name: sorted(repr(tuple(row)) for row in lakes.read(spark, lake, table).collect())
        for table in of
    }


def hours(number: int, *starts: float, cluster: str = "cluster-a", agent: str = "agent-1") -> Batch:
    """A batch with a window of runs and scrapes at each of some seconds after the base."""
    batch = Batch(agent=agent, number=number)
    for start in starts:
        batch.zeros(ISR, start, start + 300, "t", [1, 2], cluster=cluster)
        batch.run(ISR, start, start + 30, 1.0, topic="t", partition=0, cluster=cluster)
        batch.scrape("min_isr", start, start + 300, cluster=cluster)
    return batch
