"""Relations: SELECTs over tables, composed without an engine, and conditions for their rows.

The rollup and all readers of gold are written once, in SQL that both Spark and DuckDB read: joins,
filters, GROUP BY, CASE, ``least`` and ``greatest``, without double quotes and backticks. Integer
division is ``x - x % n``. Columns named by reserved words have the table's alias (``r.end``), and
relations are in braces (``{runs} r``). An engine runs a query where the rows are: DuckDB on a path,
Spark in a catalog. A report then moves sums instead of rows.

In a relation instants are BIGINT, microseconds since 1970 UTC (also in maps), and dates are DATE.
An engine converts them to the types of the table when it writes.
"""

import datetime as dt
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pyarrow as pa

from lakehouse.core.periods import HOUR_US, iso, micros, union
from lakehouse.tables.table import texts

_NAMED: Final = re.compile(r"\{(\w+)\}")
_NUMBERS: Final = itertools.count()
_SPECIAL: Final = re.compile(r"([\x00-\x1f{}\\])")
"""Characters that engines read differently."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows as a SELECT.

    Attributes:
        sql: SELECT that names its sources in braces.
        sources: Source rows by name: Arrow tables in memory, or an engine's own objects.
    """

    sql: str
    sources: Mapping[str, Any] = field(default_factory=dict)

    def rendered(self, write: Callable[[str, Any], str]) -> str:
        """Return the SELECT with each source as ``write(name, source)``."""
        written = {name: write(name, rows) for name, rows in self.sources.items()}
        return _NAMED.sub(lambda found: written.get(found[1], found[0]), self.sql)


Rows: TypeAlias = Relation | pa.Table
"""Rows to query or to write; a small table from the driver is an Arrow table."""


def source(rows: Any) -> Relation:
    """Return all rows of an object in memory, or of an engine's own object."""
    name = f"source_{next(_NUMBERS)}"
    return Relation(f"SELECT * FROM {{{name}}}", {name: rows})


def relation(rows: Rows) -> Relation:
    """Return rows as a relation."""
    return rows if isinstance(rows, Relation) else source(rows)


def select(sql: str, **given: Rows) -> Relation:
    """Return a SELECT over rows; it names them in braces by their keywords."""
    relations = {name: relation(rows) for name, rows in given.items()}
    sources = {name: rows for each in relations.values() for name, rows in each.sources.items()}
    return Relation(Relation(sql, relations).rendered(lambda _, rows: f"({rows.sql})"), sources)


def united(relations: Iterable[Relation]) -> Relation:
    """Return the rows of relations that have the same columns in the same order."""
    named = {f"part_{number}": rows for number, rows in enumerate(relations)}
    return select(" UNION ALL ".join(f"SELECT * FROM {{{name}}}" for name in named), **named)


def text(value: str) -> str:
    """Return a text as an SQL expression that is safe for any text."""
    parts = (
        f"chr({ord(part)})" if _SPECIAL.fullmatch(part) else "'" + part.replace("'", "''") + "'"
        for part in _SPECIAL.split(value)
        if part
    )
    return f"({joined})" if "||" in (joined := " || ".join(parts)) else joined or "''"


def is_one_of(column: str, values: Iterable[str]) -> str:
    """Return the condition that a column has one of some texts; false for none."""
    listed = ", ".join(map(text, values))
    return f"{column} IN ({listed})" if listed else "false"


# Conditions for rows that a commit replaces. Spark and delta-rs have one common notation: string
# literals, even for dates and instants.


def in_clusters(clusters: Iterable[str]) -> str:
    """Return the condition for rows of some clusters."""
    return f"cluster IN {texts(clusters)}"


def within_hours(hours: Sequence[dt.datetime], start: str) -> str:
    """Return the condition for rows of some hours: dates skip files, ranges skip rows.

    Args:
        hours: Hours, in order.
        start: Column with the start of a row's hour or window.
    """
    dates = texts(dict.fromkeys(f"{hour:%Y-%m-%d}" for hour in hours))
    ranges = " OR ".join(
        f"({start} >= '{iso(first)}' AND {start} < '{iso(end)}')"
        for first, end in union((micros(hour), micros(hour) + HOUR_US) for hour in hours)
    )
    return f"date IN {dates} AND ({ranges})"


def before_date(date: dt.date) -> str:
    """Return the condition for rows of earlier dates."""
    return f"date < '{date}'"
