"""Relations: rows that SQL names, put together without an engine.

Planning, lease, progress, verify and all readers of gold are written once, in SQL that Spark and
DuckDB both read: joins, filters, GROUP BY, CASE, ``least`` and ``greatest``; ``x - x % n`` instead
of a whole division; columns named by reserved words with their table's alias before them
(``r.end``); no double quotes and no backticks; relations in braces (``{runs} r``). An engine runs
it where the rows are: DuckDB on a path, Spark in a catalog, so that a report moves sums, not rows.

In a relation instants are BIGINT, microseconds since 1970 UTC (those in maps too), and dates are
DATE. An engine turns them into the types of the table when it writes.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pyarrow as pa

_NAMED: Final = re.compile(r"\{(\w+)\}")
_NUMBERS: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows as a SELECT.

    Attributes:
        sql: The SELECT, which names its sources in braces.
        sources: The rows that it reads, by name: in memory (Arrow), or an engine's own.
    """

    sql: str
    sources: Mapping[str, Any] = field(default_factory=dict)

    def rendered(self, write: Callable[[str, Any], str]) -> str:
        """The SELECT, with each source as ``write(name, source)`` writes it."""
        written = {name: write(name, one) for name, one in self.sources.items()}
        return _NAMED.sub(lambda found: written.get(found[1], found[0]), self.sql)


Rows: TypeAlias = Relation | pa.Table
"""Rows to query or to write; a few of the driver's are a table of Arrow."""


def source(rows: Any) -> Relation:
    """Rows that are in memory, or an engine's own, as they are."""
    name = f"source_{next(_NUMBERS)}"
    return Relation(f"SELECT * FROM {{{name}}}", {name: rows})


def relation(rows: Rows) -> Relation:
    """Rows as a relation."""
    return rows if isinstance(rows, Relation) else source(rows)


def select(sql: str, **given: Rows) -> Relation:
    """A SELECT over rows, which it names in braces by the names given here."""
    relations = {name: relation(rows) for name, rows in given.items()}
    sources = {name: one for each in relations.values() for name, one in each.sources.items()}
    return Relation(Relation(sql, relations).rendered(lambda _, one: f"({one.sql})"), sources)


def united(relations: Iterable[Relation]) -> Relation:
    """The rows of relations with the same columns in the same order."""
    named = {f"part_{number}": one for number, one in enumerate(relations)}
    return select(" UNION ALL ".join(f"SELECT * FROM {{{name}}}" for name in named), **named)
