"""Leaves the windows of excluded time, maintenance and corrections, out of rows of gold."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from lakehouse.core.subjects import SUBJECT, SUBJECT_COLUMNS, Subject
from lakehouse.engines.gold_reader import is_one_of
from lakehouse.engines.relation import Relation, select
from lakehouse.slo.calendar.maintenance import Maintenance, matches

BEFORE: Final = "before_us"
"""The column with the part of a row's upper bound that may lie before its window."""

_COLUMNS: Final = dict(zip(SUBJECT, SUBJECT_COLUMNS, strict=True)) | {"cluster": "cluster"}
"""Columns of gold, by the names that patterns are of."""


class Exclusions(NamedTuple):
    """Excluded time, of maintenance and corrections, whose windows do not count.

    Attributes:
        planned: That time.
        subjects: All subjects that the rows are of; rows have their names.
        window_us: Length of gold's finest windows.
    """

    planned: Sequence[Maintenance]
    subjects: Sequence[Subject]
    window_us: int

    def condition(self, window: str = "r.window_start") -> str:
        """SQL: whether a window of a row ``r`` lies in maintenance of its subject."""
        return " OR ".join(self._condition(one, window) for one in self.planned) or "false"

    def apply(
        self, rows: Relation, keys: Sequence[str], sums: Sequence[str], since: int
    ) -> Relation:
        """Rows outside maintenance, with the bad time that may lie just before maintenance.

        Bad time that is first seen in the first window of maintenance may have started before it.
        No other row covers that, so there is a row more for the window before: all zeros but for
        its upper bound.

        Args:
            rows: With ``window_start``, ``keys``, ``sums`` and ``BEFORE``.
            keys: Columns that a row keeps.
            sums: Columns with times; the upper bound is the last.
            since: Start of the first window that counts, microseconds.
        """
        if not self.planned:
            return rows
        before = f"r.window_start - {self.window_us}"
        kept = ", ".join(f"r.{name} AS {name}" for name in (*keys, *sums, BEFORE))
        values = {name: f"r.{name}" for name in keys} | dict.fromkeys((*sums, BEFORE), "0")
        values[sums[-1]] = f"r.{BEFORE}"
        moved = ", ".join(f"{value} AS {name}" for name, value in values.items())
        return select(
            f"SELECT r.window_start, {kept} FROM {{rows}} r WHERE NOT ({self.condition()}) "
            f"UNION ALL SELECT {before} AS window_start, {moved} FROM {{rows}} r "
            f"WHERE ({self.condition()}) AND NOT ({self.condition(before)}) AND r.{BEFORE} > 0 "
            f"AND {before} >= {since}",
            rows=rows,
        )

    def _condition(self, planned: Maintenance, window: str) -> str:
        start, end = planned.windows(self.window_us)
        parts = [f"{window} >= {start} AND {window} < {end}"]
        if "cluster" in planned.names:
            parts.append(self._has_name("cluster", planned))
        if keys := planned.subject_columns:
            named = (f"coalesce({self._has_name(key, planned)}, false)" for key in keys)
            parts.append(f"({' OR '.join(named)})")
        return f"({' AND '.join(parts)})"

    def _has_name(self, key: str, planned: Maintenance) -> str:
        """SQL: whether a row has a name that a pattern of this key matches."""
        names = {{"cluster": one.cluster, **one.names}[key] for one in self.subjects}
        found = (str(name) for name in names if matches(name, planned.names[key]))
        return is_one_of(f"r.{_COLUMNS[key]}", sorted(found))
