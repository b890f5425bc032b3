"""Which rows of gold are of windows in which there was planned maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lakehouse.existence import SUBJECT, Subject
from lakehouse.gold_rows import is_one_of
from lakehouse.maintenance import Maintenance, matches

if TYPE_CHECKING:
    from lakehouse.gold_rows import GoldRows
    from lakehouse.rollup.engine import Relation


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

    def rest(self, gold: GoldRows, rows: Relation, sums: Sequence[str], begun: Begun) -> Relation:
        """Rows that count, and what may have begun just before maintenance.

        What was first seen in the first window of maintenance may have begun in the one before it,
        and of that nobody else says so: so of that window there is a row more, all zeros but for
        its upper bound.

        Args:
            gold: Where the rows are from.
            rows: With ``window`` and the columns that are named here.
            sums: What is summed up; all that the result has beside the columns of ``begun``.
            begun: What may have begun before a row's window.
        """
        if not self.planned:
            return rows
        before = f"r.window - {self.window_us}"
        others = [f"r.{name} AS {name}" for name in begun.kept]
        same = [f"r.{name} AS {name}" for name in sums]
        moved = [f"{begun.us if name == begun.high else 0} AS {name}" for name in sums]
        return gold.engine.query(
            f"SELECT r.window AS window, {', '.join((*others, *same))} FROM {{rows}} r "
            f"WHERE NOT ({self.holds()}) "
            f"UNION ALL SELECT {before} AS window, {', '.join((*others, *moved))} FROM {{rows}} r "
            f"WHERE ({self.holds()}) AND NOT ({self.holds(before)}) AND {begun.us} > 0",
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


class Begun(NamedTuple):
    """What a row ``r`` says of what may have begun before its window.

    Attributes:
        us: How long before it, at most; SQL, microseconds.
        high: The column of the upper bound.
        kept: Columns that a row keeps, whatever is summed.
    """

    us: str
    high: str
    kept: Sequence[str]
