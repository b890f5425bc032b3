"""Comparison of gold with bronze: a sample of hours is recomputed, and each row must be identical.

Bronze is read at the versions in gold/progress, so all figures must be equal, including doubles.
"""

import datetime as dt
import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.objective import Objective
from lakehouse.engines.engine import Engine, PartDone, Staged, ask
from lakehouse.engines.gold_reader import meanings
from lakehouse.engines.rollup_batches import Batch, ClusterHour, batches
from lakehouse.errors import LakehouseError, LeaseHeldError
from lakehouse.kernel.build_program import build_program
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.rollup import lease, plan, progress
from lakehouse.rollup.commit import rows_of
from lakehouse.rollup.gold_tables import KEEP_WINDOWS_DAYS, horizon

MISSING: Final = "is missing"
UNEXPECTED: Final = "is unexpected"

_MOST_NAMED: Final = 1000


class Difference(NamedTuple):
    """A missing or unexpected row of gold. A changed row yields both."""

    table: str
    kind: str
    row: dict[str, Any]


class Found(NamedTuple):
    """Result of a comparison.

    Attributes:
        hours: Number of hours of clusters.
        rows: Number of rows of gold.
        differences: Rows that differ.
        note: Harmless reason for differences: another kernel or DuckDB made the last rollup. Empty
            if they are the same.
    """

    hours: int
    rows: int
    differences: tuple[Difference, ...]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {**self._asdict(), "differences": [one._asdict() for one in self.differences]}


def verify(
    engine: Engine,
    objectives: tuple[Objective, ...],
    hours: int,
    seed: int,
    step: Callable[[str], None] = lambda _: None,
) -> Found:
    """Recompute random hours of clusters and compare them with gold.

    gold/subjects is not compared, because its rows cover all time. Hours whose 5-minute rows gold
    has deleted are not compared.

    Args:
        engine: Engine of the lake.
        objectives: Objectives of the rollup.
        hours: Number of hours to choose. A few more are recomputed if that costs less.
        seed: Seed of the choice.
        step: Receives each compared table.

    Raises:
        LakehouseError: Gold has no rollup.
        LeaseHeldError: A rollup is running or was interrupted, so gold is between two versions.
    """
    row = _still(engine)
    first = horizon(row.committed_at, KEEP_WINDOWS_DAYS)
    chosen = _chosen(engine, row, hours, first, random.Random(seed))  # noqa: S311 - a sample
    old = {one.hour for one in chosen}
    barred = plan.frozen_hours(engine, row.versions, old, first, row.window_seconds)
    barred |= plan.lost_hours(engine, old)
    todo = chosen - barred
    counts = plan.runs_of(engine, row.versions, todo)
    most, cores = engine.most_rows, engine.cores
    parts = batches(counts, todo, barred, row.versions, most, cores)
    program = build_program(row.window_seconds, row.committed_at, objectives, meanings(engine))
    compared = 0
    differing: list[Difference] = []

    def report(done: PartDone) -> None:
        step(f"{done.part} of {done.parts} parts computed")

    for batch in parts:
        with engine.compute(batch, program, "verify", report) as made:
            for table in tables.OF_HOURS:
                rows, odd = _compared(engine, table, batch, made.staged)
                compared += rows
                differing += odd
                step(f"{table.name} compared")
    if _still(engine) != row:
        raise LeaseHeldError(f"{engine.lake.root}: a rollup ran at the same time. Run verify again")
    number = sum(len(one.units.cluster_hours) for one in parts)
    return Found(number, compared, tuple(differing), _note(row, program))


def _note(row: progress.Progress, program: Program) -> str:
    ours, theirs = (f"kernel {one.kernel} on DuckDB {one.duckdb}" for one in (program, row))
    if ours == theirs:
        return ""
    made_by = "an older jmxlake" if row.kernel is None else theirs
    return (
        f"{made_by} made the last rollup, and this is {ours}: last digits and new columns can "
        "differ; jmxlake rollup --since recomputes the hours in bronze"
    )


def _still(engine: Engine) -> progress.Progress:
    """Return the row of progress. Raise an error during a rollup."""
    row = progress.last(engine).row
    if row is None:
        raise LakehouseError(f"{engine.lake.root}: gold has no data. Run jmxlake rollup first")
    holder = lease.holder(engine)
    if holder is not None:
        raise LeaseHeldError(
            f"{engine.lake.name(tables.LEASE)}: {holder}, or was interrupted. Run verify later"
        )
    return row


def _chosen(
    engine: Engine, row: progress.Progress, hours: int, first: dt.date, chance: random.Random
) -> frozenset[ClusterHour]:
    """Return random hours in bronze or gold, of random dates."""
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
    pairs = sorted(plan.ask_hours(engine, there, **bronze, **gold))
    return frozenset(chance.sample(pairs, min(hours, len(pairs))))


def _compared(
    engine: Engine, table: tables.Table, batch: Batch, staged: Staged
) -> tuple[int, list[Difference]]:
    """Return the number of rows in gold, and the rows that are only in gold or only staged."""
    there = rows_of(engine, table, batch.units)
    ((rows,),) = ask(engine, "SELECT count(*) AS n FROM {there} r", there=there)
    parts = {"there": (there, -1)}
    if table.name in staged:
        parts["wanted"] = (staged[table.name], 1)
    # As text, only identical numbers are equal.
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
