"""Faults of tables, with advice: a table is missing, older, of other types, or lacks data files.

Data files are missing if a Delta log has them and the store does not. They are damaged if they have
another size than in the log. Gold of older versions has other names of tables and columns, which
only ``jmxlake upgrade`` reads (``rollup.upgrade``). Other commands end with a one-line error.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse import errors, tables
from lakehouse.core import display
from lakehouse.core.periods import DAY_US, instant, micros
from lakehouse.tables import Column, Table, delta_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from deltalake import DeltaTable

    from lakehouse.core.periods import Span

OLDER_TABLES: Final = {
    "sources": "brokers",
    "sources_windows": "brokers_windows",
    "lost_offsets": "non_consumed",
    "lost_offsets_windows": "non_consumed_windows",
}
"""Older names of renamed tables."""

OLDER_COLUMNS: Final = {
    "hour": "window",
    "window_start": "window",
    "period_kind": "grain",
    "period_year": "period",
    "period_start": "window",
    "period_end": "window_end",
    "user_name": "user",
    "consumer_group": "group",
    "partition_id": "partition",
    "series_seen_us": "observed_us",
    "series_affected_us": "positive_us",
    "series_affected_low_us": "positive_low_us",
    "series_affected_high_us": "positive_high_us",
    "series_before_us": "spill_sum_us",
    "series_unknown_us": "unknown_us",
    "series_us": "duration_us",
    "affected_us": "any_us",
    "affected_low_us": "any_low_us",
    "affected_high_us": "any_high_us",
    "before_us": "spill_us",
    "outcome_us": "duration_us",
    "value_mean": "mean",
    "value_min": "min",
    "value_max": "max",
    "value_last": "value",
    "unknown_as": "unknown",
    "started_at": "start",
    "ended_at": "end",
    "finished_at": "at",
    "committed_at": "committed",
    "table_name": "table",
    "row_count": "rows",
}
"""Older names of renamed columns, in any table."""


def older(table: Table) -> Table:
    """Return a table of gold with the name, columns and place of older versions."""
    columns = tuple(
        replace(column, name=OLDER_COLUMNS.get(column.name, column.name))
        for column in table.columns
    )
    by = tuple(OLDER_COLUMNS.get(name, name) for name in table.partition_by)
    name = OLDER_TABLES.get(table.name, table.name)
    return replace(table, name=name, columns=columns, partition_by=by, shelf="")


def is_older(table: Table, names: Iterable[str]) -> bool:
    """Return True if an older version's table has these columns."""
    found = set(names)
    return any(
        OLDER_COLUMNS[name] in found and name not in found
        for name in table.column_names
        if name in OLDER_COLUMNS and table.layer == "gold"
    )


def check_age(table: Table, names: Iterable[str], place: str) -> None:
    """Check the columns of a table.

    Args:
        table: The table.
        names: Names of its columns.
        place: Place of the table, for the error.

    Raises:
        OlderGoldError: An older version wrote the table.
    """
    if is_older(table, names):
        raise older_gold(place)


def check_types(table: Table, types: Mapping[str, str], place: str) -> None:
    """Check the column types of a table.

    Args:
        table: The table.
        types: Column types, as Spark writes them, by name.
        place: Place of the table, for the error.

    Raises:
        TableSchemaError: The type of a column differs from its declaration.
    """
    if wrong := table.wrong_types(types):
        raise errors.TableSchemaError(
            f"{place}: {display.line('; '.join(wrong))}. Another version of jmxlake created the "
            "table, or it is not a table of jmxlake"
        )


def declared(table: Table, types: Mapping[str, str], place: str) -> tuple[Column, ...]:
    """Return the declared columns that a table has, after a check of its columns and types."""
    check_age(table, types, place)
    check_types(table, types, place)
    return table.declared(types)


def older_gold(place: str) -> errors.OlderGoldError:
    """Return the error for gold that an older version wrote."""
    return errors.OlderGoldError(
        f"{place}: an older jmxlake wrote this gold, with other column names. Run jmxlake upgrade "
        "LAKE first (docs/rollup.md)"
    )


UPGRADED: Final[tuple[Table, ...]] = (
    *(table for table in tables.GOLD if table.name in OLDER_TABLES),
    *(
        table
        for table in tables.GOLD
        if table.name not in OLDER_TABLES and table != tables.PROGRESS
    ),
    *tables.ROLLUP_STATE,
    tables.PROGRESS,
)
"""All tables below gold in the order of the upgrade: progress is last."""

_STARTS: Final = ("min.hour", "min.window_start", "min.period_start", "min.start", "min.at")
_ENDS: Final = ("max.period_end", "max.hour", "max.window_start", "max.end", "max.at")
_EXCLUSIVE: Final = ("max.period_end", "max.end")
_CUT_OFF: Final = 1_000
"""Precision of maxima in logs: milliseconds, rounded down (µs)."""

_MOST_NAMED: Final = 5


class FaultyFile(NamedTuple):
    """A live file of a table that is missing or damaged.

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


def missing_files(delta: DeltaTable) -> list[FaultyFile]:
    """Return the live files of a table that its store does not have.

    The store is listed once for any number of files.
    """
    gone = set(delta.repair(dry_run=True)["files_removed"])  # decoded once
    if not gone:
        return []
    return [_file(row) for row in _live(delta) if delta_log.below_table(str(row["path"])) in gone]


def damaged_files(delta: DeltaTable, folder: Path) -> list[FaultyFile]:
    """Return the live files of a table in a folder that have another size than in the log.

    A host that fails can leave a part of a file. Object stores have only whole objects.
    """
    return [
        _file(row)
        for row in _live(delta)
        if _size(folder / delta_log.below_table(str(row["path"]))) not in {None, row["size_bytes"]}
    ]


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return None


def _live(delta: DeltaTable) -> Iterator[dict[str, object]]:
    """Yield the live files of a table, as the log has them."""
    actions = delta.get_add_actions(flatten=True)
    names = actions.schema.names
    columns = {name: actions.column(name).to_pylist() for name in names if _is_read(name)}
    for values in zip(*columns.values()):  # noqa: B905
        yield dict(zip(columns, values, strict=True))


def _is_read(name: str) -> bool:
    own = {"path", "size_bytes", "num_records", "partition.date", "min.cluster", "max.cluster"}
    return name in {*own, *_STARTS, *_ENDS}


def _file(row: dict[str, object]) -> FaultyFile:
    first, last = (
        next((name for name in names if isinstance(row.get(name), dt.datetime)), "")
        for names in (_STARTS, _ENDS)
    )
    end = _us(row.get(last))
    if end is not None and last not in _EXCLUSIVE:
        end += _CUT_OFF
    date, cluster, rows = row.get("partition.date"), row.get("min.cluster"), row["num_records"]
    return FaultyFile(
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


def dates(files: Sequence[FaultyFile]) -> list[dt.date]:
    """Return the dates (UTC) of files, in order."""
    days: set[dt.date] = set()
    for file in files:
        if file.date is not None:
            days.add(file.date)
        elif file.span is not None:
            start, end = file.span
            days |= {instant(one).date() for one in (*range(start, end, DAY_US), end - 1)}
    return sorted(days)


def what(files: Sequence[FaultyFile], fault: str = "missing") -> str:
    """Return a clause about missing or damaged files."""
    number = f"1 data file is {fault}"
    if len(files) > 1:
        number = f"{len(files)} data files are {fault}"
    days = dates(files)
    if not days:
        return number
    more = f" and {len(days) - _MOST_NAMED} more dates" if len(days) > _MOST_NAMED else ""
    return f"{number}, with rows of {', '.join(map(str, days[:_MOST_NAMED]))}{more}"


def todo(table: Table, files: Sequence[FaultyFile]) -> str:
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


def no_table(table: Table, place: str) -> errors.TableNotFoundError:
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
    return errors.TableNotFoundError(f"{place}: no such table. {todo}")


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
        table = table or Table("gold", url.rsplit("/", 1)[-1], "", ())
        raise errors.MissingFilesError(f"{url}: {what(files)}; {todo(table, files)}", table.layer)
