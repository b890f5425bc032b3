"""Why a row of bronze cannot be used: each reason in words, the first that holds is told.

What a row says of itself is judged row by row. Of its metric's name and of its member set the same
is asked of thousands of rows, so these are judged once for all of them, in ``survey``.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains
from lakehouse.tables import LONGEST_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

SET_NOT_KNOWN: Final = "its member set is not known"
"""Reason that passes away: the rows are used as soon as bronze/members holds the set."""

IN_THE_FUTURE: Final = "it lies in the future"
"""Reason that passes away as well, when its time has come."""

CLOCK_SLACK: Final = dt.timedelta(hours=1)
"""So much later than the newest commit of bronze may something have been seen."""

IMPOSSIBLE_NAME: Final = "no metric can have this name"
GREATEST: Final = 1e19
"""No bean holds more."""
LONGEST_EDGE_US: Final = 86_400_000_000
"""No edge is longer: a day."""
_NAMES: Final = ("topic", "user", "client_id", "group")


def misplaced(committed: dt.datetime, window_seconds: int) -> Column:
    """Reasons that runs and scrapes share: where in time a row lies.

    A row in another date's partition is set aside as it comes (see ``aside``).
    """
    length = F.unix_micros("end") - F.unix_micros("window")
    latest = F.lit(committed + CLOCK_SLACK)
    return (
        F.when(F.col("end") <= F.col("start"), "it ends before it starts")
        .when(F.col("start") > latest, IN_THE_FUTURE)
        .when(
            length > window_seconds * 1_000_000,
            f"it crosses a window of {grains.name(window_seconds)}",
        )
    )


def of_value(impossible: Sequence[str], long_labels: Sequence[str]) -> Column:
    """Reasons that lie in a run itself, before its set is looked at.

    Args:
        impossible: Names of metrics that no catalogue could give.
        long_labels: Metrics of which some run has a label that is too long.
    """
    edge = F.greatest("lead_us", "tail_us")
    named = F.col("metric").isin(*impossible) if impossible else F.lit(False)  # noqa: FBT003
    return (
        F.when((F.col("lead_us") < 0) | (F.col("tail_us") < 0), "an edge is negative")
        .when(edge > LONGEST_EDGE_US, "an edge is longer than a day")
        .when(no_number("value"), "the value is no number")
        .when(named, IMPOSSIBLE_NAME)
        .when(_name_is_odd(long_labels), "a name is empty or too long")
        .when(F.col("partition").isNotNull() & F.col("topic").isNull(), "topic is missing")
        .when(F.col("partition") < 0, "the partition is negative")
        .when(F.col("series") < 1, "it stands for no series")
        .when(
            F.col("members").isNull() & (F.col("series") > 1),
            "it stands for several series without a set",
        )
    )


def no_number(name: str) -> Column:
    """Whether a double is NaN, or beyond what a bean can hold."""
    return F.isnan(name) | (F.abs(name) > GREATEST)


def of_set() -> Column:
    """Reasons that lie in a claim's set, which was joined as ``survey`` does it."""
    held = F.coalesce(F.array_size("partitions"), F.array_size("clients"))
    distinct = F.coalesce(*(F.array_size(_distinct(name)) for name in ("partitions", "clients")))
    of_clients = F.col("clients").isNotNull() & F.col("topic").isNotNull()
    of_partitions = F.col("partitions").isNotNull() & (
        ~F.col("topic").eqNullSafe(F.col("of_topic"))
        | F.col("topic").isNull()
        | (F.array_min("partitions") < 0)
    )
    no_lists = F.col("partitions").isNull() & F.col("clients").isNull()
    wrong = no_lists | (held != F.col("series")) | (distinct != held) | of_clients | of_partitions
    return F.when(
        F.col("members").isNotNull(),
        F.when(F.col("told").isNull(), SET_NOT_KNOWN)
        .when(F.col("told") > 1, "its member set is told in several ways")
        .when(wrong | F.col("partition").isNotNull(), "it is not what its member set holds"),
    )


def of_fold() -> Column:
    """The last reason: a folded row stands for zeros, or for what is idle."""
    folded = F.col("members").isNotNull() & (F.col("value") != 0)
    return F.when(folded, "it folds series that are not zero")


def _distinct(name: str) -> Column:
    return F.array_distinct(F.array_compact(name))


def label_is_long() -> Column:
    """Whether a value among a run's labels is too long; dear, so asked only where some is."""
    return F.coalesce(
        F.exists(F.map_values("labels"), lambda value: F.octet_length(value) > LONGEST_NAME),
        F.lit(False),  # noqa: FBT003 - a literal
    )


def labels_are_long() -> Column:
    """Whether a value among a run's labels may be too long; quickly told."""
    values = F.map_values("labels").cast("string")
    return F.coalesce(F.octet_length(values) > LONGEST_NAME, F.lit(False))  # noqa: FBT003


def _name_is_odd(long_labels: Sequence[str]) -> Column:
    odd = F.coalesce(F.col("topic") == "", F.lit(False))  # noqa: FBT003 - a literal
    for name in _NAMES:
        odd = odd | (F.coalesce(F.octet_length(F.col(f"`{name}`")), F.lit(0)) > LONGEST_NAME)
    return odd | (F.col("metric").isin(*long_labels) & label_is_long()) if long_labels else odd
