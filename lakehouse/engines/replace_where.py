"""Predicates of gold's rows that a batch replaces, as Spark's replaceWhere and delta-rs read them.

Literals are strings, for dates and instants too: it is the one way of writing them that both read.
"""

import datetime as dt
from collections.abc import Iterable, Sequence

from lakehouse.core.periods import HOUR_US, iso, micros
from lakehouse.core.spans import union
from lakehouse.engines.rollup_batches import HourSet
from lakehouse.tables.table import standard_text


def of_units(units: HourSet, start: str) -> str:
    """The rows of hours of clusters; ``start`` is the column with a row's hour or window."""
    return f"{of_clusters(units.clusters)} AND {of_hours(units.hours, start)}"


def of_clusters(clusters: Iterable[str]) -> str:
    """The rows of some clusters."""
    return f"cluster IN {strings(clusters)}"


def of_hours(hours: Sequence[dt.datetime], start: str) -> str:
    """The rows of some hours, which are in order: dates leave out files, ranges rows.

    Args:
        hours: The hours.
        start: The column with a row's hour or window.
    """
    dates = strings(dict.fromkeys(f"{hour:%Y-%m-%d}" for hour in hours))
    ranges = " OR ".join(
        f"({start} >= '{iso(first)}' AND {start} < '{iso(end)}')"
        for first, end in union((micros(hour), micros(hour) + HOUR_US) for hour in hours)
    )
    return f"date IN {dates} AND ({ranges})"


def before(date: dt.date) -> str:
    """The rows of earlier dates."""
    return f"date < '{date}'"


def strings(names: Iterable[str]) -> str:
    """A list of literals."""
    return f"({', '.join(map(standard_text, names))})"
