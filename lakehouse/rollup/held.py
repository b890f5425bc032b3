"""Hours that must stay as they are in gold, though something new came for them.

Bronze only grows, but for retention. So where gold has seen what bronze does not hold any more,
rows were removed, and recomputing the hour would replace figures by emptiness. And where an hour's
finest rows have been removed from gold, they do not come back.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.rollup.changes import pair
from lakehouse.rollup.engine import ask, in_hours, span_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.rollup.engine import Engine
    from lakehouse.units import Pair, Versions

LEAST_KEPT: Final = dt.timedelta(days=1)
"""Maintenance removes nothing of bronze that is younger."""

_RULES: Final = (
    # What gold has seen of a table of bronze, and by which of its columns.
    (tables.COVERAGE, tables.SCRAPES, ("cluster", "source", "family")),
    (tables.BROKERS, tables.RUNS, ("cluster", "source", "metric")),
)


def held(
    engine: Engine,
    versions: Versions,
    hours: Iterable[dt.datetime],
    horizon: dt.date,
    window_seconds: int,
) -> frozenset[Pair]:
    """Hours of clusters that gold knows, and that are not recomputed any more.

    Args:
        engine: The engine; gold's tables are there.
        versions: Versions of bronze.
        hours: The hours to look at, of all clusters.
        horizon: The date from which on gold keeps the finest rows.
        window_seconds: Length of gold's finest windows.
    """
    wanted = sorted(hours)
    if not wanted:
        return frozenset()
    known = _known(engine, wanted)
    found = {one for _, one in known if one.hour.date() < horizon}
    inside, span = in_hours(wanted), span_of(wanted)
    for of_gold, of_bronze, names in _RULES:
        if all(name != of_gold.name for name, _ in known):
            continue
        # By window: what came late is of the same hour, and of the same source and metric.
        keys = ", ".join(f"r.{name}" for name in names)
        start = f"r.start - r.start % {window_seconds * 1_000_000}"
        at = versions.scrapes if of_bronze is tables.SCRAPES else versions.runs
        there = engine.query(
            f"SELECT DISTINCT {keys}, {start} AS window FROM {{bronze}} r WHERE {inside}",
            bronze=engine.rows(of_bronze, at, between=span),
        )
        same = " AND ".join(f"b.{name} = r.{name}" for name in (*names, "window"))
        gone = ask(
            engine,
            f"SELECT DISTINCT r.cluster, r.hour FROM {{gold}} r WHERE {inside} "
            f"AND NOT EXISTS (SELECT 1 FROM {{there}} b WHERE {same})",
            gold=engine.rows(tables.WINDOWS[of_gold.name], between=span),
            there=there,
        )
        found |= {pair(*row) for row in gone}
    return frozenset(found)


def _known(engine: Engine, hours: list[dt.datetime]) -> set[tuple[str, Pair]]:
    """Hours that gold has rows of, and the table."""
    gold = {table.name: engine.rows(table, between=span_of(hours)) for table, *_ in _RULES}
    seen = " UNION ALL ".join(
        f"SELECT DISTINCT '{name}' AS name, r.cluster, r.hour FROM {{{name}}} r "
        f"WHERE {in_hours(hours)}"
        for name in gold
    )
    return {(name, pair(cluster, hour)) for name, cluster, hour in ask(engine, seen, **gold)}
