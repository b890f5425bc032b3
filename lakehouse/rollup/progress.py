"""gold/progress and gold/stretches: how far rollups have come, and what is done of one under way.

Progress is written last. A batch is noted when all its commits are made; notes belong to the row of
progress they were made after, so a new row makes the old ones void.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.periods import HOUR_US, instant, micros
from lakehouse.rollup import shapes
from lakehouse.units import Pair, Units, Versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakehouse.rollup.engine import Engine
    from lakehouse.tables import Table

WHOLE: Final = "whole"
FEED: Final = "feed"
RECOVERED: Final = "recovered"
SINCE: Final = "since"
TIDIED: Final = "tidied"


@dataclass(frozen=True, slots=True)
class Progress:
    """A row of gold/progress.

    Attributes:
        at: When the rollup ended.
        window_seconds: Length of gold's finest windows.
        versions: Versions of bronze that are rolled up.
        hours: Hours of clusters that were recomputed.
        committed: When the newest of the versions was committed; None in rows of old.
        how: One of the words above; None in rows of old.
        late_rows: Rows that came when their hour was not recomputed any more.
        runs_id: Id of the Delta table bronze/runs; None in rows of old.
        kernel: Version of the kernel's text that made the hours; None in rows of old.
        duckdb: Version of the DuckDB that ran it; None in rows of old.
    """

    at: dt.datetime
    window_seconds: int
    versions: Versions
    hours: int = 0
    committed: dt.datetime | None = None
    how: str | None = None
    late_rows: int = 0
    runs_id: str | None = None
    kernel: str | None = None
    duckdb: str | None = None


class Noted(NamedTuple):
    """A batch that was done after the last row of progress: at which versions, and of what."""

    how: str
    versions: Versions
    pairs: frozenset[Pair]


class Last(NamedTuple):
    """How far gold is.

    Attributes:
        row: The row of progress that stands; None where there is none.
        tidied: The day (UTC) on which gold was tidied last, or begun.
    """

    row: Progress | None = None
    tidied: dt.date | None = None


def last(engine: Engine) -> Last:
    """How far gold is; nowhere, where there is no gold/progress."""
    columns = engine.schema(tables.PROGRESS)
    if columns is None:
        return Last()
    instants = ["SELECT max(r.at) FROM {rows} r", "SELECT min(r.at) FROM {rows} r"]
    if "how" in columns:
        instants.append(f"{instants[0]} WHERE r.how = '{TIDIED}'")
    chosen = f"SELECT * FROM {{rows}} p WHERE p.at IN ({' UNION ALL '.join(instants)})"
    found = engine.query(chosen, rows=engine.rows(tables.PROGRESS))
    return newest(engine.collect(found).to_pylist())


def newest(rows: Iterable[Mapping[str, Any]]) -> Last:
    """How far gold is by the rows of gold/progress, instants in microseconds.

    The first, the last and the last ``tidied`` one are enough.
    """
    in_order = sorted(rows, key=lambda row: row["at"])
    if not in_order:
        return Last()
    tidied = [row for row in in_order if row.get("how") == TIDIED]
    return Last(_progress(in_order[-1]), instant([*in_order[:1], *tidied][-1]["at"]).date())


def _progress(row: Mapping[str, Any]) -> Progress:
    committed = row.get("committed")
    return Progress(
        instant(row["at"]),
        row["window_seconds"],
        _versions(row),
        row["hours"],
        None if committed is None else instant(committed),
        row.get("how"),
        row.get("late_rows") or 0,
        row.get("runs_id"),
        row.get("kernel"),
        row.get("duckdb"),
    )


def _versions(row: Mapping[str, Any]) -> Versions:
    return Versions(row["runs_version"], row["scrapes_version"], row["members_version"])


def record(engine: Engine, done: Progress, before: Progress | None) -> Progress:
    """Append a row; it stands, wherever the clock of the row before was."""
    at = micros(done.at) if before is None else max(micros(done.at), micros(before.at) + 1)
    values = (
        at, done.window_seconds, *done.versions, done.hours,
        None if done.committed is None else micros(done.committed),
        done.how, done.late_rows, done.runs_id, done.kernel, done.duckdb,
    )  # fmt: skip
    _append(engine, tables.PROGRESS, values)
    return replace(done, at=instant(at))


def note(
    engine: Engine, after: Progress | None, how: str, versions: Versions, units: Units
) -> None:
    """Note that a batch is done."""
    hours = [micros(hour) // HOUR_US for hour in units.hours]
    values = (
        micros(dt.datetime.now(dt.UTC)), None if after is None else micros(after.at), how,
        *versions, list(units.clusters), hours,
    )  # fmt: skip
    _append(engine, tables.STRETCHES, values)


def noted(engine: Engine, after: Progress | None, how: str) -> list[Noted]:
    """Batches of a rollup of that kind that was cut short after a row of progress."""
    since = "r.after IS NULL" if after is None else f"r.after = {micros(after.at)}"
    rows = engine.query(
        f"SELECT * FROM {{rows}} r WHERE {since}", rows=engine.rows(tables.STRETCHES)
    )
    return [
        Noted(
            how,
            _versions(row),
            Units(
                tuple(row["clusters"]), tuple(instant(hour * HOUR_US) for hour in row["hours"])
            ).pairs,
        )
        for row in engine.collect(rows).to_pylist()
        if row["how"] == how
    ]


def forget(engine: Engine) -> None:
    """Remove the notes of batches, once progress is written."""
    engine.delete(tables.STRETCHES, "at IS NOT NULL")


def _append(engine: Engine, table: Table, values: Sequence[Any]) -> None:
    engine.write(table, engine.relation(shapes.rows(shapes.of_table(table), [values])))
