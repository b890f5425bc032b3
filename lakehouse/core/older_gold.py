"""Gold of older versions: its names of tables and columns; checks of a table's columns.

Only ``jmxlake upgrade`` reads it (``rollup.upgrade``). Other commands end with a one-line error.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from lakehouse import tables
from lakehouse.core import display
from lakehouse.errors import OlderGoldError, TableSchemaError
from lakehouse.tables import Column, Table

TABLES: Final = {
    "sources": "brokers",
    "sources_windows": "brokers_windows",
    "lost_offsets": "non_consumed",
    "lost_offsets_windows": "non_consumed_windows",
}
"""Older names of renamed tables."""

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
"""Older names of renamed columns, in any table."""


def older(table: Table) -> Table:
    """Return a table of gold with the name, columns and place of older versions."""
    columns = tuple(
        replace(column, name=COLUMNS.get(column.name, column.name)) for column in table.columns
    )
    by = tuple(COLUMNS.get(name, name) for name in table.partition_by)
    name = TABLES.get(table.name, table.name)
    return replace(table, name=name, columns=columns, partition_by=by, shelf="")


def is_older(table: Table, names: Iterable[str]) -> bool:
    """Return True if an older version's table has these columns."""
    found = set(names)
    return any(
        COLUMNS[name] in found and name not in found
        for name in table.column_names
        if name in COLUMNS and table.layer == "gold"
    )


def check(table: Table, names: Iterable[str], place: str) -> None:
    """Check the columns of a table.

    Args:
        table: The table.
        names: Names of its columns.
        place: Place of the table, for the error.

    Raises:
        OlderGoldError: An older version wrote the table.
    """
    if is_older(table, names):
        raise refusal(place)


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
        raise TableSchemaError(
            f"{place}: {display.line('; '.join(wrong))}. Another version of jmxlake created the "
            "table, or it is not a table of jmxlake"
        )


def declared(table: Table, types: Mapping[str, str], place: str) -> tuple[Column, ...]:
    """Return the declared columns that a table has, after a check of its columns and types."""
    check(table, types, place)
    check_types(table, types, place)
    return table.declared(types)


def refusal(place: str) -> OlderGoldError:
    """Return the error for gold that an older version wrote."""
    return OlderGoldError(
        f"{place}: an older jmxlake wrote this gold, with other column names. Run jmxlake upgrade "
        "LAKE first (docs/rollup.md)"
    )


EVERY: Final[tuple[Table, ...]] = (
    *(table for table in tables.GOLD if table.name in TABLES),
    *(table for table in tables.GOLD if table.name not in TABLES and table != tables.PROGRESS),
    *tables.ROLLUP_STATE,
    tables.PROGRESS,
)
"""All tables below gold in the order of the upgrade: progress is last."""
