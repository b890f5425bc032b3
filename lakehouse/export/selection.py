"""Which rows of a table of gold are taken, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lakehouse import query
from lakehouse.periods import Period, micros
from lakehouse.tables import Table

if TYPE_CHECKING:
    import datetime as dt
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
        listed = ", ".join(identifier(one) for one in columns)
        conditions = [*self._conditions()]
        if present is not None:
            conditions.append(f"{identifier(present)} IS NOT NULL")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        order = ", ".join(identifier(one) for one in self.order(columns))
        return f"SELECT {listed} FROM {query.TABLE}{where} ORDER BY {order}"  # noqa: S608 - see below

    def order(self, columns: Sequence[str]) -> list[str]:
        """The columns by which rows are sorted."""
        types = {one.name: one.type for one in self.table.columns}
        keys = [one for one in columns if types.get(one) in _ORDERED]
        return sorted(keys, key=lambda one: types[one] == "timestamp")

    def _conditions(self) -> list[str]:
        found = []
        if self.metrics:
            found.append(f"metric IN ({', '.join(map(query.quoted, self.metrics))})")
        if self.period is not None:
            found.append(f'"window" >= {_instant(self.period.start)}')
            found.append(f'"window" < {_instant(self.period.end)}')
        return found


def identifier(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _instant(at: dt.datetime) -> str:
    # A constant of the column's own type: files are left out by their statistics.
    return f"arrow_cast({micros(at)}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
