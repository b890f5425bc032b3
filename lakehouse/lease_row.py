"""The lease as it lies in the lake: one row, changed by compare and swap.

``UPDATE ... WHERE id = what I saw`` changes nothing where somebody was faster, and of two at the
same instant Delta lets one commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake

_CONFLICTS: Final = (
    "DELTA_CONCURRENT", "Concurrent", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED"
)  # fmt: skip
_NO_ROW: Final = -1
"""Instead of an instant: the table is new."""


class Row(NamedTuple):
    """The lease as it is in the lake; instants in microseconds."""

    id: str | None = None
    holder: str | None = None
    since: int | None = None
    until: int | None = None


def read(spark: SparkSession, lake: Lake) -> Row:
    """The lease as it is now."""
    rows = lakes.read(spark, lake, tables.LEASE).select(
        "id", "holder", F.unix_micros("since"), F.unix_micros("until")
    )
    found = rows.collect()
    return Row(*found[0]) if found else Row(since=_NO_ROW)


def swap(spark: SparkSession, lake: Lake, seen: Row, wanted: Row) -> bool:
    """Write a row if the lease is still as it was seen; False where somebody was faster."""
    name = lake.name(tables.LEASE)
    values = {
        "id": _text(wanted.id),
        "holder": _text(wanted.holder),
        "since": _instant(wanted.since),
        "until": _instant(wanted.until),
    }
    if seen.since == _NO_ROW:
        sql = (
            f"MERGE INTO {name} USING (SELECT 1) ON true WHEN NOT MATCHED THEN INSERT "  # noqa: S608
            f"({', '.join(values)}) VALUES ({', '.join(values.values())})"
        )
    else:
        changed = ", ".join(f"{column} = {value}" for column, value in values.items())
        sql = (
            f"UPDATE {name} SET {changed} "  # noqa: S608 - no outside text
            f"WHERE id <=> {_text(seen.id)} AND until <=> {_instant(seen.until)}"
        )
    try:
        (row,) = spark.sql(sql).collect()
    except Exception as error:
        if is_conflict(error):
            return False
        raise
    return bool(row["num_affected_rows"])


def _text(value: str | None) -> str:
    """A literal that no name of a host can break."""
    return "NULL" if value is None else f"CAST(X'{value.encode().hex()}' AS STRING)"


def _instant(value: int | None) -> str:
    return "NULL" if value is None else f"timestamp_micros({value:d})"


def is_conflict(error: BaseException) -> bool:
    """Whether Delta refused a commit because somebody else's came first.

    Classic Spark and Connect have it in exceptions that have no class in common.
    """
    words = f"{type(error).__name__} {error}"
    return any(word in words for word in _CONFLICTS)
