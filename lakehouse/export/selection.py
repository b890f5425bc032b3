"""Which rows of a table of gold are taken, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lakehouse.maintain.place import ASKED
from lakehouse.periods import Period, micros
from lakehouse.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

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
            conditions.append(f"metric IN ({', '.join(map(quoted, self.metrics))})")
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


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def quoted(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
