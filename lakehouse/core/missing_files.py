"""Missing data files: files in a Delta log that the store does not have."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.periods import DAY_US, instant, micros
from lakehouse.errors import MissingFilesError, TableNotFoundError
from lakehouse.tables import Table, delta_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable

    from lakehouse.core.periods import Span

_STARTS: Final = ("min.hour", "min.window_start", "min.period_start", "min.start", "min.at")
_ENDS: Final = ("max.period_end", "max.hour", "max.window_start", "max.end", "max.at")
_EXCLUSIVE: Final = ("max.period_end", "max.end")
_CUT_OFF: Final = 1_000
"""Precision of maxima in logs: milliseconds, rounded down (µs)."""

_MOST_NAMED: Final = 5


class MissingFile(NamedTuple):
    """A missing live file of a table.

    Attributes:
        path: Path below the table.
        date: Partition. None in a table without dates.
        start: First instant of its rows, from the log (µs).
        end: End of its last row, from the log (µs).
        cluster: Cluster of all rows, if the log has only one.
        rows: Number of rows.
    """

    path: str
    date: dt.date | None
    start: int | None
    end: int | None
    cluster: str | None
    rows: int

    @property
    def span(self) -> Span | None:
        """Time of its rows: their instants, otherwise the whole date. None means any time."""
        if self.start is not None and self.end is not None:
            return self.start, self.end
        if self.date is not None:
            start = micros(dt.datetime.combine(self.date, dt.time(tzinfo=dt.UTC)))
            return start, start + DAY_US
        return None


def missing_files(delta: DeltaTable) -> list[MissingFile]:
    """Return the live files of a table that its store does not have.

    The store is listed once for any number of files.
    """
    gone = set(delta.repair(dry_run=True)["files_removed"])  # decoded once
    if not gone:
        return []
    actions = delta.get_add_actions(flatten=True)
    names = actions.schema.names
    columns = {name: actions.column(name).to_pylist() for name in names if _is_read(name)}
    rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values()))  # noqa: B905
    return [_file(row) for row in rows if delta_log.below_table(row["path"]) in gone]


def _is_read(name: str) -> bool:
    own = {"path", "num_records", "partition.date", "min.cluster", "max.cluster"}
    return name in {*own, *_STARTS, *_ENDS}


def _file(row: dict[str, object]) -> MissingFile:
    first, last = (
        next((name for name in names if isinstance(row.get(name), dt.datetime)), "")
        for names in (_STARTS, _ENDS)
    )
    end = _us(row.get(last))
    if end is not None and last not in _EXCLUSIVE:
        end += _CUT_OFF
    date, cluster, rows = row.get("partition.date"), row.get("min.cluster"), row["num_records"]
    return MissingFile(
        str(row["path"]),
        date if isinstance(date, dt.date) else None,
        _us(row.get(first)),
        end,
        str(cluster) if cluster is not None and cluster == row.get("max.cluster") else None,
        rows if isinstance(rows, int) else 0,
    )


def _us(at: object) -> int | None:
    if not isinstance(at, dt.datetime):
        return None
    return micros(at if at.tzinfo else at.replace(tzinfo=dt.UTC))


def dates(files: Sequence[MissingFile]) -> list[dt.date]:
    """Return the dates (UTC) of files, in order."""
    days: set[dt.date] = set()
    for file in files:
        if file.date is not None:
            days.add(file.date)
        elif file.span is not None:
            start, end = file.span
            days |= {instant(one).date() for one in (*range(start, end, DAY_US), end - 1)}
    return sorted(days)


def what(files: Sequence[MissingFile]) -> str:
    """Return a clause about missing files."""
    number = "1 data file is missing"
    if len(files) > 1:
        number = f"{len(files)} data files are missing"
    days = dates(files)
    if not days:
        return number
    more = f" and {len(days) - _MOST_NAMED} more dates" if len(days) > _MOST_NAMED else ""
    return f"{number}, with rows of {', '.join(map(str, days[:_MOST_NAMED]))}{more}"


def todo(table: Table, files: Sequence[MissingFile]) -> str:
    """Return advice about missing files."""
    if table.layer == "bronze":
        return (
            "restore them from a backup, or run jmxlake rollup LAKE --accept-lost to continue "
            "without them: their time stays unknown"
        )
    days = dates(files)
    if table is tables.SLA:
        return (
            "restore them from a backup, or run jmxlake rollup LAKE --tidy now to continue without "
            "these published statements"
        )
    is_dated = days and "date" in table.partition_by
    since = f"--since {days[0]}" if is_dated else "--tidy now"
    return f"run jmxlake rollup LAKE {since}, which recomputes the hours in bronze"


def error(table: Table, url: str, files: Sequence[MissingFile]) -> MissingFilesError:
    """Return the error for missing files."""
    return MissingFilesError(f"{url}: {what(files)}; {todo(table, files)}", table.layer)


def no_table(table: Table, place: str) -> TableNotFoundError:
    """Return the error for a table that does not exist, with advice."""
    if table.layer == "gold":
        todo = "Run jmxlake rollup first"
    elif table in tables.BRONZE and table is not tables.RUNS:
        todo = (
            "Agents create it together with bronze/runs, so it was deleted. Restore it from a "
            "backup, or restart the agents with --new-lake; its earlier rows then stay unknown"
        )
    else:
        todo = "Agents create it at their first delivery"
    return TableNotFoundError(f"{place}: no such table. {todo}")


def may_be_why(error: Exception) -> bool:
    """Return True if missing files can be the reason for an error of delta-rs or the store."""
    text = str(error).lower()
    return isinstance(error, FileNotFoundError) or any(
        word in text for word in ("not found", "no such file", "no files found", "404")
    )


def refuse(delta: DeltaTable, url: str) -> None:
    """Raise an error if data files of a table are missing; called after a failed read.

    Raises:
        MissingFilesError: Files are missing.
    """
    every = (*tables.BRONZE, *tables.GOLD, *tables.ROLLUP_STATE)
    table = next((one for one in every if url.endswith(f"/{one.path}")), None)
    files = missing_files(delta)
    if files:
        layer = Table("gold", url.rsplit("/", 1)[-1], "", ())
        raise error(table or layer, url, files)
