"""Which rows of gold are of windows in which there was planned maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from lakehouse.asked import SUBJECT
from lakehouse.existence import Subject
from lakehouse.gold_rows import quoted
from lakehouse.maintenance import Maintenance, matches
from lakehouse.periods import instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOVED: Final = " moved"


def rest(
    rows: DataFrame,
    left_out: Sequence[Maintenance],
    subjects: Sequence[Subject],
    window_us: int,
    names: Sequence[str] = SUBJECT,
) -> DataFrame:
    """Rows without those of windows that lie in maintenance that concerns their subject.

    Args:
        rows: With cluster, window, and the columns of a subject that they have.
        left_out: The maintenance.
        subjects: All that rows are of.
        window_us: Length of gold's finest windows.
        names: Which columns of a subject the rows have.
    """
    holes = _Holes(left_out, subjects, window_us, names)
    return rows.where(~holes.hold(F.col("window"))) if left_out else rows


def rest_and_begun(
    rows: DataFrame,
    left_out: Sequence[Maintenance],
    subjects: Sequence[Subject],
    window_us: int,
    begun: Begun,
    names: Sequence[str] = SUBJECT,
) -> DataFrame:
    """The same, and what may have begun just before that maintenance: of that nobody else tells.

    What was first seen in the first window of maintenance may have begun in the one before it. So
    of that one there is a row more, all zeros but for its upper bound.

    Args:
        rows: As above.
        left_out: The maintenance.
        subjects: All that rows are of.
        window_us: Length of gold's finest windows.
        begun: Where rows say what may have begun before their window.
        names: Which columns of a subject the rows have.
    """
    if not left_out:
        return rows
    holes = _Holes(left_out, subjects, window_us, names)
    before = F.col("window") - F.expr(f"INTERVAL {window_us // 1_000_000} SECOND")
    starts = ~holes.hold(before) & (begun.us > 0)
    kept = F.when(~holes.hold(F.col("window")), F.lit(0)).when(starts, F.lit(1))
    rows = rows.withColumn(_MOVED, kept).where(F.col(_MOVED).isNotNull())
    told = {"window": before, begun.high: begun.us, **{name: F.lit(0) for name in begun.others}}
    is_moved = F.col(_MOVED) == 1
    moved = {name: F.when(is_moved, one).otherwise(F.col(name)) for name, one in told.items()}
    return rows.withColumns(moved).drop(_MOVED)


class Begun(NamedTuple):
    """What rows say of what may have begun before their window.

    Attributes:
        us: How long before it, at most; microseconds.
        high: The column of the upper bound.
        others: The other columns that are summed up.
    """

    us: Column
    high: str
    others: Sequence[str]


class _Holes(NamedTuple):
    """Maintenance as it concerns rows."""

    left_out: Sequence[Maintenance]
    subjects: Sequence[Subject]
    window_us: int
    names: Sequence[str]

    def hold(self, window: Column) -> Column:
        """Whether a window of a row's subject lies in any."""
        return reduce(or_, (self._holds(one, window) for one in self.left_out))

    def _holds(self, one: Maintenance, window: Column) -> Column:
        start, end = one.windows(self.window_us)
        inside = (window >= F.lit(instant(start))) & (window < F.lit(instant(end)))
        if "cluster" in one.names:
            clusters = {each.cluster for each in self.subjects}
            chosen = sorted(each for each in clusters if matches(each, one.names["cluster"]))
            inside = inside & F.col("cluster").isin(*chosen)
        touched = F.lit(not one.subject_names)
        for name in (each for each in one.subject_names if each in self.names):
            own = {each.key[SUBJECT.index(name)] for each in self.subjects}
            named = (each for each in own if each is not None and matches(each, one.names[name]))
            (column,) = quoted([name])
            is_it = F.col(column).isin(*sorted(named))
            touched = touched | F.coalesce(is_it, F.lit(False))  # noqa: FBT003
        return inside & touched
