"""Which rows of a table of gold are taken, and in which order; and they as a Parquet file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lakehouse.maintain.place import ASKED, rows
from lakehouse.periods import Period, micros
from lakehouse.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from deltalake import DeltaTable

# Without Arrow's own schema in it, any reader goes by Parquet's types.
_OPTIONS: Final = "('format.compression' 'zstd(9)', 'format.skip_arrow_metadata' 'true')"
_ORDERED: Final = ("string", "int", "timestamp")


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of a table of gold.

    Attributes:
        table: Which table.
        period: Windows that start in it; None: all.
        metrics: Of these metrics; empty: of all.
    """

    table: Table
    period: Period | None = None
    metrics: tuple[str, ...] = ()

    def sql(self, columns: Sequence[str], *, present: str | None = None) -> str:
        """The query for some columns, sorted by all that tells rows apart; instants last.

        Args:
            columns: Names of the table's columns.
            present: A column that is not null.
        """
        types = {one.name: one.type for one in self.table.columns}
        keys = [one for one in columns if types.get(one) in _ORDERED]
        keys.sort(key=lambda one: types[one] == "timestamp")
        conditions = []
        if self.metrics:
            conditions.append(f"metric IN ({', '.join(map(_quoted, self.metrics))})")
        if self.period is not None:
            for is_, at in ((">=", self.period.start), ("<", self.period.end)):
                # A constant of the column's own type: files are left out by their statistics.
                instant = f"arrow_cast({micros(at)}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
                conditions.append(f'"window" {is_} {instant}')
        if present is not None:
            conditions.append(f"{_identifier(present)} IS NOT NULL")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        listed, order = (", ".join(map(_identifier, one)) for one in (columns, keys))
        return f"SELECT {listed} FROM {ASKED}{where} ORDER BY {order}"


def write_parquet(delta: DeltaTable, sql: str, file: Path, where: str) -> int:
    """Write the rows of a query as one Parquet file, by delta-rs's own engine as it reads them.

    Args:
        delta: What is asked.
        sql: As ``place.rows`` takes it.
        file: To be made; its name ends with ``.parquet``. Without rows it is not.
        where: Where the table lies, for errors.

    Returns:
        How many rows these are.

    Raises:
        MaintenanceError: The table could not be read, or the file not be written.
    """
    # As a URL: in a path the engine would take some characters for a pattern.
    target = _quoted(file.resolve().as_uri())
    copy = f"COPY ({sql}) TO {target} STORED AS PARQUET OPTIONS {_OPTIONS}"
    (row,) = rows(delta, copy, where)
    return int(row["count"])


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
