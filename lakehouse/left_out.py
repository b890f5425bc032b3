"""Which rows of gold are of windows in which there was planned maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse.existence import SUBJECT, Subject
from lakehouse.gold_rows import is_one_of
from lakehouse.maintenance import Maintenance, matches

if TYPE_CHECKING:
    from lakehouse.gold_rows import GoldRows
    from lakehouse.rollup.engine import Relation


SPILL: Final = "spill_us"
"""The column that says how long before a row's window something may have begun, at most."""


class LeftOut(NamedTuple):
    """Maintenance whose windows do not count.

    Attributes:
        planned: The maintenance.
        subjects: All that rows are of.
        window_us: Length of gold's finest windows.
        names: Which columns of a subject the rows have.
    """

    planned: Sequence[Maintenance]
    subjects: Sequence[Subject]
    window_us: int
    names: Sequence[str] = SUBJECT

    def holds(self, window: str = "r.window") -> str:
        """The condition that a window of a row ``r`` lies in maintenance of its subject."""
        return " OR ".join(self._holds(one, window) for one in self.planned) or "false"

    def rest(
        self, gold: GoldRows, rows: Relation, keys: Sequence[str], sums: Sequence[str]
    ) -> Relation:
        """Rows that count, and what may have begun just before maintenance.

        What was first seen in the first window of maintenance may have begun in the one before it,
        and of that nobody else says so: so of that window there is a row more, all zeros but for
        its upper bound.

        Args:
            gold: Where the rows are from.
            rows: With ``window``, the columns that are named here, and ``SPILL``.
            keys: Columns that a row keeps.
            sums: What is summed up; the upper bound is the last.
        """
        if not self.planned:
            return rows
        before = f"r.window - {self.window_us}"
        others = [f"r.{name} AS {name}" for name in keys]
        same = [f"r.{name} AS {name}" for name in (*sums, SPILL)]
        moved = [f"0 AS {name}" for name in sums[:-1]]
        moved += [f"r.{SPILL} AS {sums[-1]}", f"0 AS {SPILL}"]
        return gold.engine.query(
            f"SELECT r.window AS window, {', '.join((*others, *same))} FROM {{rows}} r "
            f"WHERE NOT ({self.holds()}) "
            f"UNION ALL SELECT {before} AS window, {', '.join((*others, *moved))} FROM {{rows}} r "
            f"WHERE ({self.holds()}) AND NOT ({self.holds(before)}) AND r.{SPILL} > 0",
            rows=rows,
        )

    def _holds(self, one: Maintenance, window: str) -> str:
        start, end = one.windows(self.window_us)
        parts = [f"{window} >= {start} AND {window} < {end}"]
        if "cluster" in one.names:
            clusters = {each.cluster for each in self.subjects}
            chosen = sorted(each for each in clusters if matches(each, one.names["cluster"]))
            parts.append(is_one_of("r.cluster", chosen))
        if one.subject_names:
            touched = [
                f"coalesce({is_one_of(f'r.{name}', self._named(one, name))}, false)"
                for name in one.subject_names
                if name in self.names
            ]
            parts.append(f"({' OR '.join(touched) or 'false'})")
        return f"({' AND '.join(parts)})"

    def _named(self, one: Maintenance, name: str) -> list[str]:
        own = {each.names[name] for each in self.subjects}
        return sorted(each for each in own if each is not None and matches(each, one.names[name]))
