"""Gold of older versions: the names that its tables and columns had, and how to tell it.

Only ``jmxlake upgrade`` reads it (``rollup.upgrade``). All else ends with one line that says so.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from lakehouse import tables
from lakehouse.errors import OlderGoldError
from lakehouse.tables import Table

TABLES: Final = {
    "sources": "brokers",
    "sources_windows": "brokers_windows",
    "lost_offsets": "non_consumed",
    "lost_offsets_windows": "non_consumed_windows",
}
"""Tables that have another name now, with the older one."""

COLUMNS: Final = {
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
"""Columns that have another name now, in whatever table, with the older one."""


def older(table: Table) -> Table:
    """A table of gold as older versions named it and its columns, and where they had it."""
    columns = tuple(
        replace(column, name=COLUMNS.get(column.name, column.name)) for column in table.columns
    )
    by = tuple(COLUMNS.get(name, name) for name in table.partition_by)
    name = TABLES.get(table.name, table.name)
    return replace(table, name=name, columns=columns, partition_by=by, shelf="")


def is_older(table: Table, names: Iterable[str]) -> bool:
    """Whether columns are those of an older version's table."""
    found = set(names)
    return any(
        COLUMNS[name] in found and name not in found
        for name in table.column_names
        if name in COLUMNS and table.layer == "gold"
    )


def check(table: Table, names: Iterable[str], place: str) -> None:
    """Check that columns are not those of an older version's table.

    Args:
        table: The table.
        names: The columns that it has.
        place: Where it is, for the error.

    Raises:
        OlderGoldError: They are.
    """
    if is_older(table, names):
        raise refusal(place)


def refusal(place: str) -> OlderGoldError:
    """The error of gold that an older version wrote."""
    return OlderGoldError(
        f"{place}: an older jmxlake wrote it, with other names of columns; run jmxlake upgrade "
        "LAKE first (docs/rollup.md)"
    )


EVERY: Final[tuple[Table, ...]] = (
    *(table for table in tables.GOLD if table.name in TABLES),
    *(table for table in tables.GOLD if table.name not in TABLES and table != tables.PROGRESS),
    *tables.ROLLUP_STATE,
    tables.PROGRESS,
)
"""All tables below gold in the order in which they are taken over: progress is last."""
