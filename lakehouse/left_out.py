"""Which rows of gold are of windows in which there was planned maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from lakehouse.asked import SUBJECT
from lakehouse.maintenance import matches
from lakehouse.periods import instant
from lakehouse.pieces import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame

    from lakehouse.existence import Subject
    from lakehouse.maintenance import Maintenance


def rest(
    rows: DataFrame,
    left_out: Iterable[Maintenance],
    subjects: Sequence[Subject],
    window_us: int,
    names: Sequence[str] = SUBJECT,
) -> DataFrame:
    """Rows without those of windows that lie in maintenance that concerns their subject.

    Args:
        rows: With cluster, window, and the columns of a subject that they have.
        left_out: The maintenance.
        subjects: All that rows are of.
        window_us: Finest grain of gold.
        names: Which columns of a subject the rows have.
    """
    for one in left_out:
        rows = rows.where(~_is_in(one, subjects, window_us, names))
    return rows


def _is_in(
    one: Maintenance, subjects: Sequence[Subject], window_us: int, names: Sequence[str]
) -> Column:
    start, end = one.windows(window_us)
    inside = (F.col("window") >= F.lit(instant(start))) & (F.col("window") < F.lit(instant(end)))
    if "cluster" in one.names:
        clusters = {each.cluster for each in subjects}
        chosen = sorted(each for each in clusters if matches(each, one.names["cluster"]))
        inside = inside & F.col("cluster").isin(*chosen)
    touched = F.lit(not one.subject_names)
    for name in (each for each in one.subject_names if each in names):
        own = {each.key[SUBJECT.index(name)] for each in subjects}
        chosen = sorted(each for each in own if each is not None and matches(each, one.names[name]))
        (column,) = quoted([name])
        touched = touched | F.coalesce(F.col(column).isin(*chosen), F.lit(False))  # noqa: FBT003
    return inside & touched
