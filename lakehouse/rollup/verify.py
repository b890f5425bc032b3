"""Gold against bronze: a sample of hours recomputed, every row of theirs compared to the bit.

What is recomputed is read at the versions that gold/progress names, so the figures must be the
very same: durations, and doubles too.
"""

import datetime as dt
import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.objective import Objective
from lakehouse.engines.costs import PartDone
from lakehouse.engines.engine import Engine, Staged, ask
from lakehouse.engines.rollup_batches import Batch, ClusterHour, batches
from lakehouse.errors import LakehouseError, LeaseHeldError
from lakehouse.kernel.program import program as programs
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.rollup import changes, lease, plan, progress as progresses
from lakehouse.rollup.commit import rows_of
from lakehouse.rollup.gold_upkeep import KEEP_WINDOWS_DAYS, horizon
from lakehouse.rollup.lake_catalogues import meanings

MISSING: Final = "is missing"
UNEXPECTED: Final = "should not be there"

_MOST_NAMED: Final = 1000


class Difference(NamedTuple):
    """A row that is not in gold and should be, or is and should not; a changed row is both."""

    table: str
    kind: str
    row: dict[str, Any]


class Found(NamedTuple):
    """The result of a comparison.

    Attributes:
        hours: Hours of clusters.
        rows: Rows of gold.
        differences: Rows that differ.
        note: Why rows may differ without harm: the last rollup was of another kernel or DuckDB;
            empty where it was of these.
    """

    hours: int
    rows: int
    differences: tuple[Difference, ...]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**self._asdict(), "differences": [one._asdict() for one in self.differences]}


def verify(
    engine: Engine,
    objectives: tuple[Objective, ...],
    hours: int,
    seed: int,
    step: Callable[[str], None] = lambda _: None,
) -> Found:
    """Recompute hours of clusters, chosen at random.

    gold/subjects is not compared: it is about all time, not about an hour. Neither are hours whose
    finest rows gold does not keep any more.

    Args:
        engine: The engine of the lake.
        objectives: Those of the rollup.
        hours: How many to choose; a few more are recomputed where that costs less.
        seed: The same one chooses the same hours.
        step: Called with each table that was compared.

    Raises:
        LakehouseError: Nothing is rolled up yet.
        LeaseHeldError: A rollup is at work, or was cut short: gold is between two versions.
    """
    row = _still(engine)
    first = horizon(row.committed_at, KEEP_WINDOWS_DAYS)
    chosen = _chosen(engine, row, hours, first, random.Random(seed))  # noqa: S311 - a sample
    old = {one.hour for one in chosen}
    barred = plan.frozen_hours(engine, row.versions, old, first, row.window_seconds)
    barred |= plan.lost_hours(engine, old)
    todo = chosen - barred
    counts = changes.counts(engine, row.versions, todo)
    most, cores = engine.most_rows, engine.cores
    parts = batches(counts, todo, barred, row.versions, most, cores)
    program = programs(row.window_seconds, row.committed_at, objectives, meanings(engine))
    compared = 0
    differing: list[Difference] = []

    def report(done: PartDone) -> None:
        step(f"{done.part} of {done.parts} parts computed")

    for batch in parts:
        staged = engine.compute(batch, program, "verify", report).staged
        for table in tables.OF_HOURS:
            rows, odd = _compared(engine, table, batch, staged)
            compared += rows
            differing += odd
            step(f"{table.name} compared")
    if _still(engine) != row:
        raise LeaseHeldError(f"{engine.lake.root}: a rollup ran meanwhile; verify it again")
    number = sum(len(one.units.cluster_hours) for one in parts)
    return Found(number, compared, tuple(differing), _note(row, program))


def _note(row: progresses.Progress, program: Program) -> str:
    ours, theirs = (f"kernel {one.kernel} on DuckDB {one.duckdb}" for one in (program, row))
    if ours == theirs:
        return ""
    made_by = "an older jmxlake" if row.kernel is None else theirs
    return (
        f"{made_by} made gold last, and this is {ours}: last digits and new columns may differ; "
        "jmxlake rollup --since recomputes what bronze still holds"
    )


def _still(engine: Engine) -> progresses.Progress:
    """The row of progress, while no rollup is at work."""
    row = progresses.last(engine).row
    if row is None:
        raise LakehouseError(
            f"{engine.lake.root}: nothing is rolled up yet; run jmxlake rollup first"
        )
    holder = lease.holder(engine)
    if holder is not None:
        raise LeaseHeldError(
            f"{engine.lake.name(tables.LEASE)}: {holder}, or was cut short; verify when it is done"
        )
    return row


def _chosen(
    engine: Engine, row: progresses.Progress, hours: int, first: dt.date, chance: random.Random
) -> frozenset[ClusterHour]:
    """Hours that bronze or gold knows, of dates chosen at random."""
    bronze = {
        "runs": engine.rows(tables.RUNS, row.versions.runs),
        "scrapes": engine.rows(tables.SCRAPES, row.versions.scrapes),
    }
    gold = {name: engine.rows(tables.WINDOWS[name]) for name in ("coverage", "sources")}
    days = " UNION ".join(
        f"SELECT DISTINCT r.date FROM {{{name}}} r WHERE r.date >= DATE '{first}'"
        for name in bronze
    )
    known = sorted(date for (date,) in ask(engine, days, **bronze))
    dates = chance.sample(known, min(hours, len(known)))
    if not dates:
        return frozenset()
    listed = ", ".join(f"DATE '{date}'" for date in dates)
    there = " UNION ".join(
        f"SELECT DISTINCT r.cluster, r.epoch_hour FROM {{{name}}} r WHERE r.date IN ({listed})"
        + " AND NOT r.misdated" * (name in bronze)
        for name in (*bronze, *gold)
    )
    pairs = sorted(changes.cluster_hour(*one) for one in ask(engine, there, **bronze, **gold))
    return frozenset(chance.sample(pairs, min(hours, len(pairs))))


def _compared(
    engine: Engine, table: tables.Table, batch: Batch, staged: Staged
) -> tuple[int, list[Difference]]:
    """How many rows of a table lie in gold, and those that are in gold or staged alone."""
    there = rows_of(engine, table, batch.units)
    ((rows,),) = ask(engine, "SELECT count(*) AS n FROM {there} r", there=there)
    parts = {"there": (there, -1)}
    if table.name in staged:
        parts["wanted"] = (staged[table.name], 1)
    # As text, numbers are equal only where they are so to the bit.
    texts = ", ".join(f"CAST(r.{name} AS STRING) AS c{at}" for name, at in table.positions.items())
    keys = ", ".join(f"t.c{at}" for at in table.positions.values())
    union = " UNION ALL ".join(
        f"SELECT {texts}, {sign} AS n FROM {{{name}}} r" for name, (_, sign) in parts.items()
    )
    odd = ask(
        engine,
        f"SELECT {keys}, sum(t.n) AS n FROM ({union}) t GROUP BY {keys} HAVING sum(t.n) <> 0 "
        f"LIMIT {_MOST_NAMED}",
        **{name: relation for name, (relation, _) in parts.items()},
    )
    differing = []
    for *values, count in odd:
        row = zip(table.column_names, values, strict=True)
        known = {name: value for name, value in row if value is not None}
        differing.append(Difference(table.name, MISSING if count > 0 else UNEXPECTED, known))
    return rows, differing
