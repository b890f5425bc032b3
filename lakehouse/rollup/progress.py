"""gold/progress and gold/stretches: rolled up versions, and batches of the running rollup.

Progress is written last. A batch is recorded after all its commits. The record belongs to the row
of progress before it, and is void after a new row of progress.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from typing import Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.periods import HOUR_US, Period, instant, micros, now_us
from lakehouse.engines.engine import Costs, Engine, ask
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
        finished_at: End of the rollup.
        window_seconds: Length of gold's 5-minute windows.
        versions: Rolled up versions of bronze.
        hours: Number of recomputed hours of clusters.
        committed_at: Time of the newest commit among the versions.
        how: Choice of the hours: one of the words above.
        late_rows: Number of rows for frozen hours.
        runs_id: ID of the Delta table bronze/runs.
        kernel: Version of the kernel's SQL. None in the layout of b88afb5.
        duckdb: Version of DuckDB. None in the layout of b88afb5.
        tables: Gold's tables after the rollup (``gold_tables.notes_of``). None in older rows.
        rejected_dates: Dates with rejected rows (``commit.rejected_dates``). None in older rows.
        costs: Cost of the parts.
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
    costs: Costs = field(default_factory=Costs)


class Last(NamedTuple):
    """State of gold.

    Attributes:
        row: Current row of progress. None before the first rollup.
        tidied: Day (UTC) of the last maintenance, otherwise of the first rollup.
    """

    row: Progress | None = None
    tidied: dt.date | None = None


def last(engine: Engine) -> Last:
    """Return the state of gold. Empty without gold/progress."""
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
    """Return the end of the newest scrape in gold, at most now. None if none in two days."""
    lately = Period(now - dt.timedelta(days=2), now + dt.timedelta(days=1))
    readings = engine.rows(tables.READINGS, between=lately)
    ((us,),) = ask(engine, "SELECT max(r.ended_at) FROM {rows} r", rows=readings)
    return None if us is None else min(instant(int(us)), now)


def _versions(row: Mapping[str, Any]) -> Versions:
    return Versions(row["runs_version"], row["scrapes_version"], row["members_version"])


def record(engine: Engine, done: Progress, before: Progress | None) -> Progress:
    """Append a row that is later than the row before, even if clocks differ."""
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
    """Record that a batch is completed."""
    hours = [micros(hour) // HOUR_US for hour in units.hours]
    values = (
        now_us(), None if after is None else micros(after.finished_at), how,
        *versions, list(units.clusters), hours,
    )  # fmt: skip
    _append(engine, tables.STRETCHES, values)


def done_batches(
    engine: Engine, after: Progress | None, how: str
) -> Iterator[tuple[Versions, frozenset[ClusterHour]]]:
    """Yield the batches that an interrupted rollup completed after a row of progress."""
    since = "r.after IS NULL" if after is None else f"r.after = {micros(after.finished_at)}"
    same = f"SELECT * FROM {{rows}} r WHERE {since} AND {is_same('r.how', how)}"
    rows = select(same, rows=engine.rows(tables.STRETCHES))
    for row in engine.collect(rows).to_pylist():
        hours = tuple(instant(hour * HOUR_US) for hour in row["hours"])
        yield _versions(row), HourSet(tuple(row["clusters"]), hours).cluster_hours


def clear_batches(engine: Engine) -> None:
    """Remove the records of batches, after progress is written."""
    engine.write(tables.STRETCHES, None, "finished_at IS NOT NULL")


def _append(engine: Engine, table: tables.Table, values: Sequence[Any]) -> None:
    engine.write(table, arrow_types.rows(arrow_types.of_table(table), [values]))
