"""Rollups in tests, by Spark or without it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.core.lake import Lake
from lakehouse.engines.engine import Engine
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.rollup import gold_tables
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import Outcome, rollup
from lakehouse.slo.openslo import objective_files
from tests.lake_builder import Batch

Engines = Callable[[Path], Engine]
"""Gives the engine of a lake."""

ISR: Final = "kafka.partition.under_min_isr"
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
QUICK: Final = (tables.COVERAGE, tables.SOURCES, tables.REJECTED)
"""Of scrapes, of runs, and of what could not be used."""

_EMPTY: Final = tempfile.TemporaryDirectory(prefix="jmxlake-gold-")
"""Gold as a first rollup makes it: to make its tables takes longer than to fill them."""


def prepare(root: Path) -> None:
    """Give a lake the tables of gold."""
    made = Path(_EMPTY.name) / "gold"
    if not made.exists():
        for table in gold_tables.EVERY:
            LocalEngine(Lake(_EMPTY.name)).create(table)
    shutil.copytree(made, root / "gold")


def rolled(engine: Engine, wanted: Wanted | None = None, **rest: Any) -> Outcome:
    """A rollup that does not tidy, if nothing else is wanted."""
    return rollup(engine, objective_files.load(), wanted or Wanted(tidy="never"), **rest)


def local(root: Path, wanted: Wanted | None = None, **rest: Any) -> Outcome:
    """A rollup without Spark, which takes no time: for tests of what reads gold."""
    return rolled(LocalEngine(lakes.at(str(root))), wanted, **rest)


def rows_of(root: Path, of: tuple[tables.Table, ...] = QUICK) -> dict[str, list[str]]:
    """All rows of tables, as text."""
    engine = LocalEngine(lakes.at(str(root)))
    return {
        table.name: sorted(
            repr(tuple(row[name] for name in table.column_names))
            for row in engine.collect(engine.rows(table)).to_pylist()
        )
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
