"""gold/progress and gold/stretches: rolled up versions, and batches of the running rollup.

Progress is written last. A batch is recorded when all its commits are made; such a record belongs
to the row of progress before it, so a new row of progress makes it void.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.periods import HOUR_US, Period, instant, micros
from lakehouse.engines.costs import NO_COSTS, Costs
from lakehouse.engines.engine import Engine, ask
from lakehouse.engines.gold_reader import is_same
from lakehouse.engines.relation import select
from lakehouse.engines.rollup_batches import ClusterHour, HourSet, Versions
from lakehouse.errors import TableNotFoundError
from lakehouse.kernel import arrow_types

WHOLE: Final = "whole"
FEED: Final = "feed"
RECOVERED: Final = "recovered"
SINCE: Final = "since"
REPAIRED: Final = "repaired"
TIDIED: Final = "tidied"


@dataclass(frozen=True, slots=True)
class Progress:
    """A row of gold/progress.

    Attributes:
        finished_at: When the rollup ended.
        window_seconds: Length of gold's finest windows.
        versions: Versions of bronze that are rolled up.
        hours: Hours of clusters that were recomputed.
        committed_at: When the newest of the versions was committed.
        how: One of the words above.
        late_rows: Rows that arrived after their hour was frozen.
        runs_id: Id of the Delta table bronze/runs.
        kernel: Version of the kernel's SQL that made the hours; None in b88afb5's layout.
        duckdb: Version of the DuckDB that ran it; None in b88afb5's layout.
        tables: Gold's tables after it (``completeness.notes_of``); None in older rows.
        rejected_dates: Dates of rows that it rejected (``rejected.dates``); None in older rows.
        costs: What its parts cost.
    """

    finished_at: dt.datetime
    window_seconds: int
    versions: Versions
    hours: int
    committed_at: dt.datetime
    how: str
    late_rows: int
    runs_id: str
    kernel: str | None = None
    duckdb: str | None = None
    tables: Sequence[str] | None = None
    rejected_dates: Sequence[str] | None = None
    costs: Costs = NO_COSTS


class Last(NamedTuple):
    """The state of gold.

    Attributes:
        row: The current row of progress; None where there is none.
        tidied: The day (UTC) of the last tidying, else of the first rollup.
    """

    row: Progress | None = None
    tidied: dt.date | None = None


def last(engine: Engine) -> Last:
    """The state of gold; empty without gold/progress."""
    try:
        progress = engine.rows(tables.PROGRESS)
    except TableNotFoundError:
        return Last()
    ends = select(
        "SELECT * FROM {rows} p WHERE p.finished_at IN (SELECT max(r.finished_at) FROM {rows} r "
        "UNION ALL SELECT min(r.finished_at) FROM {rows} r "
        f"UNION ALL SELECT max(r.finished_at) FROM {{rows}} r WHERE {is_same('r.how', TIDIED)})",
        rows=progress,
    )
    rows = sorted(engine.collect(ends).to_pylist(), key=lambda row: row["finished_at"])
    if not rows:
        return Last()
    tidied = [row for row in rows if row["how"] == TIDIED]
    row = rows[-1]
    others = {one.name: row.get(one.name) for one in fields(Progress)}
    others |= {name: instant(row[name]) for name in ("finished_at", "committed_at")}
    costs = Costs(*(row.get(name) for name in Costs._fields))
    current = Progress(**others | {"versions": _versions(row), "costs": costs})
    return Last(current, instant([rows[0], *tidied][-1]["finished_at"]).date())


def until(engine: Engine, now: dt.datetime) -> dt.datetime | None:
    """The end of the newest reading in gold, no later than now; None: of two days it has none."""
    lately = Period(now - dt.timedelta(days=2), now + dt.timedelta(days=1))
    readings = engine.rows(tables.READINGS, between=lately)
    ((us,),) = ask(engine, "SELECT max(r.ended_at) FROM {rows} r", rows=readings)
    return None if us is None else min(instant(int(us)), now)


def _versions(row: Mapping[str, Any]) -> Versions:
    return Versions(row["runs_version"], row["scrapes_version"], row["members_version"])


def record(engine: Engine, done: Progress, before: Progress | None) -> Progress:
    """Append a row, later than the row before even where clocks differ."""
    if before is not None:
        later = before.finished_at + dt.timedelta(microseconds=1)
        done = replace(done, finished_at=max(done.finished_at, later))
    at, window, versions, hours, committed, *others, costs = astuple(done)
    values = (micros(at), window, *versions, hours, micros(committed), *others, *costs)
    _append(engine, tables.PROGRESS, values)
    return done


def record_batch(
    engine: Engine, after: Progress | None, how: str, versions: Versions, units: HourSet
) -> None:
    """Record that a batch is done."""
    hours = [micros(hour) // HOUR_US for hour in units.hours]
    values = (
        micros(dt.datetime.now(dt.UTC)), None if after is None else micros(after.finished_at), how,
        *versions, list(units.clusters), hours,
    )  # fmt: skip
    _append(engine, tables.STRETCHES, values)


def done_batches(
    engine: Engine, after: Progress | None, how: str
) -> Iterator[tuple[Versions, frozenset[ClusterHour]]]:
    """Batches that an interrupted rollup of that kind finished after a row of progress."""
    since = "r.after IS NULL" if after is None else f"r.after = {micros(after.finished_at)}"
    same = f"SELECT * FROM {{rows}} r WHERE {since} AND {is_same('r.how', how)}"
    rows = select(same, rows=engine.rows(tables.STRETCHES))
    for row in engine.collect(rows).to_pylist():
        hours = tuple(instant(hour * HOUR_US) for hour in row["hours"])
        yield _versions(row), HourSet(tuple(row["clusters"]), hours).cluster_hours


def clear_batches(engine: Engine) -> None:
    """Remove the records of batches, once progress is written."""
    engine.write(tables.STRETCHES, None, "finished_at IS NOT NULL")


def _append(engine: Engine, table: tables.Table, values: Sequence[Any]) -> None:
    engine.write(table, arrow_types.rows(arrow_types.of_table(table), [values]))
